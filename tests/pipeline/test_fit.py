"""Costs fitted to the spans of a run give its times back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from serried.action import Spans
from serried.errors import InputError
from serried.pipeline import Costs, Request, fit, generate, planned_spans, simulate


def spans(name: str, costs: Costs) -> Spans:
    return planned_spans(simulate(generate(name, Request(2, 4)), costs), unit_ns=1000)


def test_each_stage_gets_its_own_times() -> None:
    fitted = fit(spans("zb-h1", Costs((1, 2), (3, 4), (5, 6))))
    assert fitted == Costs((1000, 2000), (3000, 4000), (5000, 6000), (8000, 10000))


def test_a_whole_backward_is_split_in_half() -> None:
    fitted = fit(spans("1f1b", Costs((1, 2), 3, 4)))
    assert fitted == Costs((1000, 2000), (3500, 3500), (3500, 3500), (7000, 7000))


def test_the_median_leaves_one_slow_microbatch_out() -> None:
    slow = Costs(forward=((1, 1, 1, 50), (2, 2, 2, 2)))
    assert fit(spans("1f1b", slow)).forward == (1000, 2000)


def test_a_run_without_a_backward_is_refused() -> None:
    recorded = spans("1f1b", Costs(Fraction(1)))
    with pytest.raises(InputError, match=r"^the run has no forward or no backward of stage 1, so "):
        fit(recorded.where(~((recorded.kind == 2) & (recorded.stage == 1))))
    with pytest.raises(InputError, match=r"of at least one whole step$"):
        fit(recorded.where(np.zeros(len(recorded), bool)))
