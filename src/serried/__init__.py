"""serried: every rank of a parallel training job, in view.

``record``, ``record_steps`` and ``span`` are doors into the runtime, which opens, and loads
torch, when one is used. ``span`` is a module as well, the one that defines Span, and stays so:
it is made callable.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serried.runtime.recording.api import record as record
    from serried.runtime.recording.api import record_steps as record_steps
    from serried.runtime.recording.api import span as span

__version__ = "0.1.0"

DOORS = {
    "record": "serried.runtime.recording.api",
    "record_steps": "serried.runtime.recording.api",
}
"""Names of the package that live in a room further on, loaded when they are asked for."""


class _CallableModule(ModuleType):
    """Is the module ``serried.span``, which called is the recorder's door of that name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        door = import_module("serried.runtime.recording.api").span
        # Later calls reach the door itself: this detour would be a quarter of a span's cost.
        _CallableModule.__call__ = staticmethod(door)  # type: ignore[method-assign]
        return door(*args, **options)


class _House(ModuleType):
    """Is this package; it makes ``span`` callable in the moment that module is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "span" and type(value) is ModuleType:
            value.__class__ = _CallableModule
        super().__setattr__(name, value)


def __getattr__(name: str) -> object:
    """Returns a door, loading its room; AttributeError for a name that is none."""
    if name in DOORS:
        return getattr(import_module(DOORS[name]), name)
    if name == "span":
        return import_module("serried.span")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sys.modules[__name__].__class__ = _House
