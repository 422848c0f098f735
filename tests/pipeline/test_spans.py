"""Planned spans are the simulation in a trace's columns; fitted costs give a run's times back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.pipeline import Costs, Request, fit, generate, planned_spans, simulate


def test_a_pair_is_two_spans_and_the_tail_follows() -> None:
    costs = Costs(overlap=2, all_reduce=Fraction(1, 2), optimizer=1)
    spans = planned_spans(simulate(generate("dualpipev", Request(1, 2)), costs), unit_ns=1000)
    rows = [(str(s.action), s.start_ns, s.end_ns) for s in spans]
    assert rows == [
        ("0F0", 0, 1000),
        ("1F0", 1000, 2000),
        ("0F1", 2000, 3000),
        ("1B0", 3000, 5000),
        ("1F1", 5000, 7000),
        ("0B0", 5000, 7000),
        ("1B1", 7000, 9000),
        ("1REDUCE_GRAD", 9000, 9500),
        ("0I1", 9000, 10000),
        ("0W1", 10000, 11000),
        ("0REDUCE_GRAD", 11000, 11500),
        ("OPTIMIZER", 11500, 12500),
    ]
    assert set(spans.kind) <= set(ActionKind)


def test_times_that_nanoseconds_cannot_hold_are_rounded() -> None:
    result = simulate(generate("gpipe", Request(1, 1)), Costs(Fraction(1, 3)))
    assert planned_spans(result, unit_ns=100).end_ns.tolist() == [33, 233]


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
