"""Megatron's timers for the terminal and as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.errors import listed
from serried.trace.formats.megatron.statistics import TimerStatistics
from serried.trace.formats.megatron.timers import TimerLog
from serried.trace.measure.slowest import WORTH_SAYING
from serried.units import duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table
from serried.views.trace.document import finding_document
from serried.views.trace.text import ROWS_SHOWN, count_text, labelled


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
        path=log.path,
        intervals=lines,
        what=phrase(printed, lang),
    )
    return [head, str(say(sizes, lang))] if sizes else [head]


def timers_table(found: TimerStatistics, *, lang: str = "en") -> Table:
    """Returns a row per timer."""
    table = _table("timer", [tell("least", lang), tell("most", lang), tell("most / least", lang)])
    for timer in found.timers[:ROWS_SHOWN]:
        least = "" if timer.least_ms is None else duration_text(timer.least_ms * 1e6)
        ratio = f"{timer.most_ms / timer.least_ms:.2f}x" if timer.least_ms else ""
        table.add_row(timer.name, least, duration_text(timer.most_ms * 1e6), ratio)
    return table


def timed_ranks_table(found: TimerStatistics, *, lang: str = "en") -> Table:
    """Returns a row per rank: a mean step's forward-backward time and what it went into."""
    stages = ("stage",) if found.has_pipeline else ()
    words = (*stages, "forward", "backward", "messages", "rest")
    headings = [*(phrase(word, lang) for word in words), tell("not computing", lang)]
    table = _table("rank", headings)
    for rank in found.ranks[:ROWS_SHOWN]:
        times = (rank.forward_ms, rank.backward_ms, rank.messages_ms, rank.rest_ms)
        stage = ["" if rank.stage is None else str(rank.stage)] if stages else []
        texts = [duration_text(ms * 1e6) for ms in times]
        table.add_row(str(rank.rank), *stage, *texts, f"{rank.not_computing:.1%}")
    if len(found.ranks) > ROWS_SHOWN:
        table.add_row("…", tell("{count:,} more", lang, count=len(found.ranks) - ROWS_SHOWN))
    return table


def timer_lines(log: TimerLog, found: TimerStatistics, *, lang: str = "en") -> list[str]:
    """Returns throughput and the slow ranks, and what such a log cannot tell."""
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
    slow = sorted(
        (each for each in found.ranks if (each.slower or 0) >= WORTH_SAYING),
        key=lambda each: -(each.slower or 0),
    )[:3]
    lines += labelled(
        tell("slowest ranks", lang),
        [
            tell(
                "rank {rank} computes {slower:.1%} longer than others of its stage"
                if found.has_pipeline
                else "rank {rank} computes {slower:.1%} longer than others",
                lang,
                rank=each.rank,
                slower=each.slower,
            )
            for each in slow
        ],
    )
    # The time in which a rank does not compute holds its messages as well, so it only bounds the
    # bubble from above. A log without every rank's times is told which flags print them.
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
    elif not found.ranks:
        cannot.append(
            tell("--timing-log-level 2 --timing-log-option all prints what ranks do", lang)
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
        "warnings": [finding_document(each) for each in log.findings],
        "iterations": [asdict(each) for each in log.iterations],
    }
