"""What the page says of a run first: the verdict, who is slow, the longest waits, the bubble."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_trace
from serried.trace.model.record import PLANNED
from serried.views.web.trace.findings import findings_answer, why_answer
from serried.views.web.trace.payload import NamedTrace
from tests.trace.measure.ranks.test_slowest import even
from tests.trace.measure.test_overlay import slow_once
from tests.trace.simulated_run import simulated_run
from tests.views.explain.reader import has_chinese
from tests.views.trace.test_verdict import data_parallel


@pytest.fixture(scope="module")
def slow() -> NamedTrace:
    """Returns a run in which one forward of one rank took much longer, once."""
    return NamedTrace("slow", simulated_run(forward=slow_once))


def cards(named: NamedTrace, kind: str) -> list[dict[str, Any]]:
    return [each for each in findings_answer(named)["cards"] if each["kind"] == kind]


def test_a_wait_is_a_card_that_says_where_it_is_seen(slow: NamedTrace) -> None:
    first, *_ = cards(slow, "gap")
    shows = first["shows"]
    row = slow.shown.table.rows([shows["slice"]])[0]  # type: ignore[arg-type]
    span = slow.trace.spans[int(row)]
    assert (span.rank, span.start_ns) == (shows["rank"], shows["to_ns"])
    assert f"rank {span.rank} waited" in first["lines"]["en"][0]
    assert has_chinese(first["lines"]["zh"][0])


def test_the_bubble_stands_beside_that_of_the_plan(slow: NamedTrace) -> None:
    (bubble,) = cards(slow, "bubble")
    sentence, causes = bubble["lines"]["en"]
    assert "1f1b itself has" in sentence
    assert causes.startswith("ranks were idle for: ")
    assert bubble["shows"] == {"heat": "idle"}
    told = findings_answer(slow)["verdict"]["en"]
    assert told[-1] == "next: serried trace compare slow --plan"


def test_an_order_without_a_name_is_told_in_either_language() -> None:
    paddle = Path(__file__).parents[3] / "goldens" / "traces" / "paddle" / "vpp"
    (bubble,) = cards(NamedTrace("vpp", read_trace([paddle])), "bubble")
    assert "; the recorded order itself has 20.0%" in bubble["lines"]["en"][0]
    assert "；记录下来的次序本身就有 20.0%" in bubble["lines"]["zh"][0]


def test_a_slow_rank_is_a_card_with_its_cost_and_what_to_do() -> None:
    own = even(8)
    for step in own["loader"]:
        step[2] += 15.0
    found = findings_answer(NamedTrace("mine", data_parallel(own, loads=1.0)))
    assert found["verdict"]["en"][0].startswith("rank 2 on a holds the others up: 15.0 ms")
    for lang, told in found["verdict"].items():
        assert told and not any("serried serve" in line for line in told), (lang, "it is open")
    assert found["trouble"] == "slow_rank"
    first = found["cards"][0]
    assert (first["kind"], first["ranks"], first["shows"]) == ("slow", [2], {"rank": 2})
    assert first["share"] == pytest.approx(0.3, abs=0.1)
    assert first["more"]["en"]


def test_what_never_ran_has_no_findings() -> None:
    trace = simulated_run()
    planned = replace(trace, job=replace(trace.job, compute=PLANNED))
    found = findings_answer(NamedTrace("plan", planned))
    assert (found["verdict"], found["cards"]) == (None, [])


def test_why_a_span_began_when_it_did(slow: NamedTrace) -> None:
    shows = cards(slow, "gap")[0]["shows"]
    told = why_answer(slow, {"slice": [str(shows["slice"])]})
    assert told["gap"]["start_us"] * 1e3 == shows["from_ns"]
    assert told["gap"]["lines"]["en"][0].startswith("in step ")
    assert why_answer(slow, {"slice": ["0"]})["gap"] is None


@pytest.mark.parametrize("text", ["", "-1", "x", "999999", "9" * 20])
def test_a_span_that_is_not_there_is_refused(slow: NamedTrace, text: str) -> None:
    with pytest.raises(InputError, match="is not there; they are numbered from 0"):
        why_answer(slow, {"slice": [text]})


def test_the_step_in_the_middle_is_one_of_median_length() -> None:
    shown = NamedTrace("run", simulated_run(num_steps=5, forward=slow_once)).shown
    length = np.subtract(shown.steps["step:end_ns"], shown.steps["step:start_ns"])
    assert sorted(length.tolist())[2] == length[shown.middle]
    assert NamedTrace("run", simulated_run(num_steps=3)).shown.middle == -1
