"""Axes that a DeviceMesh makes of its own: one split into several, several merged into one.

Read from torch 2.13.0, torch/distributed/device_mesh.py (DeviceMesh._unflatten, _flatten,
_concatenate). Splits come first, one after the other; what was split stays a kind of its own.

    unflatten    world=pp:2+tp:4     pp [0 4] [1 5] …    tp [0 1 2 3] [4 5 6 7]    world [0 … 7]
    flatten      pp_tp=pp+tp         in mesh order: [0 … 7]
    concatenate  tp_pp=tp+pp         in any order:  [0 4 1 5 2 6 3 7]
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.mesh.sizes import Sizes

Axes = Mapping[str, int]
DERIVED_OPTIONS = {
    "unflatten": "an axis split in several, such as world=pp:2+tp:4; several by ';'",
    "flatten": "axes merged into one, such as dp_cp=dp+cp; several by ';'",
    "concatenate": "axes merged in an order of their own, such as tp_dp=tp+dp; several by ';'",
}
PART = re.compile(r"^([^:=+]+):(\d+)$")


@dataclass(frozen=True)
class Derived:
    """Holds the axes after all splits, and every kind as the axes that it runs along.

    ``turned`` are the kinds whose members run in the order in which their axes are named.
    """

    axes: dict[str, int]
    kinds: dict[str, tuple[str, ...]]
    turned: frozenset[str]


def derived(sizes: Sizes, axes: Axes) -> Derived:
    """Returns what the settings make of ``axes``; raises InputError where torch would refuse."""
    found = dict(axes)
    kinds: dict[str, tuple[str, ...]] = {axis: (axis,) for axis in axes}
    for name, words in _entries(sizes, "unflatten"):
        parts = _parts(name, words, found)
        found = dict(_spliced(found, name, parts))
        kinds = {kind: _within(over, name, parts) for kind, over in kinds.items()}
        kinds |= {part: (part,) for part in parts}
    turned = set()
    for option in ("flatten", "concatenate"):
        for name, words in _entries(sizes, option):
            over = _merged(option, words, found)
            _check_name(name or "_".join(over), over, kinds)
            kinds[name or "_".join(over)] = over
            if option == "concatenate":
                turned.add(name or "_".join(over))
    return Derived(found, kinds, frozenset(turned))


def _spliced(axes: Axes, name: str, parts: Axes) -> Iterator[tuple[str, int]]:
    """Yields the axes with ``parts`` in the place of ``name``."""
    for axis, size in axes.items():
        yield from parts.items() if axis == name else ((axis, size),)


def _within(over: tuple[str, ...], name: str, parts: Axes) -> tuple[str, ...]:
    """Returns what a kind runs along with ``parts`` in the place of ``name``."""
    return tuple(each for axis in over for each in (parts if axis == name else (axis,)))


def _entries(sizes: Sizes, option: str) -> Iterator[tuple[str, list[str]]]:
    for text in filter(None, sizes.options.get(option, "").split(";")):
        name, _, joined = text.rpartition("=")
        yield name.strip(), [word.strip() for word in joined.replace(",", "+").split("+")]


def _parts(name: str, words: list[str], axes: Axes) -> dict[str, int]:
    """Returns the axes that ``name`` is split into, slowest first."""
    _check_axis("unflatten", name, axes)
    found = [PART.match(word) for word in words]
    parts = {match[1]: int(match[2]) for match in found if match}
    if len(parts) < len(words):
        raise InputError(
            "unflatten splits {axis} into '{text}'; a split reads NAME:SIZE+NAME:SIZE, each name "
            "once",
            axis=name,
            text="+".join(words),
        )
    if math.prod(parts.values()) != axes[name]:
        raise InputError(
            "unflatten splits {axis}={size} into sizes that multiply to {product}; "
            "they multiply to {size}",
            axis=name,
            size=axes[name],
            product=math.prod(parts.values()),
        )
    return parts


def _merged(option: str, words: list[str], axes: Axes) -> tuple[str, ...]:
    for word in words:
        _check_axis(option, word, axes)
    places = [list(axes).index(word) for word in words if axes[word] > 1]
    if len(set(words)) < len(words) or (option == "flatten" and sorted(places) != places):
        raise InputError(
            "flatten takes axes in mesh order, each once: {axes}; concatenate takes any order",
            axes=listed(axes),
        )
    return tuple(words)


def _check_axis(option: str, axis: str, axes: Axes) -> None:
    if axis not in axes:
        raise InputError(
            "{option} names '{axis}', which the mesh does not have; its axes are {axes}",
            option=option,
            axis=axis,
            axes=listed(axes),
        )


def _check_name(name: str, over: tuple[str, ...], kinds: Mapping[str, tuple[str, ...]]) -> None:
    if kinds.get(name, over) != over:
        raise InputError(
            "'{name}' is already what {axes} make; give the merged axes another name",
            name=name,
            axes="+".join(kinds[name]),
        )
