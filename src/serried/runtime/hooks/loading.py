"""Hooks around the loading of batches: ``next`` of a DataLoader, and of whatever a loop goes over.

    record(loader)     |next| step 7 ...... OPTIMIZER |next| step 8 ......      the loop's batches
    record_steps       |next| with step 7: ... |next| with step 8: ...          any DataLoader's
                         └ is of the step that comes: it is held until that begins

A batch that comes after the optimizer's step, or between two steps, is of the step that follows;
any other is of the step that runs. Only what the program waits for is in such a span: what a
loader's own processes do meanwhile costs it nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar

from serried.runtime.recorder.patches import Patch
from serried.runtime.recorder.torch_private import loader_iterator
from serried.runtime.recorder.tracer import Mark, Tracer
from serried.trace.measure.ranks.spent import DATA

Batch = TypeVar("Batch")


class Loading:
    """Times every batch that the program waits for, as a span named ``data``."""

    def __init__(self, tracer: Tracer, is_over: Callable[[], bool]) -> None:
        """Prepares it: ``is_over`` tells whether the step that runs has had its optimizer."""
        self._tracer, self._is_over = tracer, is_over
        self._is_in = self._is_loading = False
        self.held: tuple[Mark, Mark] | None = None
        """The last batch that is of a step to come."""

    def patches(self) -> list[Patch]:
        """Returns the hooks of torch's DataLoader, none where this torch has moved them."""
        if loader_iterator is None:
            return []
        return [Patch(loader_iterator, "__next__", self.timed)]

    def put_in(self) -> None:
        """Times batches from here on."""
        self._is_in = True

    def take_out(self) -> None:
        """Times none any more; what is held was marked by a clock that ends with the recording."""
        self._is_in, self.held = False, None

    def over(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yields ``batches``, timing each; the loop says by ``keep_held`` when its step runs."""
        following = self._timed(next, self._hold)
        iterator = iter(batches)
        while True:
            try:
                batch = following(iterator)
            except StopIteration:
                return
            yield batch

    def timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a loader's ``original``, timed."""
        return self._timed(original, self._loaded)

    def _timed(
        self, original: Callable[..., Any], loaded: Callable[[Mark, Mark], None]
    ) -> Callable[..., Any]:
        """Returns ``original``, timed but for what another loader calls inside its own."""
        tracer = self._tracer

        @wraps(original)
        def following(*args: Any) -> Any:
            if not self._is_in or self._is_loading:
                return original(*args)
            start, self._is_loading = tracer.mark(), True
            try:
                batch = original(*args)
            finally:
                self._is_loading = False
            loaded(start, tracer.mark())
            return batch

        return following

    def keep_held(self) -> None:
        """Keeps the batch that was loaded for the step which has begun."""
        held, self.held = self.held, None
        if held and self._tracer.is_on:
            self._tracer.keep_named(DATA, *held)

    def _loaded(self, start: Mark, end: Mark) -> None:
        if self._tracer.is_on and not self._is_over():
            self._tracer.keep_named(DATA, start, end)
        else:
            self._hold(start, end)

    def _hold(self, start: Mark, end: Mark) -> None:
        self.held = start, end
