"""Real runs: the only room that imports torch. Start with ``init``, ``launch`` and ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serried.runtime.groups.process_groups import init as init

__all__ = ["init"]


def __getattr__(name: str) -> object:
    """Returns ``init``, loading torch only when it is asked for."""
    if name == "init":
        from serried.runtime.groups.process_groups import init

        return init
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
