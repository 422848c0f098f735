"""Megatron's timers for the terminal and as a document: the verdict first, then the tables.

A rank is named where it computes at least 10 % longer than the others of its stage, and by more
than three times what those differ by: such a log holds totals of a few intervals, so that no step
can be held against another. With tensor parallel ranks nobody is, for they wait in these timers.
"""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Any

from serried.errors import listed
from serried.trace.formats.megatron.statistics import TimedRank, TimerStatistics
from serried.trace.formats.megatron.timers import TimerLog
from serried.trace.measure.ranks.slowest import SPREADS
from serried.units import duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table
from serried.views.trace.document import finding_document
from serried.views.trace.text import add_more, count_text, labelled
from serried.views.trace.words import cut

WORTH_SAYING = 0.10
"""The least that a rank must compute longer than the others of its stage to be named."""
_TIMERS = 12
_RANKS = 8
_ALL = 1 << 30
_PATH = 36
"""Columns of a line that a log's path may take; of a longer one its name is told."""


def timer_parts(
    log: TimerLog, found: TimerStatistics, *, lang: str = "en", is_whole: bool = False
) -> list[str | Table]:
    """Returns lines and tables in the order in which they are printed; all rows if ``is_whole``."""
    timers, ranks = (_ALL, _ALL) if is_whole else (_TIMERS, _RANKS)
    parts: list[str | Table] = [
        *timer_verdict_lines(found, lang=lang),
        "",
        *timer_headlines(log, found, lang=lang),
        "",
        timers_table(found, rows=timers, lang=lang),
    ]
    if found.ranks:
        parts += ["", timed_ranks_table(found, rows=ranks, lang=lang)]
    return [*parts, "", *timer_lines(found, lang=lang)]


def timer_verdict_lines(found: TimerStatistics, *, lang: str = "en") -> list[str]:
    """Returns which rank computes longest, if one stands out, and what to record next."""
    step = duration_text(found.step_ms * 1e6)
    slow = slow_timed_rank(found)
    if slow is not None:
        head = tell(
            "rank {rank} (stage {stage}) computes {slower:.1%} longer than others of its stage: "
            "{cost} of a step of {step}"
            if slow.stage is not None and found.has_pipeline
            else "rank {rank} computes {slower:.1%} longer than others: {cost} of a step of {step}",
            lang,
            rank=slow.rank,
            stage=slow.stage,
            slower=slow.slower,
            cost=duration_text(_extra_ms(slow) * 1e6),
            step=step,
        )
        return [head, _next_line(found, lang)]
    head = tell("a step takes {step}", lang, step=step)
    why = tell(
        "which rank is slow is not known, for the log has no times of every rank"
        if not found.ranks
        else "tensor-parallel ranks wait inside these timers, so no rank is judged"
        if found.sizes.get("tp", 1) > 1
        else "no rank stands out: none computes {least:.0%} longer than others of its stage",
        lang,
        least=WORTH_SAYING,
    )
    return [head, why, _next_line(found, lang)]


def _next_line(found: TimerStatistics, lang: str) -> str:
    return tell(
        "next: run with serried.record(loader, DIR) around the loop, for a timeline"
        if found.ranks
        else "next: run with --timing-log-level 2 --timing-log-option all, or serried.record",
        lang,
    )


def slow_timed_rank(found: TimerStatistics) -> TimedRank | None:
    """Returns the rank that computes longest beside its like, if it stands out."""
    known = [each for each in found.ranks if each.slower is not None]
    if not known or found.sizes.get("tp", 1) > 1:
        return None
    worst = max(known, key=lambda each: each.slower or 0.0)
    others = [each.slower or 0.0 for each in known if each is not worst]
    # How much equal ranks differ is told by at least three of them.
    spread = median(abs(each - median(others)) for each in others) if len(others) > 2 else 0.0
    slower = worst.slower or 0.0
    return worst if slower >= WORTH_SAYING and slower >= SPREADS * spread else None


def _extra_ms(rank: TimedRank) -> float:
    slower = rank.slower or 0.0
    return (rank.forward_ms + rank.backward_ms) * slower / (1 + slower)


