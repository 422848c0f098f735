"""Simulated schedules as lines and tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from serried.errors import listed
from serried.finding import said
from serried.pipeline import ENTRIES
from serried.pipeline.closed_form import ClosedForm
from serried.pipeline.costs import Number
from serried.pipeline.measured import MeasuredSchedule
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table

LABEL_COLUMNS = 13
RANKS_SHOWN = 16


def headline(measured: MeasuredSchedule, *, lang: str = "en") -> str:
    """Returns one line: the name and the sizes."""
    schedule = measured.schedule
    chunks = schedule.placement.stages_per_rank
    return tell(
        "{schedule}: {ranks:,} ranks, {microbatches:,} microbatches, {chunks} stages a rank"
        if chunks > 1
        else "{schedule}: {ranks:,} ranks, {microbatches:,} microbatches, {chunks} stage a rank",
        lang,
        schedule=schedule.name,
        ranks=schedule.num_ranks,
        microbatches=schedule.num_microbatches,
        chunks=chunks,
    )


def number_lines(measured: MeasuredSchedule, *, lang: str = "en") -> list[str]:
    """Returns what the simulation tells, a line each."""
    simulation, bubble = measured.simulation, measured.bubble
    makespan = tell(
        "{makespan}, of which work {work} on each rank",
        lang,
        makespan=number_text(simulation.makespan),
        work=_work(measured, lang),
    )
    shares = tell(
        "{makespan} of the makespan, {ideal} over the ideal, {window} of the longest window",
        lang,
        makespan=_percent(bubble.of_makespan),
        ideal=_percent(bubble.over_ideal),
        window=_percent(bubble.longest_window),
    )
    peaks = tell(
        "{weight} at most, counted to W; {inputs} to I",
        lang,
        weight=_listed(measured.peaks.to_weight.tolist()),
        inputs=_listed(measured.peaks.to_input.tolist()),
    )
    adds = tell("each unit more adds {adds} to the makespan", lang, adds=measured.latency_adds)
    rows = [
        (tell("makespan", lang), makespan),
        (tell("bubble", lang), shares),
        (tell("activations", lang), peaks),
        (tell("idle", lang), _causes(measured, lang)),
        (tell("latency", lang), adds),
    ]
    if longest := _waits(measured, lang):
        rows.append((tell("waits", lang), longest))
    if beyond := exceeded_line(measured, lang=lang):
        rows.append((tell("memory", lang), beyond))
    rows += [(tell("closed form", lang), _form(form, lang)) for form in measured.closed_forms]
    return [label + " " * (LABEL_COLUMNS - cell_len(label)) + text for label, text in rows]


def exceeded_line(measured: MeasuredSchedule, *, lang: str = "en") -> str:
    """Returns that a schedule takes more than the limit, on how many ranks; "" where it does not.

    A schedule made by rule keeps its order under any limit; only ``auto`` heeds it.
    """
    if not measured.exceeded:
        return ""
    assert measured.memory_limit is not None
    return tell(
        "{schedule} needs {most} on rank {rank}, more than the limit of {limit}; ranks beyond it: "
        "{count} of {ranks}",
        lang,
        schedule=measured.schedule.name,
        most=number_text(max(most for _, most in measured.exceeded)),
        rank=max(measured.exceeded, key=lambda each: each[1])[0],
        limit=number_text(measured.memory_limit),
        count=len(measured.exceeded),
        ranks=measured.schedule.num_ranks,
    )


def _form(form: ClosedForm, lang: str) -> str:
    """Returns a formula, its value, and where it is exact."""
    return tell(
        "{formula} = {value}, {what}; exact for any sizes"
        if form.region == "always"
        else "{formula} = {value}, {what}; exact for {region}",
        lang,
        formula=form.formula,
        value=number_text(form.value),
        what=form.quantity.value,
        region=phrase(form.region, lang),
    )


def comparison_table(several: Sequence[MeasuredSchedule], *, lang: str = "en") -> Table:
    """Returns a row per schedule: time, the three bubbles, memory and latency.

    Times are those of one stage, so a schedule of two stages a rank has twice the work.
    """
    table = _table(
        tell("schedule", lang),
        tell("makespan", lang),
        tell("work", lang),
        tell("bubble", lang),
        tell("over ideal", lang),
        tell("in window", lang),
        tell("peak to W", lang),
        tell("to I", lang),
        tell("a unit of latency adds", lang),
    )
    for measured in several:
        bubble = measured.bubble
        table.add_row(
            measured.schedule.name,
            number_text(measured.simulation.makespan),
            _work(measured, lang),
            _percent(bubble.of_makespan),
            _percent(bubble.over_ideal),
            _percent(bubble.longest_window),
            str(measured.peaks.to_weight.max()),
            str(measured.peaks.to_input.max()),
            str(measured.latency_adds),
        )
    return table


def registry_table(*, lang: str = "en") -> Table:
    """Returns a row per schedule that there is."""
    table = Table()
    for name in (
        tell("schedule", lang),
        tell("what it is", lang),
        tell("needs", lang),
        tell("source", lang),
    ):
        table.add_column(name)
    for entry in ENTRIES.values():
        words = (phrase(text, lang) for text in (entry.about, entry.needs, entry.source))
        table.add_row(entry.name, *words)
    return table


def number_text(number: Number) -> str:
    """Prints a time: whole numbers as they are, others with six figures.

    >>> number_text(1234), number_text(0.333333333)
    ('1,234', '0.333333')
    """
    return f"{int(number):,}" if number == int(number) else f"{float(number):,.6g}"


def _table(first: str, *names: str) -> Table:
    table = Table()
    table.add_column(first)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _percent(share: Number) -> str:
    return f"{100 * float(share):.1f}%"


def _work(measured: MeasuredSchedule, lang: str) -> str:
    simulation = measured.simulation
    values = [simulation.ticks.number(ticks) for ticks in simulation.work]
    low, high = min(values), max(values)
    if low == high:
        return number_text(low)
    return tell("{least} to {most}", lang, least=number_text(low), most=number_text(high))


def _listed(numbers: list[int]) -> str:
    if len(set(numbers)) == 1:
        return str(numbers[0])
    return listed(numbers, limit=RANKS_SHOWN)


def _causes(measured: MeasuredSchedule, lang: str) -> str:
    causes = [
        f"{phrase(cause.words, lang)} {number_text(time)}"
        for cause, time in measured.idle.by_cause().items()
        if time
    ]
    return tell(
        "{total} on all ranks: {causes}" if causes else "{total} on all ranks",
        lang,
        total=number_text(measured.idle.total()),
        causes=listed(causes),
    )


def _waits(measured: MeasuredSchedule, lang: str) -> str:
    stages = list(measured.idle.by_stage().items())[:3]
    return say(
        listed(
            said("{time} for stage {stage}", time=number_text(time), stage=stage)
            for stage, time in stages
        ),
        lang,
    )
