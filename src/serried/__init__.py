"""serried: every rank of a parallel training job, in view.

Each public name is loaded with the room that holds it when it is first used, so that importing
serried loads neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serried.runtime.recording.api import record, record_steps, span

__version__ = "0.1.0"

__all__ = ["record", "record_steps", "span"]

_MODULE_OF = dict.fromkeys(("record", "record_steps", "span"), "serried.runtime.recording.api")


def __getattr__(name: str) -> object:
    """Returns a public name, loading its module; AttributeError for any other."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = found  # the next use finds it without coming here
    return found


def __dir__() -> list[str]:
    """Returns the public names, loaded or not, beside those that are there."""
    return sorted({*globals(), *__all__})
