"""The registry: every schedule by its name, with what it takes, what it needs and its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from serried.errors import InputError, listed, nearest
from serried.pipeline.costs import Costs
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.chimera import chimera
from serried.pipeline.schedules.controllable_memory.one_f_one_b_v import one_f_one_b_v
from serried.pipeline.schedules.controllable_memory.v_half import v_half
from serried.pipeline.schedules.controllable_memory.v_min import v_min
from serried.pipeline.schedules.dualpipe import dualpipe
from serried.pipeline.schedules.dualpipev import dualpipev
from serried.pipeline.schedules.eager_one_f_one_b import eager_one_f_one_b
from serried.pipeline.schedules.gpipe import gpipe
from serried.pipeline.schedules.group_interleaved import group_interleaved
from serried.pipeline.schedules.hanayo import hanayo
from serried.pipeline.schedules.interleaved import interleaved_one_f_one_b
from serried.pipeline.schedules.looped_bfs import looped_bfs
from serried.pipeline.schedules.one_f_one_b import one_f_one_b
from serried.pipeline.schedules.sizes import exactly
from serried.pipeline.schedules.zero_bubble.auto import Memory, auto
from serried.pipeline.schedules.zero_bubble.interleaved import interleaved_zero_bubble
from serried.pipeline.schedules.zero_bubble.zb_h1 import zb_h1
from serried.pipeline.schedules.zero_bubble.zb_h2 import zb_h2
from serried.pipeline.schedules.zero_bubble.zbv import zbv


@dataclass(frozen=True)
class Request:
    """Holds what is asked of a schedule; what is None takes the schedule's own default."""

    num_ranks: int
    num_microbatches: int
    chunks: int | None = None
    """Stages on each rank."""
    group: int | None = None
    """Microbatches that run through a chunk before the next chunk does."""
    moe_overlap: bool = False
    costs: Costs | None = None
    memory: Memory | None = None


@dataclass(frozen=True)
class ScheduleEntry:
    """Describes one schedule of the registry: how to make it, and what to say about it."""

    name: str
    generate: Callable[[Request], Schedule]
    about: str
    needs: str
    source: str
    chunks: int | None = None
    """The only number of stages a rank it can have, if there is only one."""
    takes_group: bool = False


def _sized(make: Callable[[int, int], Schedule]) -> Callable[[Request], Schedule]:
    return lambda asked: make(asked.num_ranks, asked.num_microbatches)


def _chunked(make: Callable[[int, int, int], Schedule]) -> Callable[[Request], Schedule]:
    return lambda asked: make(asked.num_ranks, asked.num_microbatches, asked.chunks or 2)


def _interleaved(asked: Request) -> Schedule:
    return interleaved_one_f_one_b(
        asked.num_ranks,
        asked.num_microbatches,
        asked.chunks or 2,
        group=asked.group,
        moe_overlap=asked.moe_overlap,
    )


def _interleaved_zb(asked: Request) -> Schedule:
    p, m = asked.num_ranks, asked.num_microbatches
    return interleaved_zero_bubble(p, m, asked.chunks or 2, group=asked.group)


def _group_interleaved(asked: Request) -> Schedule:
    p, m = asked.num_ranks, asked.num_microbatches
    return group_interleaved(p, m, asked.chunks or 2, group=asked.group)


def _auto(asked: Request) -> Schedule:
    p, m = asked.num_ranks, asked.num_microbatches
    return auto(p, m, asked.costs, memory=asked.memory)


