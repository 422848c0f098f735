"""A comparison of two traces, for the terminal and as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.trace.measure.compare import ActionChange, OrderChange, TraceComparison
from serried.units import difference_text, duration_text
from serried.views.sentences import phrase, tell
from serried.views.trace.words import CAUSES, LONGER, OF_A_STEP

CHANGES_SHOWN, ORDERS_SHOWN = 8, 4
"""Actions and ranks that the terminal shows; JSON has them all."""

_LEAST_SHARE = 0.001
_WORDS = {**LONGER, **CAUSES}


def comparison_lines(
    compared: TraceComparison, first: str, second: str, *, lang: str = "en"
) -> list[str]:
    """Returns what to say of two traces called ``first`` and ``second``."""
    windows = [
        sum(step.window_ns for step in stats.counted) / len(stats.counted)
        for stats in (compared.first, compared.second)
    ]
    lines = [
        tell(
            "a step of {first} takes {ours}, of {second} {theirs}: {more} ({share:+.1%})",
            lang,
            first=first,
            ours=duration_text(windows[0]),
            second=second,
            theirs=duration_text(windows[1]),
            more=difference_text(compared.more_ns),
            # The second trace is the measure: 110 ms against 100 ms reads +10.0%.
            share=windows[0] / windows[1] - 1,
        ),
        tell(
            "{matched:,} actions match; {ours:,} only in {first}, {theirs:,} only in {second}",
            lang,
            matched=compared.matched,
            ours=compared.only_first,
            first=first,
            theirs=compared.only_second,
            second=second,
        ),
        "",
        tell("where the time went, a mean per rank and step", lang),
    ]
    least = _LEAST_SHARE * windows[1]
    account = sorted(compared.account.items(), key=lambda each: -abs(each[1]))
    told = [(name, more) for name, more in account if abs(more) >= least]
    words = _WORDS if compared.first.has_pipeline else {**_WORDS, **OF_A_STEP}
    lines += [f"  {difference_text(more):>10}  {phrase(words[name], lang)}" for name, more in told]
    if not told:
        lines.append(tell("  nowhere: every kind of work and of waiting takes as long", lang))
    return [*lines, *_changes(compared, lang), *_orders(compared, lang)]


def _changes(compared: TraceComparison, lang: str) -> list[str]:
    changes = [each for each in compared.changes if each.more_ns][:CHANGES_SHOWN]
    if not changes:
        return []
    lines = ["", tell("the actions that differ most", lang)]
    return lines + [_change(each, lang) for each in changes]


def _change(change: ActionChange, lang: str) -> str:
    return tell(
        "  rank {rank} {action}: {ours} against {theirs}",
        lang,
        rank=change.rank,
        action=change.action,
        ours=duration_text(change.first_ns),
        theirs=duration_text(change.second_ns),
    )


def _orders(compared: TraceComparison, lang: str) -> list[str]:
    if not compared.orders:
        return ["", tell("every rank computes in the same order", lang)]
    lines = [
        "",
        tell("{count:,} ranks compute in another order", lang, count=len(compared.orders)),
    ]
    return lines + [_order(each, lang) for each in compared.orders[:ORDERS_SHOWN]]


def _order(order: OrderChange, lang: str) -> str:
    nothing = tell("nothing more", lang)
    return tell(
        "  rank {rank}: after {place:,} alike, {ours} instead of {theirs}",
        lang,
        rank=order.rank,
        place=order.place,
        ours=order.first or nothing,
        theirs=order.second or nothing,
    )


def comparison_document(compared: TraceComparison, first: str, second: str) -> dict[str, Any]:
    """Returns the ``serried.trace-compare/1`` document; times are microseconds."""
    return {
        "schema": "serried.trace-compare/1",
        "first": first,
        "second": second,
        "more_us": compared.more_ns / 1e3,
        "account_us": {name: ns / 1e3 for name, ns in compared.account.items()},
        "matched": compared.matched,
        "only_first": compared.only_first,
        "only_second": compared.only_second,
        "actions": [
            {
                "rank": change.rank,
                "action": change.action,
                "first_us": change.first_ns / 1e3,
                "second_us": change.second_ns / 1e3,
            }
            for change in compared.changes
        ],
        "orders": [asdict(each) for each in compared.orders],
    }
