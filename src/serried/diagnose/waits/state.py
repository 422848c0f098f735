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

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from serried.action import Action
from serried.diagnose.evidence.quote import Quote


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
class Frame:
    """Holds one frame of a stack."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class JobGroup:
    """Holds one process group of the job."""

    name: str
    kind: str
    """The kind in the framework's own words, such as ``dp``; ``world`` for all ranks."""
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class RankOperation:
    """Holds one collective or message that a rank issued; None is what is not known."""

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


@dataclass(frozen=True)
class RankState:
    """Holds what is known of one rank at the moment at which the job stands."""

    rank: int
    condition: RankCondition = RankCondition.UNKNOWN
    issued: tuple[RankOperation, ...] = ()
    """The last operations that it issued, in their order; how many, the source decides."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many collectives it issued in each group, by the group's name, as far as told."""
    doing: RankOperation | None = None
    """The operation that it waits in; None where it is in none, or that is not known."""
    stack: tuple[Frame, ...] = ()
    """The main thread's stack, innermost frame first; () where there is none."""
    step: int | None = None
    """The step that it is in."""
    quotes: tuple[Quote, ...] = ()


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
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The layout's sizes by their neutral names."""
    gpus_per_node: int | None = None
