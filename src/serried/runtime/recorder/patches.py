"""A patch: one function of a library wrapped while steps are recorded, and given back after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
_MISSING = object()


class Patch:
    """Stands for ``owner.name`` wrapped by ``wrap``, which gets the original."""

    def __init__(self, owner: object, name: str, wrap: Wrap) -> None:
        self._owner, self._name, self._wrap = owner, name, wrap
        self._original: Any = None
        self._ours: Callable[..., Any] | None = None
        self._held: Any = _MISSING
        self._is_in = False

    def put_in(self) -> None:
        """Wraps what stands there now, by the same function as before where it is the same."""
        # What the owner holds itself: a method of a C++ class is given out without its binding.
        self._held = vars(self._owner).get(self._name, _MISSING)
        original = getattr(self._owner, self._name)
        if self._ours is None or original is not self._original:
            self._original, self._ours = original, self._wrap(original)
        setattr(self._owner, self._name, self._ours)
        self._is_in = True

    def take_out(self) -> None:
        """Gives the original back, unless another has wrapped ours since."""
        if self._is_in and vars(self._owner).get(self._name) is self._ours:
            if self._held is _MISSING:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._held)
        self._is_in = False
