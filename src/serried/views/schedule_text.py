"""Simulated schedules as lines and tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from serried.errors import listed
from serried.schedule import ENTRIES
from serried.schedule.costs import Number
from serried.views.schedule_document import Measured

RANKS_SHOWN = 16


def headline(measured: Measured) -> str:
    """Returns one line: the name and the sizes."""
    schedule = measured.schedule
    chunks = schedule.placement.stages_per_rank
    return (
        f"{schedule.name}: {schedule.num_ranks:,} ranks, {schedule.num_microbatches:,} "
        f"microbatches, {chunks} stage{'s' if chunks > 1 else ''} a rank"
    )


def number_lines(measured: Measured) -> list[str]:
    """Returns what the simulation tells, a line each."""
    simulation, bubble = measured.simulation, measured.bubble
    lines = [
        f"makespan     {number_text(simulation.makespan)}, of which work "
        f"{_work(measured)} on each rank",
        f"bubble       {_percent(bubble.of_makespan)} of the makespan, "
        f"{_percent(bubble.over_ideal)} over the ideal, "
        f"{_percent(bubble.longest_window)} of the longest window",
        f"activations  {_listed(measured.peaks.to_weight.tolist())} at most, counted to W; "
        f"{_listed(measured.peaks.to_input.tolist())} to I",
        f"idle         {_causes(measured)}",
        f"latency      each unit more adds {measured.latency_adds} to the makespan",
    ]
    if longest := _waits(measured):
        lines.append(f"waits        {longest}")
    for form in measured.closed_forms:
        lines.append(
            f"closed form  {form.formula} = {number_text(form.value)}, {form.quantity.value}; "
            f"exact {'for any sizes' if form.region == 'always' else f'for {form.region}'}"
        )
    return lines


def comparison_table(several: Sequence[Measured]) -> Table:
    """Returns a row per schedule: time, the three bubbles, memory and latency.

    Times are those of one stage, so a schedule of two stages a rank has twice the work.
    """
    table = _table("schedule", "makespan", "work", "bubble", "over ideal", "in window", "peak to W")
    for name in ("to I", "a unit of latency adds"):
        table.add_column(name, justify="right")
    for measured in several:
        bubble = measured.bubble
        table.add_row(
            measured.schedule.name,
            number_text(measured.simulation.makespan),
            _work(measured),
            _percent(bubble.of_makespan),
            _percent(bubble.over_ideal),
            _percent(bubble.longest_window),
            str(measured.peaks.to_weight.max()),
            str(measured.peaks.to_input.max()),
            str(measured.latency_adds),
        )
    return table


def registry_table() -> Table:
    """Returns a row per schedule that there is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("schedule", "what it is", "needs", "source"):
        table.add_column(name)
    for entry in ENTRIES.values():
        table.add_row(entry.name, entry.about, entry.needs, entry.source)
    return table


def number_text(number: Number) -> str:
    """Prints a time: whole numbers as they are, others with six figures.

    >>> number_text(1234), number_text(0.333333333)
    ('1,234', '0.333333')
    """
    return f"{int(number):,}" if number == int(number) else f"{float(number):,.6g}"


def _table(first: str, *names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _percent(share: Number) -> str:
    return f"{100 * float(share):.1f}%"


def _work(measured: Measured) -> str:
    simulation = measured.simulation
    values = [simulation.ticks.number(ticks) for ticks in simulation.work]
    low, high = min(values), max(values)
    return number_text(low) if low == high else f"{number_text(low)} to {number_text(high)}"


def _listed(numbers: list[int]) -> str:
    if len(set(numbers)) == 1:
        return str(numbers[0])
    return listed(numbers, limit=RANKS_SHOWN)


def _causes(measured: Measured) -> str:
    causes = [
        f"{cause.words} {number_text(time)}"
        for cause, time in measured.idle.by_cause().items()
        if time
    ]
    return f"{number_text(measured.idle.total())} on all ranks" + (
        f": {listed(causes)}" if causes else ""
    )


def _waits(measured: Measured) -> str:
    stages = list(measured.idle.by_stage().items())[:3]
    return listed(f"{number_text(time)} for stage {stage}" for stage, time in stages)