ENTRIES = {
    entry.name: entry
    for entry in (
        ScheduleEntry(
            "gpipe", _sized(gpipe), "all forwards, then all backwards", "any m", "1811.06965", 1
        ),
        ScheduleEntry(
            "1f1b", _sized(one_f_one_b), "one forward, one backward", "any m", "2006.09503", 1
        ),
        ScheduleEntry(
            "eager-1f1b",
            _sized(eager_one_f_one_b),
            "1F1B with twice the warm-up, to hide latency",
            "any m",
            "PyTorch, Interleaved1F1B with one stage a rank",
            1,
        ),
        ScheduleEntry(
            "interleaved-1f1b",
            _interleaved,
            "several stages a rank, depth first, in groups",
            "groups that leave no rest below p",
            "2104.04473, Megatron-LM",
            takes_group=True,
        ),
        ScheduleEntry(
            "looped-bfs",
            _chunked(looped_bfs),
            "several stages a rank, breadth first",
            "any m",
            "2211.05953",
        ),
        ScheduleEntry(
            "zb-h1",
            _sized(zb_h1),
            "1F1B with weight halves put off, at 1F1B's memory",
            "any m",
            "2401.10241",
            1,
        ),
        ScheduleEntry(
            "zb-h2",
            _sized(zb_h2),
            "no idle slot in the window, at twice the memory",
            "m >= 2p - 1",
            "2401.10241",
            1,
        ),
        ScheduleEntry(
            "interleaved-zb",
            _interleaved_zb,
            "interleaved 1F1B with weight halves put off",
            "groups that divide m",
            "PyTorch, InterleavedZeroBubble",
            takes_group=True,
        ),
        ScheduleEntry(
            "zbv", _sized(zbv), "ZB-V: zero bubble on a V", "any m", "2401.10241, section 6", 2
        ),
        ScheduleEntry(
            "v-half", _sized(v_half), "a V at half of 1F1B's memory", "any m", "2405.15362", 2
        ),
        ScheduleEntry(
            "v-min", _sized(v_min), "a V at a third of 1F1B's memory", "any m", "2405.15362", 2
        ),
        ScheduleEntry(
            "1f1b-v",
            _sized(one_f_one_b_v),
            "a V with whole backwards, at two thirds of 1F1B's memory",
            "any m",
            "2405.15362",
            2,
        ),
        ScheduleEntry(
            "group-interleaved",
            _group_interleaved,
            "interleaved in small groups, to save memory",
            "groups of p/2 to p",
            "2503.01328",
            takes_group=True,
        ),
        ScheduleEntry(
            "dualpipe",
            _sized(dualpipe),
            "both ways at once, forwards overlapping backwards",
            "even p, even m >= 2p",
            "2412.19437, deepseek-ai/DualPipe",
            2,
        ),
        ScheduleEntry(
            "dualpipev",
            _sized(dualpipev),
            "DualPipe folded into a V",
            "m >= 2p",
            "deepseek-ai/DualPipe, PyTorch",
            2,
        ),
        ScheduleEntry(
            "chimera",
            _sized(chimera),
            "two opposed 1F1B pipelines",
            "even p, p divides m",
            "2107.06925",
            2,
        ),
        ScheduleEntry(
            "hanayo", _chunked(hanayo), "waves over the ranks", "even chunks", "2308.15762"
        ),
        ScheduleEntry(
            "auto",
            _auto,
            "the best found for given times and a memory limit",
            "any m",
            "2401.10241, section 3",
            1,
        ),
    )
}
"""All schedules, in the order in which their ideas build on one another."""


def known(name: str) -> None:
    """Raises InputError for a name that no schedule has."""
    if name not in ENTRIES:
        if near := nearest(name, ENTRIES):
            raise InputError(
                "there is no schedule '{name}'; there are {names}; did you mean {near}?",
                name=name[:40],
                names=listed(ENTRIES, limit=len(ENTRIES)),
                near=near,
            )
        raise InputError(
            "there is no schedule '{name}'; there are {names}",
            name=name[:40],
            names=listed(ENTRIES, limit=len(ENTRIES)),
        )


def generate(name: str, asked: Request) -> Schedule:
    """Makes a schedule by its name.

    >>> print(*generate("1f1b", Request(2, 2))[0])
    0F0 0F1 0B0 0B1

    Raises InputError for an unknown name and for sizes that the schedule cannot have.
    """
    known(name)
    entry = ENTRIES[name]
    if entry.chunks and asked.chunks is not None:
        exactly(name, "chunks", asked.chunks, entry.chunks)
    # Schedules that leave the number of chunks open take two by default.
    _hold(name, asked, asked.chunks or entry.chunks or 2)
    return entry.generate(asked)


MOST_CELLS = 1 << 22
"""Microbatches times stages that fit in 3 GB with all their actions and times."""


def _hold(name: str, asked: Request, chunks: int) -> None:
    if asked.num_ranks * asked.num_microbatches * chunks > MOST_CELLS:
        raise InputError(
            "{name} with {ranks} ranks, {microbatches} microbatches and {chunks} chunks cannot be "
            "held; the product of the three is at most {most}",
            name=name,
            ranks=asked.num_ranks,
            microbatches=asked.num_microbatches,
            chunks=chunks,
            most=MOST_CELLS,
        )
