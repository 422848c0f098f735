"""A formula with its numbers: terms that hold a value beside the text that it is computed from.

    number(8) * seconds(2e-6)   ─>   text "8 x 2.00 us", value 1.6e-5

What is printed is so what was computed, and no number can stand in one and not in the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from serried.finding import Sentence
from serried.units import bytes_text, duration_text

SUM, PRODUCT, ATOM = range(3)
"""How tightly the parts of a text hold together; what holds less goes into parentheses."""


class Formula(NamedTuple):
    """Holds one formula: what it gives, how it is written, with numbers, its value and source."""

    what: Sentence
    formula: Sentence | str
    numbers: Sentence | str
    value: Sentence | str
    source: Sentence | str


@dataclass(frozen=True)
class ShownTerm:
    """Holds a value and the text that says what it is made of.

    >>> time = number(3) * (seconds(2e-3) + number(5e9) / speed(1e12))
    >>> time.text, time.value
    ('3 x (2.00 ms + 5,000,000,000 / 1,000 GB/s)', 0.021)
    """

    text: str
    value: float
    bond: int = ATOM

    def __add__(self, other: ShownTerm) -> ShownTerm:
        return ShownTerm(f"{self.text} + {other.text}", self.value + other.value, SUM)

    def __sub__(self, other: ShownTerm) -> ShownTerm:
        return ShownTerm(f"{self.text} - {other.within(PRODUCT)}", self.value - other.value, SUM)

    def __mul__(self, other: ShownTerm) -> ShownTerm:
        text = f"{self.within(PRODUCT)} x {other.within(PRODUCT)}"
        return ShownTerm(text, self.value * other.value, PRODUCT)

    def __truediv__(self, other: ShownTerm) -> ShownTerm:
        text = f"{self.within(PRODUCT)} / {other.within(ATOM)}"
        return ShownTerm(text, self.value / other.value, PRODUCT)

    def within(self, bond: int) -> str:
        """Returns the text as a part of one that holds more tightly."""
        return self.text if self.bond >= bond else f"({self.text})"


def number(value: float) -> ShownTerm:
    """Returns a number, whole ones in full and others with four figures.

    >>> number(8192).text, number(0.63341).text, number(12345.6).text
    ('8,192', '0.6334', '12,346')
    """
    value = float(value)
    if value == int(value) or abs(value) >= 1e4:
        return ShownTerm(f"{value:,.0f}", value)
    return ShownTerm(f"{value:,.4g}", value)


def seconds(value: float) -> ShownTerm:
    """Returns a time."""
    return ShownTerm(duration_text(float(value) * 1e9), float(value))


def size(value: float) -> ShownTerm:
    """Returns a number of bytes."""
    return ShownTerm(bytes_text(round(float(value))), float(value))


def speed(value: float) -> ShownTerm:
    """Returns bytes per second."""
    return ShownTerm(f"{float(value) / 1e9:,.4g} GB/s", float(value))


def rate(value: float) -> ShownTerm:
    """Returns FLOP/s."""
    return ShownTerm(f"{float(value) / 1e12:,.4g} TFLOP/s", float(value))


def total(terms: list[ShownTerm]) -> ShownTerm:
    """Returns the sum of terms, of which there is at least one."""
    found = terms[0]
    for each in terms[1:]:
        found = found + each
    return found


def excess(over: ShownTerm, under: ShownTerm) -> ShownTerm:
    """Returns by how much one is longer than the other, at least 0."""
    text = f"max({over.text} - {under.within(PRODUCT)}, 0)"
    return ShownTerm(text, max(over.value - under.value, 0.0))


def slower_of(one: ShownTerm, other: ShownTerm) -> ShownTerm:
    """Returns nearly the longer of two times: the fourth root of the sum of their fourth powers."""
    text = f"({one.within(ATOM)}^4 + {other.within(ATOM)}^4)^(1/4)"
    return ShownTerm(text, (one.value**4 + other.value**4) ** 0.25, PRODUCT)
