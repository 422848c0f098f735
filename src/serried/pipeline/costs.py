"""Costs: how long each kind of work and each message takes, in any one unit of time.

A duration is one number, one per stage, or one per stage and microbatch. Integers and fractions
are kept exact all the way to the result; a single float makes the simulation one of floats. So are
numbers as people type them, such as 10, 0.601 and 1/3 (``read_numbers``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError

Number = int | float | Fraction
Duration = Number | Sequence[Number] | Sequence[Sequence[Number]]
Edges = Number | Sequence[Sequence[Number]]
"""One number for every pair of ranks, or a table [from rank][to rank]."""


@dataclass(frozen=True)
class Links:
    """Says how long a message is under way: latency + message_bytes / bandwidth.

    Between two stages on one rank there is no message. With ``is_blocking`` the sender does
    nothing else while its message is under way; otherwise it goes on at once.
    """

    latency: Edges = 0
    message_bytes: Number = 0
    bandwidth: Edges | None = None
    """Bytes in a unit of time; None where size does not matter."""
    is_blocking: bool = False

    def travel(self, num_ranks: int) -> NDArray[np.object_]:
        """Returns how long a message is under way, one number or [from rank, to rank].

        >>> Links(latency=1, message_bytes=3, bandwidth=2).travel(4)
        array(Fraction(5, 2), dtype=object)

        Raises InputError for a table of another number of ranks.
        """
        latency = _table("latency", self.latency, num_ranks)
        if self.bandwidth is None:
            return latency
        bandwidth = _table("bandwidth", self.bandwidth, num_ranks)
        sent = _exact(self.message_bytes)
        times = [late + sent / _exact(rate) for late, rate in _pairs(latency, bandwidth)]
        return np.array(times, np.object_).reshape(np.broadcast(latency, bandwidth).shape)


@dataclass(frozen=True)
class Extra:
    """Holds what a stage takes beyond its layers: the first embeds, the last has the loss."""

    forward: Number = 0
    input_grad: Number = 0
    weight_grad: Number = 0


@dataclass(frozen=True)
class Costs:
    """Holds the durations of one stage's work, of messages, and of the end of the step."""

    forward: Duration = 1
    input_grad: Duration = 1
    weight_grad: Duration = 1
    backward: Duration | None = None
    """A whole backward; the sum of its halves where None."""
    overlap: Duration | None = None
    """An overlapped pair, by its forward's stage and microbatch; the sum of the two where None."""
    recompute: Duration = 0
    """The forward that is run again before a backward."""
    is_recompute_early: bool = False
    """Whether that forward may run while the gradient is still awaited."""
    embedding: Extra = field(default_factory=Extra)
    loss: Extra = field(default_factory=Extra)
    links: Links = field(default_factory=Links)
    all_reduce: Duration = 0
    """The all-reduce of a stage's gradients over data ranks, beside the rank's own work."""
    optimizer: Number = 0
    is_optimizer_synchronous: bool = True
    """Whether the optimizer waits for all ranks, as it must for a global gradient norm."""

    def __post_init__(self) -> None:
        for name, number in _numbers(self):
            if not isinstance(number, int | float | Fraction) or not math.isfinite(number):
                raise InputError(
                    "{name}={number} is no number; it needs one of 0 or more",
                    name=name.replace("_", "-"),
                    number=number,
                )
            if number < 0:
                raise InputError(
                    "{name}={number} cannot be; it needs a number of 0 or more",
                    name=name.replace("_", "-"),
                    number=number,
                )
            if name == "bandwidth" and number == 0:
                raise InputError("bandwidth=0 cannot be; it needs a number above 0")

    def times(self) -> Iterator[Number]:
        """Returns every duration of work in it; messages are apart."""
        return (number for name, number in _numbers(self) if name not in _OF_LINKS)


def _exact(number: Number) -> Number:
    return number if isinstance(number, float) else Fraction(number)


def _pairs(latency: NDArray[np.object_], bandwidth: NDArray[np.object_]) -> Iterator[Any]:
    return zip(*(table.ravel() for table in np.broadcast_arrays(latency, bandwidth)), strict=True)


def _table(name: str, edges: Edges, num_ranks: int) -> NDArray[np.object_]:
    table = np.array(edges, dtype=object)
    if table.shape not in {(), (num_ranks, num_ranks)}:
        raise InputError(
            "the {name} of links needs one number or a table of {ranks} x {ranks} ranks; it has "
            "the shape {shape}",
            name=name,
            ranks=num_ranks,
            shape=" x ".join(map(str, table.shape)),
        )
    return table


def flat(value: object) -> Iterator[Number]:
    """Returns the numbers of a duration or a table, in order.

    >>> list(flat([[1, 2], [3, 4]]))
    [1, 2, 3, 4]
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from flat(each)
    else:
        yield value  # type: ignore[misc]  # what is no number is refused with the others


def _numbers(costs: object) -> Iterator[tuple[str, Number]]:
    for part in fields(costs):  # type: ignore[arg-type]
        value = getattr(costs, part.name)
        if isinstance(value, Links | Extra):
            yield from _numbers(value)
        elif value is not None and not isinstance(value, bool):
            for number in flat(value):
                yield part.name, number


_OF_LINKS = {each.name for each in fields(Links)}


def read_numbers(option: str, text: str) -> tuple[Number, ...]:
    """Reads numbers apart by commas; ``option`` is what the sentence calls them.

    >>> read_numbers("--forward", "10, 1/3")
    (10, Fraction(1, 3))

    Raises InputError when one is no number. One that is not finite is returned as it is; the
    costs refuse it by their own name.
    """
    return tuple(_number(option, word.strip()) for word in text.split(","))


_LONG_EXPONENT = re.compile(r"e[+-]?0*\d{3,}$", re.IGNORECASE)
"""An exponent so long that the exact number could fill the memory."""


def _number(option: str, word: str) -> Number:
    try:
        # Fraction('') raises ValueError, so too long an exponent is refused by the sentence below.
        exact = Fraction("" if _LONG_EXPONENT.search(word) else word)
    except (ValueError, ZeroDivisionError) as error:
        if word.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            return float(word)
        raise InputError(
            "{option} takes numbers, such as 10, 0.5 or 1/3; it got '{word}'",
            option=option,
            word=word,
        ) from error
    return int(exact) if exact.denominator == 1 else exact
