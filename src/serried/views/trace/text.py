"""A Trace and its statistics for the terminal: what was merged, steps, ranks, the bubble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len

from serried.errors import listed
from serried.finding import said
from serried.trace.measure.statistics import BubbleStatistics, Statistics
from serried.trace.measure.what_if import WhatIf
from serried.trace.merge.store import Merged
from serried.trace.model.messages import Alignment
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.trace import Trace
from serried.units import duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table
from serried.views.trace.clocks import clock_lines

_WORTH_SAYING = 0.005
_LEAST_SLOWDOWN = 0.0005
"""The least that is printed as 1.001x."""
_LARGE_SHARE = 0.5
LABEL_COLUMNS = 20
CAUSES_A_LINE = 4
ROWS_SHOWN = 32
"""Steps and ranks that a table shows; JSON has them all."""
_NAME_CELLS = 60


def headlines(trace: Trace, stats: Statistics, *, lang: str = "en") -> list[str]:
    """Returns what was merged, in two lines."""
    job = trace.job
    sizes = listed(f"{axis} {size}" for axis, size in job.sizes.items() if size > 1)
    merged = tell(
        "run {run}: {ranks} on {hosts}, {steps}, {spans}",
        lang,
        run=trace.run,
        ranks=count_text(len(trace.ranks), "rank", lang),
        hosts=count_text(len(trace.hosts), "host", lang),
        steps=count_text(len(stats.steps), "complete step", lang),
        spans=count_text(len(trace.spans), "span", lang),
    )
    layout = said("{framework}, {sizes}", framework=job.framework, sizes=sizes)
    # A run without a pipeline has no schedule, so that comes before the question of its name.
    schedule = tell(
        "{layout}; no pipeline, {microbatches} a step"
        if not trace.has_pipeline
        else "{layout}; schedule not named, {microbatches}"
        if job.schedule == UNKNOWN_SCHEDULE
        else "{layout}; {schedule} with {microbatches}",
        lang,
        layout=layout if sizes else job.framework,
        schedule=job.schedule,
        microbatches=count_text(job.num_microbatches, "microbatch", lang),
    )
    compute = tell("; compute is emulated by fixed times", lang) if trace.is_emulated else ""
    return [merged, schedule + compute]


def steps_table(trace: Trace, stats: Statistics, *, lang: str = "en") -> Table:
    """Returns a row per complete step and the mean."""
    idle = tell("bubble" if trace.has_pipeline else "idle", lang)
    table = _table("step", tell("window", lang), tell("busy, a rank", lang), idle)
    for step in stats.steps[:ROWS_SHOWN]:
        busy = duration_text(step.busy_ns / stats.num_ranks)
        table.add_row(str(step.step), duration_text(step.window_ns), busy, f"{step.bubble:.1%}")
    _add_more(table, stats.steps, lang)
    return table


def ranks_table(trace: Trace, stats: Statistics, *, lang: str = "en") -> Table:
    """Returns a row per rank: where its time within the windows went, a mean per step."""
    compute = tell("compute (emulated)" if trace.is_emulated else "compute", lang)
    # A run without such waits gets no column of zeros for them.
    has_exchanges = any(each.exchange_wait_ns for each in stats.ranks)
    exchange = (tell("exchange wait", lang),) if has_exchanges else ()
    headings = compute, tell("receive wait", lang), *exchange, tell("other", lang)
    table = _table("rank", tell("node", lang), *headings)
    for rank in stats.ranks[:ROWS_SHOWN]:
        waits = (rank.exchange_wait_ns,) if has_exchanges else ()
        times = (rank.compute_ns, rank.receive_wait_ns, *waits, rank.other_ns)
        node = str(trace.placement.node(rank.rank))
        table.add_row(str(rank.rank), node, *map(duration_text, times))
    _add_more(table, stats.ranks, lang)
    return table


def bubble_lines(
    trace: Trace, stats: Statistics, *, lang: str = "en", schedule: str | None = None
) -> list[str]:
    """Returns the bubble measured beside the ideal one, or why there is none.

    ``schedule`` is the one recognised where the trace does not name its own. Without a pipeline
    the same share is idle time, of which no schedule says how much there must be.
    """
    if stats.bubble is None:
        return [
            tell(
                "bubble: not measured, for no step was finished by every rank"
                if trace.has_pipeline
                else "idle time: not measured, for no step was finished by every rank",
                lang,
            )
        ]
    mean = tell(
        "mean of {steps}, of emulated compute" if trace.is_emulated else "mean of {steps}",
        lang,
        steps=count_text(len(stats.steps), "step", lang),
    )
    label = label_text(tell("bubble measured" if trace.has_pipeline else "idle measured", lang))
    lines = [f"{label}{stats.bubble:6.1%}   {mean}"]
    if not trace.has_pipeline:
        return lines + (
            _idle_lines(stats.bubbles, lang, {**CAUSES, **OF_A_STEP}) if stats.bubbles else []
        )
    if stats.bubbles:
        others = tell(
            "{over:.1%} over the ideal time, {longest:.1%} of the longest window",
            lang,
            over=stats.bubbles.over_ideal,
            longest=stats.bubbles.longest_window,
        )
        lines += [label_text("") + others, *_idle_lines(stats.bubbles, lang, CAUSES)]
    ideal = label_text(tell("bubble ideal", lang))
    if stats.ideal is None:
        named = schedule or trace.job.schedule
        # An order that nobody named and that was not recognised leaves no schedule to speak of.
        if named == UNKNOWN_SCHEDULE:
            return lines
        unknown = tell("not known in closed form for {schedule}", lang, schedule=named)
        return [*lines, ideal + unknown]
    p, m = trace.job.sizes["pp"], trace.job.num_microbatches
    formula = f"(p - 1) / (m + p - 1), p = {p}, m = {m}"
    return [*lines, f"{ideal}{float(stats.ideal):6.1%}   {formula}"]


def _idle_lines(bubbles: BubbleStatistics, lang: str, words: Mapping[str, str]) -> list[str]:
    """Returns the causes of the idle time, the largest first, those of next to nothing left out."""
    causes = sorted(bubbles.causes.items(), key=lambda each: -each[1])
    told = [
        tell("{cause} {share:.1%}", lang, cause=phrase(words[cause], lang), share=share)
        for cause, share in causes
        if share >= _LEAST_SHARE
    ]
    rows = [told[at : at + CAUSES_A_LINE] for at in range(0, len(told), CAUSES_A_LINE)]
    labels = [tell("idle time by cause", lang), *[""] * len(rows)]
    return [
        label_text(label) + say(listed(row), lang) for label, row in zip(labels, rows, strict=False)
    ]


# The least share that is printed as 0.1%.
_LEAST_SHARE = 0.0005
CAUSES = {
    "warm_up": "warm-up",
    "exchange": "exchange",
    "late_peer": "late peer",
    "transfer": "transfer",
    "send": "send",
    "reduce": "reduce",
    "other": "nothing recorded",
    "cool_down": "cool-down",
}
"""What causes of idle time are called, before they are translated."""
OF_A_STEP = {
    "warm_up": "before the first computation",
    "cool_down": "after the last computation",
}
"""What some causes are called where there is no pipeline to fill and to drain."""


def merged_lines(merged: Merged, store: Path, *, lang: str = "en") -> list[str]:
    """Returns what was merged into a store that is too large to be measured at once."""
    found = tell(
        "run {run}: {ranks} on {hosts}, {spans}",
        lang,
        run=merged.trace.run,
        ranks=count_text(len(merged.trace.ranks), "rank", lang),
        hosts=count_text(len(merged.trace.hosts), "host", lang),
        spans=count_text(merged.num_spans, "span", lang),
    )
    further = tell("serried trace stats {store} measures them", lang, store=store)
    return [found, *message_lines(merged, lang=lang), further]


def message_lines(stats: Statistics | Merged, *, lang: str = "en") -> list[str]:
    """Returns how many sends and receives found each other, and what they say of the clocks."""
    found, aligned = stats.messages, stats.alignment
    wanted = found.spans if found.expected_spans is None else found.expected_spans
    lone = [(found.lone_sends, "send"), (found.lone_receives, "receive")]
    alone = listed([count_text(n, what, lang) for n, what in lone if n], last="and")
    # A pair is two spans, a send and its receive, and what is wanted is counted in spans.
    paired = [
        tell(
            "sends and receives pair: {paired:,} of {wanted:,}; {alone} without a partner"
            if alone
            else "sends and receives pair: {paired:,} of {wanted:,}",
            lang,
            paired=2 * found.pairs,
            wanted=wanted,
            alone=alone,
        )
    ]
    lines = paired if wanted or found.spans else []
    if aligned.num_hosts > 1 or aligned.causality_violations:
        lines.append(_clocks_line(aligned, lang))
    return [*lines, *clock_lines(aligned.clocks, lang=lang)]


def _clocks_line(aligned: Alignment, lang: str) -> str:
    within = aligned.uncertainty_ns
    is_checked = aligned.checked > 0
    # Two things may be unknown, each on its own: how near the clocks are to one another, and
    # whether messages bear that out, for there may be none to check it by.
    return tell(
        "clocks of {hosts}: not tied to one another"
        if within is None and not is_checked
        else "clocks of {hosts}: not tied to one another; {count:,} of {messages} received "
        "before sent"
        if within is None
        else "clocks of {hosts}: aligned to {within}; {count:,} of {messages} received before sent"
        if is_checked
        else "clocks of {hosts}: aligned to {within}; no message was recorded to check it by",
        lang,
        hosts=count_text(aligned.num_hosts, "host", lang),
        within=duration_text(within or 0),
        count=aligned.causality_violations,
        messages=count_text(aligned.checked, "message", lang),
    )


def what_if_lines(replayed: WhatIf | None, *, lang: str = "en") -> list[str]:
    """Returns what replaying the run with ideal durations says, if it could be replayed."""
    if replayed is None:
        return []
    recorded, ideal = (duration_text(s * 1e9) for s in (replayed.recorded, replayed.ideal))
    if replayed.slowdown < 1 + _LEAST_SLOWDOWN:
        return [label_text(tell("no slowdown", lang)) + _no_slowdown(recorded, ideal, lang)]
    times = tell(
        "a step replays in {recorded}; in {ideal} with ideal durations",
        lang,
        recorded=recorded,
        ideal=ideal,
    )
    lines = [f"{label_text(tell('slowdown', lang))}{replayed.slowdown:5.3f}x   {times}"]
    # So small a slowdown is told, but no stage or rank is blamed for it.
    if replayed.slowdown - 1 < _WORTH_SAYING:
        return lines
    if (replayed.last_stage_share or 0) >= _LARGE_SHARE:
        share = replayed.last_stage_share
        lines.append(
            label_text() + tell("the last stage explains {share:.0%} of it", lang, share=share)
        )
    worst = replayed.ranks[0]
    if worst.shorter >= _WORTH_SAYING:
        shorter = tell(
            "without rank {rank}'s slowness the step is {shorter:.1%} shorter",
            lang,
            rank=worst.rank,
            shorter=worst.shorter,
        )
        lines.append(label_text() + shorter)
    return lines


def _no_slowdown(recorded: str, ideal: str, lang: str) -> str:
    return tell(
        "a step replays in {recorded}, as with ideal durations"
        if recorded == ideal
        else "a step replays in {recorded}; ideal durations would make it {ideal}",
        lang,
        recorded=recorded,
        ideal=ideal,
    )


def left_out_lines(stats: Statistics, *, lang: str = "en") -> list[str]:
    """Returns which steps were left out, if any."""
    if not stats.left_out:
        return []
    steps = listed(stats.left_out)
    return [tell("left out, not finished by every rank: step {steps}", lang, steps=steps)]


def _table(*headings: str) -> Table:
    table = Table()
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _add_more(table: Table, rows: Sequence[object], lang: str) -> None:
    if len(rows) > ROWS_SHOWN:
        table.add_row("…", tell("{count:,} more", lang, count=len(rows) - ROWS_SHOWN))


def count_text(number: int, what: str, lang: str) -> str:
    """Returns a number of things, of which ``phrases`` has the plural.

    >>> count_text(3, "microbatch", "en"), count_text(1, "step", "zh")
    ('3 microbatches', '1 个 step')
    """
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return phrase(f"{number:,} {what if number == 1 else plural}", lang)


def labelled(label: str, lines: Sequence[str]) -> list[str]:
    """Returns ``lines`` behind ``label``, which stands before the first alone."""
    return [label_text("" if at else label) + line for at, line in enumerate(lines)]


def label_text(text: str = "") -> str:
    """Returns what a line begins with, in as many columns as every line has for it."""
    return text + " " * max(1, LABEL_COLUMNS - cell_len(text))


def cut(name: str, letters: int = _NAME_CELLS) -> str:
    """Returns a name of at most so many letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def figures_table(first: str, *others: str) -> Table:
    """Returns an empty table: a first column of names, then figures."""
    table = Table()
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table
