"""A simulated schedule as a picture in text: a row a rank, the microbatch in the cell.

    rank 0  F0 F1 .. B0--- F2 B1--- ...      capital letters: the first stage of the rank,
                                             small ones: its others
Where the whole does not fit, one letter stands for what fills most of a column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from serried.action import ActionKind
from serried.pipeline import Simulation
from serried.pipeline.longest_path import Times
from serried.views.colours import ACTIONS
from serried.views.sentences import tell

IDLE = "·"
_INK = "#16191d"


@dataclass(frozen=True)
class _Cell:
    begin: int
    end: int
    label: str
    kind: ActionKind


def picture(simulation: Simulation, width: int, *, lang: str = "en") -> list[Text]:
    """Returns a line per rank and a legend, at most ``width`` columns wide."""
    schedule = simulation.schedule
    names = [f"rank {rank}  " for rank in range(schedule.num_ranks)]
    margin = max(map(len, names))
    columns, per_tick = _scale(simulation, width - margin)
    lines = []
    for rank, name in enumerate(names):
        line = Text(name.rjust(margin))
        at = 0
        for cell in _cells(simulation, rank, columns, per_tick):
            line.append(IDLE * (cell.begin - at))
            line.append(_fitted(cell), style=f"{_INK} on {ACTIONS[cell.kind]}")
            at = cell.end
        line.append(IDLE * (columns - at))
        lines.append(line)
    return [*lines, Text(""), _legend(simulation, margin, lang)]


def _scale(simulation: Simulation, room: int) -> tuple[int, float]:
    """Returns how many columns the makespan takes, and the columns of one tick.

    If possible every action has as many columns as its label needs for its shortest kin.
    """
    makespan = simulation.rank_end.max()
    if not makespan:
        return 0, 0.0
    label = 1 + len(str(simulation.schedule.microbatches_each_way - 1))
    if simulation.start.dtype != np.float64:
        # The quantum divides every start and end, so where it has a label's columns all edges fall
        # on whole columns. As many different times as 100,000 have no room in any terminal.
        times = np.unique(np.concatenate([simulation.start, simulation.end]))
        quantum = math.gcd(*(int(time) for time in times)) if len(times) < 100_000 else 1
        columns = int(makespan) // quantum * label
        if columns <= room:
            return columns, label / quantum
    return room, room / float(makespan)


def _cells(simulation: Simulation, rank: int, columns: int, per_tick: float) -> list[_Cell]:
    schedule = simulation.schedule
    first, last = schedule.first[rank], schedule.first[rank + 1]
    begins = _columns(simulation.start[first:last], per_tick)
    ends = _columns(simulation.end[first:last], per_tick)
    mine = [stage for _, stage in schedule.placement.stages_of(rank)]
    cells: list[_Cell] = []
    at = 0
    for begin, end, kind, stage, direction, microbatch, joined in zip(
        begins, ends, *(column[first:last].tolist() for column in _labels(simulation)), strict=True
    ):
        # The halves of an overlapped pair run at once: the forward takes the left half of their
        # columns, and the backward begins where it ends.
        begin = max(begin, at)
        if end <= begin:
            continue
        is_first = stage == mine[0] and direction == 0
        letter = ActionKind(kind).name[0]
        label = f"{letter if is_first else letter.lower()}{microbatch}"
        if joined:
            end = begin + (end - begin + 1) // 2
        cells.append(_Cell(begin, min(end, columns), label, ActionKind(kind)))
        at = end
    return cells


def _labels(simulation: Simulation) -> tuple[Times, ...]:
    schedule = simulation.schedule
    return (
        schedule.kind, schedule.stage, schedule.direction, schedule.microbatch, schedule.joined,
    )  # fmt: skip


def _columns(ticks: Times, per_tick: float) -> list[int]:
    return [round(float(tick) * per_tick) for tick in ticks]


def _fitted(cell: _Cell) -> str:
    """Returns a cell's text: its label if there is room for it, else its letter."""
    width = cell.end - cell.begin
    label = cell.label if len(cell.label) <= width else cell.label[0]
    return label.ljust(width, "─")


def _legend(simulation: Simulation, margin: int, lang: str) -> Text:
    schedule = simulation.schedule
    words = {
        ActionKind.F: tell("F forward", lang),
        ActionKind.B: tell("B backward", lang),
        ActionKind.I: tell("I input gradient", lang),
        ActionKind.W: tell("W weight gradient", lang),
    }
    legend = Text(" " * margin)
    for kind, text in words.items():
        if (schedule.kind == kind).any():
            legend.append(f" {text} ", style=f"{_INK} on {ACTIONS[kind]}").append("  ")
    legend.append(f"{IDLE} {tell('idle', lang)}")
    if schedule.placement.stages_per_rank > 1:
        legend.append("  ").append(tell("small: other stages", lang))
    return legend
