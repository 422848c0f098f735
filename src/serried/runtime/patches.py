"""A patch: one function of a library wrapped while steps are recorded, and given back after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patch:
    """Stands for ``owner.name`` wrapped by ``wrap``, which gets the original."""

    def __init__(self, owner: object, name: str, wrap: Wrap) -> None:
        self._owner, self._name, self._wrap = owner, name, wrap
        self._original: Callable[..., Any] | None = None
        self._ours: Callable[..., Any] | None = None

    def put_in(self) -> None:
        """Wraps what stands there now."""
        self._original = getattr(self._owner, self._name)
        self._ours = self._wrap(self._original)
        setattr(self._owner, self._name, self._ours)

    def take_out(self) -> None:
        """Gives the original back, unless another has wrapped ours since."""
        if self._original and getattr(self._owner, self._name) is self._ours:
            setattr(self._owner, self._name, self._original)
        self._original = self._ours = None


class Work:
    """Says what a rank's thread is in the middle of, so that an outer span is the only one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets what an exception may have left."""
        self.is_pipeline = self.is_backward = self.is_exchange = False
        self.microbatch = 0
