"""What the page shows of a job without a pipeline is what the command line prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from serried.trace.measure.ranks.period import PARTS
from serried.views.web.trace import sample
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.trace.period import period_answer
from tests.trace.measure.ranks.test_slowest import even
from tests.trace.simulated_run import simulated_run
from tests.views.trace.test_verdict import data_parallel


def asked(steps: int = 8) -> dict[str, Any]:
    own = even(4, steps)
    for row in own["loader"]:
        row[2] += 15
    return period_answer(NamedTrace("mine", data_parallel(own, loads=1.0)))


def test_ranks_come_with_host_and_parts_that_add_up_the_waited_for_first() -> None:
    answer = asked()
    ranks = answer["periods"]["ranks"]
    assert [each["rank"] for each in ranks] == [2, 0, 1, 3]
    assert (ranks[0]["host"], ranks[0]["waited_for_us"]) == ("a", 15_000)
    for each in ranks:
        assert sum(each[f"{name}_us"] for name in PARTS) == pytest.approx(each["period_us"])
    assert json.loads(json.dumps(answer)) == answer


def test_a_pipeline_has_a_bubble_and_no_period() -> None:
    answer = period_answer(NamedTrace("run", simulated_run()))
    assert answer["periods"] is None


def test_of_a_large_trace_the_last_steps_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each step of 4 ranks has 24 spans.
    monkeypatch.setattr(sample, "SPANS", 100)
    assert asked(steps=8)["periods"]["steps"] == [5, 6, 7]
