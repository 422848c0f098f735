"""A Trace and its statistics for the terminal: what was merged, steps, ranks, the bubble."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from serried.errors import listed
from serried.trace.merge import Trace
from serried.trace.statistics import Statistics
from serried.trace.what_if import WhatIf
from serried.units import duration_text

_WORTH_SAYING = 0.005
_LARGE_SHARE = 0.5
ROWS_SHOWN = 32
"""Steps and ranks that a table shows; JSON has them all."""


def headlines(trace: Trace, stats: Statistics) -> list[str]:
    """Returns what was merged, in two lines."""
    job = trace.job
    sizes = listed(f"{axis} {size}" for axis, size in job.sizes.items() if size > 1)
    counts = [
        _count(len(stats.steps), "complete step"),
        _count(len(trace.spans), "span"),
    ]
    where = f"{_count(len(trace.ranks), 'rank')} on {_count(len(trace.hosts), 'host')}"
    schedule = f"{job.schedule} with {_count(job.num_microbatches, 'microbatch')}"
    compute = "; compute is emulated by fixed times" if trace.is_emulated else ""
    return [
        f"run {trace.run}: {where}, {', '.join(counts)}",
        f"{job.framework}{', ' + sizes if sizes else ''}; {schedule}{compute}",
    ]


def steps_table(stats: Statistics) -> Table:
    """Returns a row per complete step and the mean."""
    table = _table("step", "window", "busy, a rank", "bubble")
    for each in stats.steps[:ROWS_SHOWN]:
        busy = duration_text(each.busy_ns / stats.num_ranks)
        table.add_row(str(each.step), duration_text(each.window_ns), busy, f"{each.bubble:.1%}")
    _add_more(table, stats.steps)
    return table


def ranks_table(trace: Trace, stats: Statistics) -> Table:
    """Returns a row per rank: where its time within the windows went, a mean per step."""
    compute = "compute (emulated)" if trace.is_emulated else "compute"
    table = _table("rank", "node", compute, "receive wait", "other")
    for each in stats.ranks[:ROWS_SHOWN]:
        times = (each.compute_ns, each.receive_wait_ns, each.other_ns)
        node = str(trace.placement.node(each.rank))
        table.add_row(str(each.rank), node, *map(duration_text, times))
    _add_more(table, stats.ranks)
    return table


def bubble_lines(trace: Trace, stats: Statistics) -> list[str]:
    """Returns the bubble measured beside the ideal one, or why there is none."""
    if stats.bubble is None:
        return ["bubble: not measured, for no step was finished by every rank"]
    lines = [
        f"bubble measured  {stats.bubble:6.1%}   mean of {_count(len(stats.steps), 'step')}"
        f"{', of emulated compute' if trace.is_emulated else ''}"
    ]
    if stats.ideal is None:
        return [*lines, f"bubble ideal     not known in closed form for {trace.job.schedule}"]
    p, m = trace.job.sizes.get("pp", 1), trace.job.num_microbatches
    formula = f"(p - 1) / (m + p - 1), p = {p}, m = {m}"
    return [*lines, f"bubble ideal     {float(stats.ideal):6.1%}   {formula}"]


def message_lines(stats: Statistics) -> list[str]:
    """Returns how many sends and receives found each other, and what they say of the clocks."""
    found, aligned = stats.messages, stats.alignment
    wanted = found.spans if found.expected_spans is None else found.expected_spans
    lone = [(found.lone_sends, "send"), (found.lone_receives, "receive")]
    alone = " and ".join(_count(number, what) for number, what in lone if number)
    lines = [
        f"sends and receives pair: {2 * found.pairs:,} of {wanted:,}"
        f"{f'; {alone} without a partner' if alone else ''}"
    ]
    if aligned.num_hosts > 1 or aligned.causality_violations:
        lines.append(
            f"clocks of {_count(aligned.num_hosts, 'host')}: {aligned.causality_violations:,} of "
            f"{_count(aligned.checked, 'message')} received before sent"
        )
    return lines


def what_if_lines(replayed: WhatIf | None) -> list[str]:
    """Returns what replaying the run with ideal durations says, if it could be replayed."""
    if replayed is None:
        return []
    recorded, ideal = (duration_text(s * 1e9) for s in (replayed.recorded, replayed.ideal))
    lines = [
        f"slowdown         {replayed.slowdown:5.3f}x   a step replays in {recorded}; "
        f"in {ideal} with ideal durations"
    ]
    if replayed.slowdown - 1 < _WORTH_SAYING:
        return lines
    if (replayed.last_stage_share or 0) >= _LARGE_SHARE:
        lines.append(
            f"                 the last stage explains {replayed.last_stage_share:.0%} of it"
        )
    worst = replayed.ranks[0]
    if worst.shorter >= _WORTH_SAYING:
        lines.append(
            f"                 without rank {worst.rank}'s slowness the step is "
            f"{worst.shorter:.1%} shorter"
        )
    return lines


def left_out_lines(stats: Statistics) -> list[str]:
    """Returns which steps were left out, if any."""
    if not stats.left_out:
        return []
    return [f"left out, not finished by every rank: step {listed(stats.left_out)}"]


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _add_more(table: Table, rows: Sequence[object]) -> None:
    if len(rows) > ROWS_SHOWN:
        table.add_row("…", f"{len(rows) - ROWS_SHOWN:,} more")


def _count(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"
