"""Work counted and not timed: how many lines of Python a reader runs for what it is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

DOUBLED = 2.3
"""What twice as much input may cost at most; sorting costs a little more than twice."""


def steps_taken(work: Callable[[], object]) -> int:
    """Returns how many lines run, those of comprehensions each time round."""
    number = 0

    def count(_: FrameType, event: str, __: object) -> Any:
        nonlocal number
        number += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return number