def timer_headlines(log: TimerLog, found: TimerStatistics, *, lang: str = "en") -> list[str]:
    """Returns which log it is, and what its numbers are of."""
    sizes = listed(f"{axis} {size}" for axis, size in found.sizes.items() if size > 1)
    lines = count_text(len(log.blocks), "interval", lang)
    printed = {
        "max": "the slowest rank's times",
        "minmax": "the quickest and the slowest rank's times",
        "all": "every rank's times",
        "one rank": "the printing rank's times",
    }[log.form]
    head = tell(
        "Megatron timers of {path}: {intervals}, {what}",
        lang,
        path=cut(log.path.name if len(str(log.path)) > _PATH else str(log.path), _PATH),
        intervals=lines,
        what=phrase(printed, lang),
    )
    return [head, str(say(sizes, lang))] if sizes else [head]


def timers_table(found: TimerStatistics, *, rows: int, lang: str = "en") -> Table:
    """Returns a row for each of ``rows`` timers, the longest first."""
    table = _table("timer", [tell("least", lang), tell("most", lang), tell("most / least", lang)])
    for timer in sorted(found.timers, key=lambda each: -each.most_ms)[:rows]:
        least = "" if timer.least_ms is None else duration_text(timer.least_ms * 1e6)
        ratio = f"{timer.most_ms / timer.least_ms:.2f}x" if timer.least_ms else ""
        table.add_row(timer.name, least, duration_text(timer.most_ms * 1e6), ratio)
    add_more(table, len(found.timers) - rows, lang)
    return table


def timed_ranks_table(found: TimerStatistics, *, rows: int, lang: str = "en") -> Table:
    """Returns a row for each of ``rows`` ranks, of which those stand first that compute longest.

    It holds a mean step's forward-backward time and what that went into.
    """
    stages = ("stage",) if found.has_pipeline else ()
    words = (*stages, "forward", "backward", "messages", "rest")
    headings = [*(phrase(word, lang) for word in words), tell("not computing", lang)]
    table = _table("rank", headings)
    slowest = sorted(found.ranks, key=lambda each: (-each.forward_ms - each.backward_ms, each.rank))
    for rank in slowest[:rows]:
        times = (rank.forward_ms, rank.backward_ms, rank.messages_ms, rank.rest_ms)
        stage = ["" if rank.stage is None else str(rank.stage)] if stages else []
        texts = [duration_text(ms * 1e6) for ms in times]
        table.add_row(str(rank.rank), *stage, *texts, f"{rank.not_computing:.1%}")
    add_more(table, len(found.ranks) - rows, lang)
    return table


def timer_lines(found: TimerStatistics, *, lang: str = "en") -> list[str]:
    """Returns throughput, and what such a log cannot tell."""
    speeds = [
        tell("{flops:,.1f} TFLOP/s a GPU", lang, flops=found.tflops) if found.tflops else "",
        tell("{count:,.1f} samples/s", lang, count=found.samples_per_s)
        if found.samples_per_s
        else "",
        tell("{count:,.0f} tokens/s", lang, count=found.tokens_per_s) if found.tokens_per_s else "",
    ]
    step = tell(
        "a step takes {period}, jitter {jitter:.1%}",
        lang,
        period=duration_text(found.step_ms * 1e6),
        jitter=found.jitter,
    )
    told = [step, *([str(say(listed(filter(None, speeds)), lang))] if any(speeds) else [])]
    lines = labelled(tell("throughput", lang), told)
    # The time in which a rank does not compute holds its messages as well, so it only bounds the
    # bubble from above.
    cannot = [
        tell(
            "timers are totals without time stamps: no timeline, and no bubble"
            if found.has_pipeline
            else "timers are totals without time stamps: no timeline",
            lang,
        )
    ]
    if found.ranks and found.has_pipeline:
        cannot.append(
            tell("a rank's bubble is at most the share in which it did not compute", lang)
        )
    return [*lines, *labelled(tell("not known", lang), cannot)]


def _table(first: str, headings: list[str]) -> Table:
    table = Table()
    table.add_column(first, justify="left" if first == "timer" else "right", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def timers_document(log: TimerLog, found: TimerStatistics) -> dict[str, Any]:
    """Returns the ``serried.timer-stats/1`` document; times are milliseconds."""
    return {
        "schema": "serried.timer-stats/1",
        "path": str(log.path),
        "form": log.form,
        **asdict(found),
        "verdict": _verdict(found),
        "warnings": [finding_document(each) for each in log.findings],
        "iterations": [asdict(each) for each in log.iterations],
    }


def _verdict(found: TimerStatistics) -> dict[str, Any]:
    slow = slow_timed_rank(found)
    return {
        "lines": timer_verdict_lines(found),
        "ranks": [] if slow is None else [slow.rank],
        "cost_ms": None if slow is None else _extra_ms(slow),
    }
