"""A tracer whose clock counts its marks, and which lists what is kept."""

from __future__ import annotations

from itertools import count
from typing import Any

from serried.runtime.recorder.tracer import CurrentWork, SpanParts, Tracer


class CountedTracer(Tracer):
    """Keeps spans in a list; its n-th mark is the number n."""

    def __init__(self) -> None:
        marks = count()
        self.is_on, self.step, self.work = True, 0, CurrentWork()
        self.mark = lambda: next(marks)
        self.kept: list[SpanParts] = []
        self.keep = self._keep

    def _keep(self, *parts: Any, **named: Any) -> None:
        self.kept.append(SpanParts(*parts, **named))

    def keep_late(self, span: SpanParts) -> None:
        self.kept.append(span)
