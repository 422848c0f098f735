"""What a framework file provides, and the checks that framework files share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.mesh import PLAIN, Conventions, Layout
from serried.mesh.sizes import COUNTS, Sizes


@dataclass(frozen=True)
class Framework:
    """Describes one framework: its names, the source it was read from, and its layout rule."""

    name: str
    title: str
    version: str
    """The version whose rules ``layout`` follows."""
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
    make: Callable[[Sizes, str], Layout]
    """Returns the layout of some sizes under the rules of a version."""
    versions: tuple[str, ...] = ()
    """Versions read, oldest first; numbered ones between two of them are known as well."""
    conventions: Conventions = PLAIN
    """What it does beside its groups."""
    traffic_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Settings that no group depends on, but what travels does, each with the values it takes."""

    def layout(self, sizes: Sizes) -> Layout:
        """Returns the layout of ``sizes``; raises InputError wherever the package refuses."""
        for key, known in self.traffic_settings.items():
            if key in sizes.options:
                choice(sizes, key, known)
        # Settings of traffic change no group, so the maker of groups does not see them.
        bare = {
            key: text for key, text in sizes.options.items() if key not in self.traffic_settings
        }
        made = self.make(replace(sizes, options=bare), self.version)
        stage = {} if sizes.zero is None else {"zero": str(sizes.zero)}
        return replace(made, conventions=self.conventions, settings={**sizes.options, **stage})

    def at(self, version: str) -> Framework:
        """Returns this framework at ``version``; raises InputError for one it does not know.

        A version may be written as a tag (``core_v0.16.1``) or, a named one, by its beginning.
        """
        known = self.versions or (self.version,)
        version = re.sub(r"^(core_)?v(?=\d)", "", version)
        # "main" is enough for main-2411b022 while no other version begins so.
        begun = [name for name in known if name.startswith(f"{version}-")]
        version = begun[0] if len(begun) == 1 else version
        if version not in known and not _between(version, known):
            raise InputError(
                "{name} {version} is not known; versions that are: {known}",
                name=self.name,
                version=version,
                known=listed(known, limit=40),
            )
        return replace(self, version=version)


def number_of(version: str) -> tuple[int, ...]:
    """Returns a numbered version as numbers, () for one with a name.

    >>> number_of("0.16.1"), number_of("develop-2025-01")
    ((0, 16, 1), ())
    """
    words = version.split(".")
    return tuple(map(int, words)) if all(word.isdecimal() for word in words) else ()


def at_least(version: str, since: str) -> bool:
    """Tells whether ``version`` is ``since`` or newer; a named version is newer than any number.

    >>> at_least("0.9.2", "0.10"), at_least("0.10.0", "0.10"), at_least("main", "0.10")
    (False, True, True)
    """
    return not number_of(version) or number_of(version) >= number_of(since)


def _between(version: str, known: tuple[str, ...]) -> bool:
    numbers = [number_of(name) for name in known if number_of(name)]
    asked = number_of(version)
    if not asked or not numbers:
        return False
    # A later patch of the newest series counts as known: with 0.16.1 known, 0.16.4 is, 0.17 is not.
    return min(numbers) <= asked and asked[:2] <= max(numbers)[:2]


