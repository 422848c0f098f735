"""A Trace and its statistics for the terminal: what was merged, steps, ranks, the bubble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.cells import cell_len

from serried.action import COMPUTE
from serried.errors import listed
from serried.finding import said
from serried.trace.measure.ranks.slowest import RankPace
from serried.trace.measure.statistics import BubbleStatistics, Statistics
from serried.trace.measure.warm_up import FEWEST_STEPS, WARM_UP
from serried.trace.measure.what_if import WhatIf
from serried.trace.merge.store import Merged
from serried.trace.model.messages import Alignment
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.trace import Trace
from serried.units import duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table
from serried.views.trace.clocks import clock_lines
from serried.views.trace.words import CAUSES, OF_A_STEP, WIDTH, host_text, stages_text, unmeasured

_WORTH_SAYING = 0.005
_LEAST_SLOWDOWN = 0.0005
"""The least that is printed as 1.001x."""
_LARGE_SHARE = 0.5
LABEL_COLUMNS = 20
ROOM = WIDTH - LABEL_COLUMNS
"""Columns behind a label."""


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
    compute = (
        tell("; planned, nothing ran", lang)
        if trace.is_planned
        else tell("; compute is emulated by fixed times", lang)
        if trace.is_emulated
        else ""
    )
    return [merged, schedule + compute]


def steps_table(trace: Trace, stats: Statistics, *, rows: int, lang: str = "en") -> Table:
    """Returns a row for each of the ``rows`` longest complete steps, the longest first."""
    idle = tell("bubble" if trace.has_pipeline else "idle", lang)
    table = right_table("step", tell("window", lang), tell("busy, a rank", lang), idle)
    slowest = sorted(stats.steps, key=lambda each: (-each.window_ns, each.step))
    for step in slowest[:rows]:
        busy = duration_text(step.busy_ns / stats.num_ranks)
        table.add_row(str(step.step), duration_text(step.window_ns), busy, f"{step.bubble:.1%}")
    add_more(table, len(slowest) - rows, lang)
    return table


def ranks_table(
    trace: Trace, stats: Statistics, paces: Sequence[RankPace], *, rows: int, lang: str = "en"
) -> Table:
    """Returns a row for each of ``rows`` ranks: where its time in the windows went, a mean step.

    Slow ranks stand first, then those that compute longest.
    """
    compute = tell("compute", lang)
    # A run without such waits gets no column of zeros for them.
    has_exchanges = any(each.exchange_wait_ns for each in stats.ranks)
    exchange = (tell("exchange wait", lang),) if has_exchanges else ()
    stage = (phrase("stage", lang),) if trace.has_pipeline else ()
    late = {each.rank: each.waited_for_ns for each in paces if each.waited_for_ns is not None}
    waited_for = (tell("others wait", lang),) if late else ()
    headings = compute, tell("receive wait", lang), *exchange, tell("other", lang), *waited_for
    table = right_table("rank", *stage, tell("host", lang), *headings)
    held = {each.rank: stages_text(each.stages) for each in paces} if paces else stages_of(trace)
    slow = {each.rank for each in paces if each.is_slow}
    ordered = sorted(stats.ranks, key=lambda each: (each.rank not in slow, -each.compute_ns))
    for rank in ordered[:rows]:
        waits = (rank.exchange_wait_ns,) if has_exchanges else ()
        times = (rank.compute_ns, rank.receive_wait_ns, *waits, rank.other_ns)
        texts = [*map(duration_text, times)]
        if late:
            texts.append(waited_for_text(late.get(rank.rank)))
        stages = [held.get(rank.rank, "")] if stage else []
        table.add_row(str(rank.rank), *stages, host_text(trace, rank.rank), *texts)
    add_more(table, len(ordered) - rows, lang)
    return table


def waited_for_text(ns: float | None) -> str:
    """Returns how long the others wait for a rank; nothing where it waits for them."""
    return duration_text(ns) if ns is not None and ns > 0 else ""


def stages_of(trace: Trace) -> dict[int, str]:
    """Returns the stages that each rank computed, by rank."""
    spans = trace.spans.where(np.isin(trace.spans.kind, sorted(COMPUTE)))
    pairs = np.unique(np.stack([spans.rank, spans.stage]), axis=1)
    return {
        rank: stages_text(pairs[1, pairs[0] == rank].tolist())
        for rank in np.unique(pairs[0]).tolist()
    }


def warm_up_lines(stats: Statistics, *, lang: str = "en") -> list[str]:
    """Returns which steps means are of, and by what rule others were left out."""
    if not stats.steps:
        return []
    told = [
        tell(
            "of {steps}; none left out, for of fewer than {few} none is the usual one"
            if len(stats.steps) < FEWEST_STEPS
            else "of {steps}; left out, as starting up over {times}x the median: step {which}"
            if stats.num_warm_up
            else "of {steps}; none left out: no first step took over {times}x the median",
            lang,
            steps=count_text(len(stats.counted), "step", lang),
            few=FEWEST_STEPS,
            times=WARM_UP,
            which=listed(each.step for each in stats.steps[: stats.num_warm_up]),
        )
    ]
    return labelled(tell("means", lang), told)


def bubble_lines(
    trace: Trace,
    stats: Statistics,
    *,
    lang: str = "en",
    schedule: str | None = None,
    is_whole: bool = True,
) -> list[str]:
    """Returns the bubble measured, what it is, and the ideal one, or why there is none.

    ``schedule`` is the one recognised where the trace does not name its own. Without a pipeline
    the same share is idle time, of which no schedule says how much there must be. ``is_whole``
    adds the other shares that go by the name of bubble.
    """
    if stats.bubble is None:
        return [unmeasured(trace, lang)]
    meaning = tell(
        "1 - busy / (ranks x window), of emulated compute; waits are not busy"
        if trace.is_emulated
        else "1 - busy / (ranks x window); waits inside computations are not busy",
        lang,
    )
    label = label_text(tell("bubble measured" if trace.has_pipeline else "idle measured", lang))
    lines = [f"{label}{stats.bubble:6.1%}   {meaning}"]
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
        lines += [label_text("") + others] if is_whole else []
        lines += _idle_lines(stats.bubbles, lang, CAUSES)
    if not is_whole:
        return lines
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
    return labelled(tell("idle time by cause", lang), rows_of(told, lang))


# The least share that is printed as 0.1%.
_LEAST_SHARE = 0.0005


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


def message_lines(
    stats: Statistics | Merged, *, lang: str = "en", is_whole: bool = True
) -> list[str]:
    """Returns how many sends and receives found each other, and what they say of the clocks.

    ``is_whole`` adds a line for each host's clock.
    """
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
    return [*lines, *(clock_lines(aligned.clocks, lang=lang) if is_whole else [])]


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


def what_if_lines(replayed: WhatIf | None, *, lang: str = "en", is_whole: bool = True) -> list[str]:
    """Returns what replaying the run with ideal durations says, if it could be replayed.

    ``is_whole`` adds what one stage's and one rank's durations make of it.
    """
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
    if replayed.slowdown - 1 < _WORTH_SAYING or not is_whole:
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


def right_table(*headings: str) -> Table:
    """Returns a table of figures under ``headings``."""
    table = Table()
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def add_more(table: Table, count: int, lang: str) -> None:
    """Adds how many rows a table does not show, where there are any."""
    if count > 0:
        table.add_row("…", tell("{count:,} more", lang, count=count))


def count_text(number: int, what: str, lang: str) -> str:
    """Returns a number of things, of which ``phrases`` has the plural.

    >>> count_text(3, "microbatch", "en"), count_text(1, "step", "zh")
    ('3 microbatches', '1 步')
    """
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return phrase(f"{number:,} {what if number == 1 else plural}", lang)


def labelled(label: str, lines: Sequence[str]) -> list[str]:
    """Returns ``lines`` behind ``label``, which stands before the first alone."""
    return [label_text("" if at else label) + line for at, line in enumerate(lines)]


def rows_of(items: Sequence[str], lang: str) -> list[str]:
    """Returns ``items`` joined by commas, as many to a line as fit behind a label."""
    # The limit keeps `listed` from cutting a row short at its usual 12 items.
    rows: list[list[str]] = [[]]
    for item in items:
        if rows[-1] and cell_len(str(say(listed([*rows[-1], item], limit=64), lang))) > ROOM:
            rows.append([])
        rows[-1].append(item)
    return [str(say(listed(row, limit=64), lang)) for row in rows if row]


def label_text(text: str = "") -> str:
    """Returns what a line begins with, in as many columns as every line has for it."""
    return text + " " * max(1, LABEL_COLUMNS - cell_len(text))


def figures_table(first: str, *others: str) -> Table:
    """Returns an empty table: a first column of names, then figures."""
    table = Table()
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table
