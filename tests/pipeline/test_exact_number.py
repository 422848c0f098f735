"""Numbers as typed: exact whatever their form, and refused with one that would work."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from serried.errors import InputError
from serried.pipeline.exact_number import read_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("10", (10,)),
        ("0.1", (Fraction(1, 10),)),
        ("1/3, 2", (Fraction(1, 3), 2)),
        ("2.50", (Fraction(5, 2),)),
        ("1e2", (100,)),
        ("-1", (-1,)),
    ],
)
def test_numbers_are_kept_exact(text: str, numbers: tuple[object, ...]) -> None:
    assert read_numbers("--forward", text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1,", "1/0", "1e999999999", "1E-1000", "0x10", "1 2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    word = text.split(",")[-1]
    with pytest.raises(InputError) as raised:
        read_numbers("--forward", text)
    expected = f"--forward takes numbers, such as 10, 0.5 or 1/3; it got '{word}'"
    assert str(raised.value) == expected


@pytest.mark.parametrize("text", ["nan", "-inf", "Infinity"])
def test_what_is_not_finite_is_left_to_the_costs_to_refuse(text: str) -> None:
    (number,) = read_numbers("--forward", text)
    assert repr(number) == repr(float(text)) and not math.isfinite(number)
