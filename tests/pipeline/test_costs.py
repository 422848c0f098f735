"""Costs refuse what is no time."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from serried.errors import InputError
from serried.pipeline import Costs, Extra, Links
from serried.pipeline.costs import read_numbers


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Costs(forward=-1),
         "forward=-1 cannot be; it needs a number of 0 or more"),
        (lambda: Costs(input_grad=math.nan),
         "input-grad=nan is no number; it needs one of 0 or more"),
        (lambda: Costs(weight_grad=(1, -2)),
         "weight-grad=-2 cannot be; it needs a number of 0 or more"),
        (lambda: Costs(links=Links(latency=math.inf)),
         "latency=inf is no number; it needs one of 0 or more"),
        (lambda: Costs(loss=Extra(forward=-3)),
         "forward=-3 cannot be; it needs a number of 0 or more"),
        (lambda: Costs(links=Links(bandwidth=0)),
         "bandwidth=0 cannot be; it needs a number above 0"),
        (lambda: Costs(forward="1"),  # type: ignore[arg-type]
         "forward=1 is no number; it needs one of 0 or more"),
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        make()  # type: ignore[operator]
    assert str(error.value) == sentence


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
