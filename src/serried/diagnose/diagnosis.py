"""A diagnosis: what is wrong, with whom, on what ground, what to do, and what is not known.

    Diagnosis
    ├── causes            the likeliest first; the first is the answer
    │   ├── verdict       one sentence that names rank, node, group, stage, as far as told
    │   ├── chain         sentences from the root to those who wait
    │   ├── quotes        the lines that it rests on
    │   └── cures         what to do next
    └── missing           what would tell more, and how to have it the next time

>>> healthy = Diagnosis((), ranks_heard=(0, 1), world_size=2)
>>> healthy.cause_class
<CauseClass.NO_FAULT: 'no_fault'>
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.sign import CollectiveFacts
from serried.finding import Sentence
from serried.shown import Displayed


class CauseClass(Enum):
    """Names the fifteen classes into which causes fall."""

    HANG = "hang"
    EXCEPTION = "exception"
    NETWORK = "network"
    HOST_OOM = "host_oom"
    HARDWARE = "hardware"
    STORAGE = "storage"
    DATA = "data"
    GPU_OOM = "gpu_oom"
    CUDA_ERROR = "cuda_error"
    STARTUP = "startup"
    NODE_LOST = "node_lost"
    STRAGGLER = "straggler"
    EXTERNAL_STOP = "external_stop"
    NUMERICS = "numerics"
    NO_FAULT = "no_fault"


@dataclass(frozen=True)
class Waiting:
    """Says that a rank waits, for whom, and in what."""

    rank: int
    waits_for: tuple[int, ...]
    what: Sentence
    """Such as ``all-reduce 456 of dp 3``."""
    directly: bool = True
    """Whether it waits for a root itself, not for another that waits."""


@dataclass(frozen=True)
class Cause:
    """Holds one cause with its ground."""

    cause_class: CauseClass
    kind: str
    """Finer than the class: ``never_arrived``, ``mismatch_size``, ``xid`` ..."""
    ranks: tuple[int, ...] | None
    """The culprits as global ranks; None: none can be told; (): no rank is at fault."""
    verdict: Sentence
    confidence: float
    """Between 0 (a guess) and 1 (derived)."""
    chain: tuple[Sentence, ...] = ()
    quotes: tuple[Quote, ...] = ()
    cures: tuple[Sentence, ...] = ()
    groups: tuple[str, ...] = ()
    collective: CollectiveFacts | None = None
    waiting: tuple[Waiting, ...] = ()
    cost: float | None = None
    """The share of a step that it costs, for what only slows the job down."""


@dataclass(frozen=True)
class Diagnosis(Displayed):
    """Holds what is wrong with a job, the likeliest cause first, and what is not known."""

    causes: tuple[Cause, ...]
    missing: tuple[Sentence, ...] = ()
    """What evidence is missing, each with how to have it."""
    notes: tuple[Sentence, ...] = ()
    """What was odd in the evidence itself: another job's dump, a contradiction."""
    ranks_heard: tuple[int, ...] = ()
    world_size: int | None = None
    was_read: bool = True
    """Whether anything was there to read: a line of a log, a dump, a record."""

    @property
    def cause_class(self) -> CauseClass:
        """The class of the first cause, or that no fault was found."""
        return self.causes[0].cause_class if self.causes else CauseClass.NO_FAULT

    @property
    def found(self) -> bool:
        """Whether anything is wrong."""
        return self.cause_class is not CauseClass.NO_FAULT
