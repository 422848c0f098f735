"""Costs refuse what is no time."""

from __future__ import annotations

import math

import pytest

from serried.errors import InputError
from serried.pipeline import Costs, Extra, Links


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
