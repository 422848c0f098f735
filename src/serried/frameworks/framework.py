"""What a framework file provides, the sizes it is asked for, and the checks they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from serried.errors import InputError, listed
from serried.mesh import Layout


@dataclass(frozen=True)
class Sizes:
    """Holds what the user asked for, in the neutral short names; None means not given.

    ``options`` are settings under the framework's own names (``--set KEY=VALUE``).
    """

    world_size: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    dp: int | None = None
    ep: int = 1
    etp: int | None = None
    zero1: int | None = None
    nettest: int | None = None
    order: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.world_size < 1:
            raise InputError(
                "world size {world} cannot be; it is at least 1 rank", world=self.world_size
            )
        for name in ("tp", "pp", "cp", "dp", "ep", "etp"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise InputError("{axis}={size}; a size is at least 1", axis=name, size=size)


@dataclass(frozen=True)
class Framework:
    """Describes one framework: its names, the source it was read from, and its layout rule."""

    name: str
    title: str
    version: str
    """The newest version whose rules ``layout`` follows."""
    source: str
    """Package and file that the rules were read from."""
    dims: tuple[str, ...]
    """Which of dp, tp, pp, cp … the framework can split along."""
    options: Mapping[str, str]
    """Keys that ``--set`` takes, each with what it does."""
    default_order: str
    """The order of axes when none is given, as the framework writes it."""
    orders: tuple[str, ...]
    """Orders that its own launcher can ask for."""
    layout: Callable[[Sizes], Layout]


def divisors(number: int) -> list[int]:
    """Returns the divisors of ``number``, ascending.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def split_world(world_size: int, factors: Mapping[str, int], dp: int | None) -> int:
    """Returns the data-parallel size: what is left of the world after ``factors``.

    Each factor must divide what the ones before it left. Raises InputError naming the
    first that does not and the sizes that would; also when ``dp`` was asked for and differs.

    >>> split_world(16, {"tp": 2, "pp": 4}, dp=None)
    2
    """
    left, taken = world_size, ""
    for name, size in factors.items():
        if left % size:
            raise _indivisible(name, size, left, world_size, taken)
        left //= size
        taken += f"{', ' if taken else ''}{name}={size}" if size > 1 else ""
    if dp is not None and dp != left:
        raise InputError(
            "dp={dp} does not fit: {world} ranks over {taken} leave dp={left}",
            dp=dp,
            world=world_size,
            taken=taken or "no other axis",
            left=left,
        )
    return left


def _indivisible(name: str, size: int, left: int, world_size: int, taken: str) -> InputError:
    fits = listed(divisors(left), limit=24)
    if not taken:
        return InputError(
            "{axis}={size} does not divide {world} ranks; sizes that do: {fits}",
            axis=name,
            size=size,
            world=world_size,
            fits=fits,
        )
    return InputError(
        "{axis}={size} does not divide the {left} ranks that {taken} leave of {world}; "
        "sizes that do: {fits}",
        axis=name,
        size=size,
        left=left,
        taken=taken,
        world=world_size,
        fits=fits,
    )


def refuse_foreign_sizes(sizes: Sizes, framework: str, takes: tuple[str, ...]) -> None:
    """Raises InputError for a size above one along an axis that the framework does not have."""
    for axis in ("tp", "pp", "cp", "dp", "ep", "etp", "zero1", "nettest"):
        size = getattr(sizes, axis)
        if axis not in takes and size not in (None, 1):
            raise InputError(
                "{axis}={size}, but {framework} has no {axis}; it takes {takes}",
                axis=axis,
                size=size,
                framework=framework,
                takes=listed(takes),
            )


def refuse_unknown_options(sizes: Sizes, framework: str, known: Iterable[str]) -> None:
    """Raises InputError for a ``--set`` key that the framework does not have."""
    for key in sizes.options:
        if key not in known:
            raise InputError(
                "{framework} has no setting '{key}'; it has {known}",
                framework=framework,
                key=key,
                known=listed(known, limit=40) or "none",
            )


def number(sizes: Sizes, key: str, default: int) -> int:
    """Returns option ``key`` as a whole number of at least 1; raises InputError otherwise."""
    text = sizes.options.get(key, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise InputError(
            "{key}={value} is not a size; it is a whole number of at least 1", key=key, value=text
        )
    return int(text)


def switch(sizes: Sizes, key: str, *, default: bool = False) -> bool:
    """Returns option ``key`` as yes or no; raises InputError otherwise."""
    text = sizes.options.get(key, str(default)).lower()
    if text not in ("true", "false", "1", "0"):
        raise InputError("{key}={value} is not a switch; it is true or false", key=key, value=text)
    return text in ("true", "1")