def divisors(number: int) -> list[int]:
    """Returns the divisors of ``number``, ascending.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    # Divisors come in pairs, of which one is at most the square root; the root itself counts once.
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def prime_factors(number: int) -> list[int]:
    """Returns the prime factors of ``number``, ascending.

    >>> prime_factors(12)
    [2, 2, 3]
    """
    factors, left, candidate = [], number, 2
    while candidate * candidate <= left:
        while left % candidate == 0:
            factors.append(candidate)
            left //= candidate
        candidate += 1
    return factors + ([left] if left > 1 else [])


def split_world(world_size: int, factors: Mapping[str, int], dp: int | None) -> int:
    """Returns the data-parallel size: what is left of the world after ``factors``.

    Each factor must divide what the ones before it left. Raises InputError naming the
    first that does not and the sizes that would; also when ``dp`` was asked for and differs.

    >>> split_world(16, {"tp": 2, "pp": 4}, dp=None)
    2
    """
    left = world_size
    taken: list[str] = []
    for name, size in factors.items():
        if left % size:
            raise _indivisible(name, size, left, world_size, taken)
        left //= size
        taken += [f"{name}={size}"] if size > 1 else []
    if dp is not None and dp != left:
        if not taken:
            raise InputError(
                "dp={dp} does not fit: without other axes dp is {world}", dp=dp, world=world_size
            )
        raise InputError(
            "dp={dp} does not fit: {world} ranks over {taken} leave dp={left}",
            dp=dp,
            world=world_size,
            taken=listed(taken),
            left=left,
        )
    return left


def _indivisible(name: str, size: int, left: int, world_size: int, taken: list[str]) -> InputError:
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
        taken=listed(taken),
        world=world_size,
        fits=fits,
    )


def refuse_foreign_sizes(sizes: Sizes, framework: str | Sentence, takes: tuple[str, ...]) -> None:
    """Raises InputError for a size above one along an axis that the framework does not have."""
    for axis in COUNTS:
        size = getattr(sizes, axis)
        if axis not in (*takes, "zero") and size not in (None, 1):
            raise InputError(
                "{axis}={size}, but {framework} has no {axis}; it takes {takes}",
                axis=axis,
                size=size,
                framework=framework,
                takes=listed(takes) or said("none"),
            )


def refuse_unknown_options(sizes: Sizes, framework: str, known: Iterable[str]) -> None:
    """Raises InputError for a ``--set`` key that the framework does not have."""
    known = tuple(known)
    for key in sizes.options:
        if key in known:
            continue
        # Imported here, for only this error needs it and every start would wait for it.
        from difflib import get_close_matches

        near = get_close_matches(key, known, n=3)
        if near:
            raise InputError(
                "{framework} has no setting '{key}'; the nearest that it has: {known}",
                framework=framework,
                key=key,
                known=listed(near),
            )
        raise InputError(
            "{framework} has no setting '{key}'; it has {known}",
            framework=framework,
            key=key,
            known=listed(known, limit=40) or said("none"),
        )


def number(sizes: Sizes, key: str, default: int, *, least: int = 1) -> int:
    """Returns option ``key`` as a whole number of at least ``least``; raises InputError."""
    text = sizes.options.get(key, str(default))
    # A default may lie below the least: 0 often says that nothing was asked for.
    if text != str(default) and (not text.isdecimal() or int(text) < least):
        raise InputError(
            "{key}={value} is not a size; it is a whole number of at least {least}",
            key=key,
            value=text,
            least=least,
        )
    return int(text)


def numbers(text: str) -> list[int]:
    """Returns the whole numbers of a list such as ``2 4`` or ``[2, 4]``; () words become 0.

    >>> numbers("[2, 4]"), numbers("2 x")
    ([2, 4], [2, 0])
    """
    words = text.strip("[]() ").replace(",", " ").split()
    return [int(word) if word.isdecimal() else 0 for word in words]


def choice(sizes: Sizes, key: str, known: tuple[str, ...]) -> str:
    """Returns option ``key``, the first of ``known`` when not set; raises InputError otherwise."""
    text = sizes.options.get(key, known[0])
    if text not in known:
        raise InputError(
            "{key}={value} is not known; it is one of {known}",
            key=key,
            value=text,
            known=listed(known),
        )
    return text


def switch(sizes: Sizes, key: str, *, default: bool = False) -> bool:
    """Returns option ``key`` as yes or no; raises InputError otherwise."""
    text = sizes.options.get(key, str(default)).lower()
    if text not in ("true", "false", "1", "0"):
        raise InputError("{key}={value} is not a switch; it is true or false", key=key, value=text)
    return text in ("true", "1")
