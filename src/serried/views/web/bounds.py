"""A question's time and memory: one that takes more is cut off, so that the others are answered."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from serried.errors import InputError
from serried.limits import ANSWER_BYTES, ANSWER_SECONDS

Given = TypeVar("Given")
LOOK_S = 0.05
"""Seconds between two looks at the memory while something is answered."""
_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class CutOff(BaseException):
    """Ends a question that took too long; no BaseException is caught on the way by mistake."""


class MemoryCutOff(CutOff):
    """Ends a question while which the server took too much memory."""


@dataclass(frozen=True)
class _Bound:
    """Holds when a thread's question has to be answered, and what the process may hold by then."""

    end: float
    bytes: int


class AnswerBounds:
    """Watches the threads that answer, in a thread of its own that begins with the first.

    A thread cannot be ended from outside, but an exception can be raised in it, which comes
    between two of its instructions; a long call of numpy ends first. No system tells a thread's
    memory: what counts is by how much the process has grown since the thread's question began.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._bounds: dict[int, _Bound] = {}
        self._is_watching = False

    @contextmanager
    def within(self, seconds: float, most_bytes: int = ANSWER_BYTES.most) -> Iterator[None]:
        """Raises CutOff in this thread when what is inside takes longer, or holds more."""
        thread = threading.get_ident()
        bound = _Bound(time.monotonic() + seconds, own_bytes() + most_bytes)
        with self._changed:
            self._bounds[thread] = bound
            self._begin()
            self._changed.notify()
        try:
            yield
        finally:
            self._leave(thread)

    def answer(self, name: str, make: Callable[[], Given]) -> Given:
        """Returns what ``make`` makes, as the answer to the question ``name``.

        Raises InputError, in a sentence that names it, where that takes more than an answer may.
        """
        try:
            with self.within(ANSWER_SECONDS.most, ANSWER_BYTES.most):
                return make()
        except MemoryCutOff:
            raise InputError(
                "{tool} took more than {most} MB of memory and was ended; ask for less at once",
                tool=name,
                most=ANSWER_BYTES.most >> 20,
            ) from None
        except CutOff:
            raise took_too_long(name) from None

    def _leave(self, thread: int) -> None:
        with self._changed:
            # One that was raised, and has not come yet, would hit whatever the thread does next.
            if self._bounds.pop(thread, None) is None:
                _raise_in(thread, None)

    def _begin(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            threading.Thread(target=self._watch, name="bounds", daemon=True).start()

    def _watch(self) -> None:
        with self._changed:
            while True:
                now, held = time.monotonic(), own_bytes()
                for thread, bound in [*self._bounds.items()]:
                    if bound.end <= now or bound.bytes < held:
                        del self._bounds[thread]
                        _raise_in(thread, CutOff if bound.end <= now else MemoryCutOff)
                ends = [bound.end - now for bound in self._bounds.values()]
                self._changed.wait(max(0.0, min(*ends, LOOK_S)) if ends else None)


def took_too_long(name: str) -> InputError:
    """Returns the sentence for a question ``name`` that was not answered in time."""
    return InputError(
        "{tool} took more than {most} s and was ended; ask for less at once",
        tool=name,
        most=ANSWER_SECONDS.most,
    )


def own_bytes() -> int:
    """Returns what this process holds that no file holds too, 0 where the system does not say."""
    try:
        _, resident, shared, *_ = _STATM.read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE_BYTES


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raises an exception in a thread, or takes back one that has not come yet."""
    told = ctypes.py_object(error) if error else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), told)
