"""Ends of a process that no hook of exceptions hears of: ``sys.exit``, children of multiprocessing.

    sys.exit(3)                     SystemExit: no hook is called, and at exit nobody knows the code
    an exception in a child of      multiprocessing prints it and leaves by os._exit, so neither a
    multiprocessing, mp.spawn       hook nor atexit has a turn; its finalizers have

A program that catches the SystemExit and goes on has not ended by it.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from functools import wraps
from multiprocessing.util import Finalize
from typing import Any

from serried.runtime.recorder.patches import Patch

_LAST = -1000
"""The priority of a finalizer that runs once the process has waited for its own children."""


class EndingHooks:
    """Calls ``ended`` as this process ends, with what ended it or None; forgets it when asked to.

    ``place`` grows as the program goes on: what asked to end before that was caught.
    """

    def __init__(
        self, ended: Callable[[BaseException | None], None], place: Callable[[], int]
    ) -> None:
        self._ended, self._place = ended, place
        self._asked: tuple[int, SystemExit] | None = None
        self._exit = Patch(sys, "exit", self._heard)
        self._exit.put_in()
        self._in_child = Finalize(None, self._at_exit, exitpriority=_LAST)
        atexit.register(self._at_exit)

    def forget(self) -> None:
        """Gives everything back; at once or twice."""
        self._asked = None
        self._exit.take_out()
        self._in_child.cancel()
        atexit.unregister(self._at_exit)

    def _heard(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def exit_(*args: Any) -> Any:
            try:
                return original(*args)
            except SystemExit as error:
                self._asked = self._place(), error
                raise

        return exit_

    def _at_exit(self) -> None:
        error = sys.exc_info()[1]  # what leaves a child of multiprocessing, whose finalizers run
        if error is None and self._asked is not None and self._asked[0] == self._place():
            error = self._asked[1]
        self._ended(failure_in(error))


def failure_in(error: BaseException | None) -> BaseException | None:
    """Returns the failure that a process is left by; None where it is left in order.

    >>> failure_in(SystemExit(0)) is None, failure_in(SystemExit(3))
    (True, SystemExit(3))
    """
    if not isinstance(error, SystemExit):
        return error
    if error.code in (None, 0):
        return None
    # torch.multiprocessing leaves by sys.exit(1) from where it handles what really happened.
    return failure_in(error.__context__) or error
