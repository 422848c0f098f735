"""The state of a job that stands still: what each rank issued, where it is, and how it ended.

    JobState
    ├── groups    JobGroup(name="dp_3", kind="dp", ranks=(5, 7))
    └── ranks     RankState(5, issued=[all_reduce 4 of dp_3, ...], doing=barrier 2 of world)

Whoever reads dumps, stacks, records or logs fills in what the source tells and leaves the rest
open; whoever reasons takes every open value for unknown, never for "nothing happened".

>>> waiting = RankState(7, doing=RankOperation("all_reduce", group="dp_3", seq=6))
>>> waiting.condition
<RankCondition.UNKNOWN: 'unknown'>
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from serried.action import Action
from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.stacks.stack import Frame
from serried.finding import Sentence

MESSAGES = frozenset({"send", "recv"})
"""Operations that wait for one peer."""


class RankCondition(Enum):
    """Says how a rank's process is, as far as anything tells."""

    UNKNOWN = "unknown"
    RUNNING = "running"
    """It lives: it computes, or waits in an operation."""
    STOPPED = "stopped"
    """It is held by a signal (SIGSTOP) or a debugger."""
    DEAD = "dead"
    FINISHED = "finished"
    """It ended in order, with code 0."""


@dataclass(frozen=True)
class JobGroup:
    """Holds one process group of the job."""

    name: str
    kind: str
    """The kind in the framework's own words, such as ``dp``; ``world`` for all ranks."""
    ranks: tuple[int, ...]


class RankOperation(NamedTuple):
    """Holds one collective or message that a rank issued; None is what is not known.

    A large job has millions: a tuple is made in a fraction of the time of a frozen dataclass.
    """

    op: str
    """In torch's words: ``all_reduce``, ``all_gather``, ``send``, ``recv`` ..."""
    group: str | None = None
    """The name of its JobGroup."""
    seq: int | None = None
    """The place among the group's collectives, from 1, as the source counts."""
    peer: int | None = None
    """The other global rank of a message."""
    numel_in: int | None = None
    numel_out: int | None = None
    dtype: str | None = None
    is_finished: bool | None = None
    began_ns: int | None = None
    """Wall time at which it was issued, on its host's clock."""
    step: int | None = None
    action: Action | None = None
    """What of the schedule it belongs to, where the source says it."""
    quote: Quote | None = None
    messages: int | None = None
    """How many messages were issued in its group before it, where only their number is told."""
    is_unseen: bool = False
    """Whether C++ issued it behind Python's back (DDP's buckets), as far as told."""
    is_queued: bool = False
    """Whether it was put into a stream (NCCL), where it stands behind what was put in before."""
    frames: tuple[Frame, ...] = ()
    """Where it was called, innermost frame first; () where the source does not say."""
    may_have_tag: bool = False
    """Whether a message's line, as far as it is known, may give it a tag, which has to be the same
    on both sides."""


@dataclass(frozen=True)
class RankState:
    """Holds what is known of one rank at the moment at which the job stands."""

    rank: int
    condition: RankCondition = RankCondition.UNKNOWN
    issued: tuple[RankOperation, ...] = ()
    """The last operations that it issued, in their order; how many, the source decides."""
    counts: Mapping[str, int] | None = None
    """How many collectives it issued in each group, by the group's name; a group that is not
    named saw none. None where nothing counts them."""
    doing: RankOperation | None = None
    """The operation that it waits in; None where it is in none, or that is not known."""
    stack: tuple[Frame, ...] = ()
    """The main thread's stack, innermost frame first; () where there is none."""
    step: int | None = None
    """The step that it is in."""
    within: Sentence | None = None
    """What of its step it is in, ``1F2 of step 7``, where no stack but a recording tells."""
    expected_bytes: int | None = None
    """What it expected in one message where more came, so that it ended: it differs from who
    sent that, and nothing says yet which of the two is wrong."""
    arrived_bytes: int | None = None
    """What came where that was expected."""
    gave_up: bool = False
    """Whether a limit or a peer's end caught it while it waited: it was in no code of its own."""
    is_active: bool | None = None
    """Whether its main thread ran on a processor when its stack was taken; None if not known."""
    quotes: tuple[Quote, ...] = ()

    @property
    def is_heard_of(self) -> bool:
        """Whether anything tells of it: a dump, a stack, a record, its process."""
        is_told = self.condition is not RankCondition.UNKNOWN or self.within is not None
        return bool(is_told or self.issued or self.stack) or self.counts is not None


@dataclass(frozen=True)
class JobState:
    """Holds all that is known of the ranks of one job, and the groups that they meet in."""

    world_size: int
    groups: tuple[JobGroup, ...]
    ranks: tuple[RankState, ...]
    """By rank; one of which nothing is known stands with RankCondition.UNKNOWN alone."""
    schedule: str | None = None
    """The pipeline schedule, under serried's name, where it is known."""
    num_microbatches: int | None = None
    axes: tuple[tuple[str, int], ...] = ()
    """The layout's axes with their sizes, the fastest first; () where it is not known."""
    gpus_per_node: int | None = None
    keeps_messages: bool = False
    """Whether all ranks were under guards, which write down sends and receives too."""

    @classmethod
    def of(
        cls, world_size: int, groups: Iterable[JobGroup], ranks: Iterable[RankState], **more: Any
    ) -> JobState:
        """Returns a job in which ranks of which nothing is known stand as such."""
        known = {each.rank: each for each in ranks}
        everyone = tuple(known.get(rank) or RankState(rank) for rank in range(world_size))
        return cls(world_size, tuple(groups), everyone, **more)

    @cached_property
    def group_named(self) -> Mapping[str, JobGroup]:
        """The groups by their names."""
        return {group.name: group for group in self.groups}

    @cached_property
    def groups_of(self) -> Mapping[int, tuple[JobGroup, ...]]:
        """The groups that each rank is in."""
        found: dict[int, list[JobGroup]] = {rank: [] for rank in range(self.world_size)}
        for group in self.groups:
            for rank in group.ranks:
                found[rank].append(group)
        return {rank: tuple(groups) for rank, groups in found.items()}

    def coordinates(self, rank: int) -> dict[str, int]:
        """Returns the place of a rank on every axis of the layout; {} where it is not known.

        >>> JobState(8, (), (), axes=(("tp", 2), ("dp", 2), ("pp", 2))).coordinates(5)
        {'tp': 1, 'dp': 0, 'pp': 1}
        """
        found = {}
        for axis, size in self.axes:
            rank, found[axis] = divmod(rank, size)
        return found
