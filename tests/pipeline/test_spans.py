"""Planned spans are the simulation, in the columns of a trace."""

from __future__ import annotations

from fractions import Fraction

from serried.action import ActionKind
from serried.pipeline import Costs, Request, generate, planned_spans, simulate


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
