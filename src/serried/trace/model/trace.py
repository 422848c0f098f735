"""Trace: one run's spans on one clock, and all that is known of how they came about."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from serried import frameworks
from serried.action import COMPUTE, Spans
from serried.errors import InputError
from serried.finding import Finding, said
from serried.frameworks import Sizes
from serried.mesh import Layout, Placement
from serried.shown import Displayed
from serried.trace.model.admission import admitted
from serried.trace.model.record import EMULATED, PLANNED, TracedJob
from serried.trace.model.replay import Replay
from serried.trace.model.span_groups import SpanGroup


@dataclass(frozen=True)
class Host:
    """Describes one machine of a run: its name, the ranks it held, and where its clock stands."""

    name: str
    ranks: tuple[int, ...]
    offset_ns: int
    """What turns its CLOCK_MONOTONIC into wall time."""


@dataclass(frozen=True)
class AlignedClock:
    """Says how one host's clock was brought onto the first host's."""

    host: str
    source: str
    """``own`` for the first host, else ``pings``, ``messages``, ``order`` or several joined by +,
    and ``wall`` where nothing ties it to the others."""
    offset_ns: float
    """What was added in the middle of the trace, beyond the hosts' wall clocks."""
    drift: float
    """How much faster the first host's clock ran, per unit."""
    uncertainty_ns: float | None
    """How far it may still be off anywhere in the trace, whatever way messages took; None where
    that is not known."""
    symmetric_ns: float | None = None
    """The same where the fastest message takes as long one way as the other."""


@dataclass(frozen=True, eq=False)
class Trace(Displayed):
    """Holds one run's spans on one clock, and all that is known of how they came about.

    Times start near 0; ``base_ns`` is the wall time of 0, in nanoseconds since 1970. A rank has
    the number that its files give it, everywhere; spans stand by rank, start and end, in
    whatever order they were given (``admission``).

    Raises InputError for spans that no such job has.
    """

    run: str
    job: TracedJob
    spans: Spans
    base_ns: int
    hosts: tuple[Host, ...]
    ranks: tuple[int, ...]
    """The ranks whose files were read, ascending."""
    torn: tuple[int, ...]
    """Ranks whose file has no proper end."""
    missing: tuple[int, ...]
    """Ranks of the world without a file."""
    warnings: tuple[Finding, ...]
    layout: Layout | None
    """The run's groups, where its framework can make them again."""
    clocks: tuple[AlignedClock, ...] = ()
    """How the clocks of its hosts were aligned (``align``); none where that was not done."""
    waits_inside: bool = False
    """Whether a computation's span begins with the wait for its input."""
    replay: Replay | None = None
    """The operations with what they wait for, where the writer said more than spans hold."""
    names: tuple[str, ...] = ()
    """What its user called spans of kind SPAN, whose peer is a place in it."""
    resolution_ns: int = 1
    """How finely its writer tells times: two that seem equal may be so far apart."""
    groups: tuple[SpanGroup, ...] = ()
    """Over what groups collectives of spans ran; a span's ``group`` is a place in it."""

    def __post_init__(self) -> None:
        spans = admitted(self.spans, self.job.world_size)
        changes = np.flatnonzero(np.diff(spans.rank, prepend=-1))
        if unknown := {*spans.rank[changes].tolist()} - {*self.ranks}:
            raise InputError(
                "{run} holds spans of rank {rank}, of which it says that there are none",
                run=self.run,
                rank=min(unknown),
            )
        if int(spans.group.max(initial=-1)) >= len(self.groups):
            raise InputError(
                "a span of {run} is of group {group}, of which it holds {count}; a number in the "
                "files is damaged",
                run=self.run,
                group=int(spans.group.max()),
                count=len(self.groups),
            )
        object.__setattr__(self, "spans", spans)

    def called(self, number: int) -> str:
        """Returns what its user called a span, by the number in its peer; "" for no name."""
        return self.names[number] if 0 <= number < len(self.names) else ""

    def with_warnings(self, *findings: Finding) -> Trace:
        """Returns the same trace with more to be said of it."""
        return replace(self, warnings=(*self.warnings, *findings))

    @property
    def placement(self) -> Placement:
        """Which node each rank is on, as the job was laid out."""
        return Placement(self.job.world_size, self.job.gpus_per_node)

    @property
    def has_pipeline(self) -> bool:
        """Whether the model ran in several stages: without, there is no bubble and no schedule."""
        return self.job.sizes.get("pp", 1) > 1 or int(self.spans.stage.max(initial=0)) > 0

    @property
    def has_computations(self) -> bool:
        """Whether any forward or backward is among its spans."""
        return bool(np.isin(self.spans.kind, list(COMPUTE)).any())

    @property
    def is_emulated(self) -> bool:
        """Whether fixed times stood for the computation."""
        return self.job.compute == EMULATED

    @property
    def is_planned(self) -> bool:
        """Whether nothing ran: its times are those of a plan, on one clock."""
        return self.job.compute == PLANNED


def layout_of(job: TracedJob) -> tuple[Layout | None, Finding | None]:
    """Returns a run's layout made again, or says why that cannot be."""
    asked = {each.name for each in fields(Sizes)} - {"world_size", "order", "options"}
    # Axes that a user named say their sizes themselves.
    named = {} if "axes" in job.options else job.sizes
    sizes = {name: size for name, size in named.items() if name in asked}
    try:
        whole = Sizes(job.world_size, **sizes, order=job.order or None, options=job.options)
        return frameworks.layout(job.framework, whole), None
    except InputError as error:
        reason = said("the run's groups cannot be made again: {reason}", reason=error)
        return None, Finding("layout", (reason,))
