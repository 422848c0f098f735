"""Two values compared part by part, whatever they are made of: the places at which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from serried.errors import Listed, SerriedError
from serried.finding import Finding


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Returns the names of all parts that differ; equal values have none."""
    return list(_differences(one, other, place))


def _differences(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, np.ndarray):
        same = one.shape == other.shape and one.dtype == other.dtype
        if not (same and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")):
            yield place
    elif isinstance(one, Finding | SerriedError | Listed):
        # What is said counts: an error comes back as the sentence that it is.
        if str(one) != str(other):
            yield place
    elif is_dataclass(one) and not isinstance(one, type):
        for each in fields(one):
            if each.compare:
                mine, its = getattr(one, each.name), getattr(other, each.name)
                yield from _differences(mine, its, f"{place}.{each.name}")
    elif isinstance(one, Mapping):
        if list(one) != list(other):
            yield place
        else:
            for key in one:
                yield from _differences(one[key], other[key], f"{place}[{key}]")
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            yield place
        else:
            for at, (mine, its) in enumerate(zip(one, other, strict=True)):
                yield from _differences(mine, its, f"{place}[{at}]")
    elif one != other and not (one != one and other != other):
        yield place
