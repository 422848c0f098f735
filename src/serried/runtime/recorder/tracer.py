"""Tracer: what spans of a step are recorded through, and what the rank is in the middle of.

    start = tracer.mark()                    this moment, on the device's stream where there is one
    tracer.keep(F, start, tracer.mark(), 0, 3)     a span between two such moments

Hooks, the model's exchanges and the training loop know this much of a recording: whether the step
that runs is recorded, and where a span goes. Behind it stands ``SpanSink``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from serried.action import ActionKind
from serried.trace.model.traffic import CollectiveMove

Mark = object
"""A moment, as one clock keeps it: nanoseconds, or an event of a device."""


class SpanParts(NamedTuple):
    """Names the parts of a span as they are recorded; its rank is the file's."""

    kind: ActionKind
    start: Mark
    end: Mark
    stage: int = -1
    microbatch: int = -1
    peer: int = -1
    """The global rank that a message goes to or comes from."""
    name: int = 0
    """The number of what its user called it, 0 where it has no name."""
    step: int = -1
    moves: tuple[CollectiveMove, ...] = ()
    """What collectives that it is made of moved."""


class KeepSpan(Protocol):
    """Keeps the parts of a span of the step that runs; for the rank's own thread."""

    def __call__(
        self,
        kind: ActionKind,
        start: Mark,
        end: Mark,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: int = 0,
    ) -> None:
        """Keeps the span."""


def _nothing() -> None:
    pass


class CurrentWork:
    """Says what a rank's thread is in the middle of, so that an outer span is the only one."""

    def __init__(self) -> None:
        self.when_launched: Callable[[], None] = _nothing
        """What is called when communication begins that only a backward's end may wait for."""
        self.moves: list[CollectiveMove] = []
        """What collectives moved since a span was kept that they are a part of."""
        self.num_stages = 1
        """Stages of the pipeline that hooks have seen, 1 without one."""
        self.reset()

    def reset(self) -> None:
        """Forgets what an exception may have left."""
        self.is_pipeline = self.is_backward = self.is_exchange = False
        self.stage, self.microbatch = 0, -1
        self.moves.clear()

    def begin(self, stage: int, microbatch: int) -> None:
        """Says whose computation begins; exchanges that come belong to it."""
        self.stage, self.microbatch = stage, microbatch

    def end(self) -> None:
        """Says that a computation has ended."""
        self.microbatch = -1


class Tracer(Protocol):
    """Takes the spans of the step that runs from whatever times them."""

    is_on: bool
    """Whether that step is recorded; what times spans keeps none where it is not."""
    step: int
    """The step's number; -1 before the first."""
    work: CurrentWork
    mark: Callable[[], Mark]
    """Marks this moment; any thread may call."""
    keep: KeepSpan

    def keep_late(self, span: SpanParts) -> None:
        """Keeps a span once its marks have passed; any thread may call."""

    def keep_named(
        self, name: str, start: Mark, end: Mark, stage: int = -1, microbatch: int = -1
    ) -> None:
        """Keeps a span under a name of its own; a tracer of no names keeps it without."""
        self.keep(ActionKind.SPAN, start, end, stage, microbatch)

    def keep_since(self, start: Mark, kind: ActionKind, *place: int) -> None:
        """Keeps a span from ``start`` to now, if the step is recorded.

        ``place`` is its stage, microbatch and peer, as far as it has them.
        """
        if self.is_on:
            self.keep(kind, start, self.mark(), *place)
            if self.work.moves:
                self.keep_moves()

    def keep_moves(self) -> None:
        """Keeps what collectives moved as parts of the span that was kept last."""
        self.work.moves.clear()

    @contextmanager
    def exchange(self, kind: ActionKind, *place: int) -> Iterator[None]:
        """Times its body as one exchange: what that is made of is not timed again."""
        start, self.work.is_exchange = self.mark() if self.is_on else 0, True
        try:
            yield
        finally:
            self.work.is_exchange = False
        self.keep_since(start, kind, *place)
