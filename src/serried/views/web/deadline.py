"""A question's time: one that takes longer is cut off, so that its thread answers others again."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from serried.errors import InputError

Given = TypeVar("Given")


class CutOff(BaseException):
    """Ends a question that took too long; no BaseException is caught on the way by mistake."""


class Deadlines:
    """Watches the threads that answer, in a thread of its own that begins with the first.

    A thread cannot be ended from outside, but an exception can be raised in it, which comes
    between two of its instructions; a long call of numpy ends first.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[int, float] = {}
        self._is_watching = False

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Raises CutOff in this thread when what is inside takes longer."""
        thread = threading.get_ident()
        with self._changed:
            self._ends[thread] = time.monotonic() + seconds
            self._begin()
            self._changed.notify()
        try:
            yield
        finally:
            self._leave(thread)

    def answer(self, name: str, seconds: int, make: Callable[[], Given]) -> Given:
        """Returns what ``make`` makes, as the answer to the question ``name``.

        Raises InputError, in a sentence that names it, where that takes longer than ``seconds``.
        """
        try:
            with self.within(seconds):
                return make()
        except CutOff:
            raise InputError(
                "{tool} took more than {most} s and was ended; ask for less at once",
                tool=name,
                most=seconds,
            ) from None

    def _leave(self, thread: int) -> None:
        with self._changed:
            # One that was raised, and has not come yet, would hit whatever the thread does next.
            if self._ends.pop(thread, None) is None:
                _raise_in(thread, None)

    def _begin(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            threading.Thread(target=self._watch, name="deadlines", daemon=True).start()

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for thread in [each for each, end in self._ends.items() if end <= now]:
                    del self._ends[thread]
                    _raise_in(thread, CutOff)
                soonest = min(self._ends.values(), default=None)
                self._changed.wait(None if soonest is None else max(0.0, soonest - now))


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raises an exception in a thread, or takes back one that has not come yet."""
    told = ctypes.py_object(error) if error else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), told)
