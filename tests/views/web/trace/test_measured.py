"""One recorded step goes to the Schedule view as a schedule does, labelled as measured."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from serried.errors import InputError
from serried.views.web.trace import measured as trace_measured
from serried.views.web.trace.measured import measured_payload
from serried.views.web.trace.payload import NamedTrace
from tests.trace.simulated_run import FORWARD, simulated_run
from tests.views.web.reader import read


def slow(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    """Every step is slower than the one before."""
    return FORWARD + step * 100_000


@pytest.fixture(scope="module")
def named() -> NamedTrace:
    return NamedTrace("slow", simulated_run(forward=slow))


def test_the_step_asked_for_is_sent_in_milliseconds(named: NamedTrace) -> None:
    message = read(measured_payload(named, {"step": ["2"]}))
    assert (message.header["step"], message.header["steps"]) == (2, [0, 2])
    assert message.header["ranks"] == [0, 2, 4, 6]
    assert message.header["makespan"] == pytest.approx(11 * 3.2)
    assert message.header["bubble"]["makespan"] == pytest.approx(3 / 11)
    ends = message.columns["end"] / message.header["ticks_per_unit"]
    assert ends.max() == pytest.approx(11 * 3.2)


def test_without_a_step_the_one_of_the_middling_window_is_sent(named: NamedTrace) -> None:
    assert read(measured_payload(named, {})).header["step"] == 1


def test_causes_add_up_and_none_is_called_latency(named: NamedTrace) -> None:
    message = read(measured_payload(named, {}))
    idle, causes = message.header["idle"], message.header["causes"]
    assert "LATENCY" not in idle["causes"]
    assert sum(idle["causes"].values()) == pytest.approx(idle["total"])
    lengths = message.columns["idle:end"] - message.columns["idle:start"]
    for number, cause in enumerate(causes):
        sent = lengths[message.columns["idle:cause"] == number].sum() / 1_000_000
        assert sent == pytest.approx(idle["causes"].get(cause, 0))
    assert not len(message.columns["path:rank"]), "a measured step has no critical path"
    assert not np.any(message.columns["critical"])


def test_a_plan_of_the_run_takes_its_sizes_and_median_times(named: NamedTrace) -> None:
    assert read(measured_payload(named, {})).header["times"] == {
        "stages": "4",
        "microbatches": "8",
        "chunks": "",
        "forward": str(float(Fraction(11, 10))),
        "input_grad": "1",
        "weight_grad": "1",
    }


def test_a_step_that_is_not_there_is_refused_with_those_there_are(named: NamedTrace) -> None:
    with pytest.raises(InputError, match="the run has no step 9; it has 3, from 0 to 2"):
        measured_payload(named, {"step": ["9"]})


def test_a_step_too_large_to_draw_is_refused(
    named: NamedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_measured, "MOST_CELLS", 10)
    with pytest.raises(InputError, match="holds 64 actions, more than this page draws"):
        measured_payload(named, {})
