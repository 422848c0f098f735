"""Answers about a trace: its plan, its figures, what a search finds, what a range holds."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.trace.merge.in_memory import merge
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.heat import heat_payload
from serried.views.web.trace.payload import NamedTrace, trace_payload
from serried.views.web.trace.plan import late_answer, plan_payload
from serried.views.web.trace.stretch import found_answer, stretch_answer
from serried.views.web.wire.query import Words
from tests.trace.carried import DP_BYTES, write_carried
from tests.trace.measure.test_overlay import EXTRA, slow_once
from tests.trace.recorded_run import Run
from tests.trace.simulated_run import row_of, simulated_run
from tests.views.web.reader import read

MS = 1_000_000


@pytest.fixture(scope="module")
def named() -> NamedTrace:
    return NamedTrace("slow", simulated_run(forward=slow_once))


@pytest.fixture(scope="module")
def answers(named: NamedTrace) -> TraceAnswers:
    return named.answers


def words(**values: object) -> Words:
    return {name: [str(value)] for name, value in values.items()}


def test_the_plan_of_one_step_serves_every_rank_and_step(answers: TraceAnswers) -> None:
    message = read(plan_payload(answers))
    columns, spans = message.columns, answers.trace.spans
    assert message.header["schedule"] == "1f1b"
    assert len(columns["planned:kind"]) == 4 * 16, "once, for two pipelines and three steps"
    assert (np.diff(columns["planned:place"]) >= 0).all()
    assert columns["place"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    at = row_of(answers.trace, 2, "1F0", step=2)
    mine = (columns["planned:place"] == 1) & (columns["planned:kind"] == spans.kind[at])
    mine &= columns["planned:microbatch"] == 0
    start = columns["planned:start_ns"][mine].item() + columns["step:start_ns"][2]
    assert start == spans.start_ns[at]


def test_a_late_span_is_told_how_late_and_whose_doing_it_was(answers: TraceAnswers) -> None:
    at = row_of(answers.trace, 0, "0B7", step=1)
    span = answers.trace.spans[at]
    asked = words(rank=0, start=span.start_ns, kinds="B", microbatch=7)
    answer = late_answer(answers, asked)
    assert (answer["late_ns"], answer["longer_ns"]) == (EXTRA, 0)
    assert answer["causes"] == [{"rank": 4, "what": "longer", "ns": EXTRA, "count": 1}]
    assert json.loads(json.dumps(answer)) == answer


def test_a_span_that_is_not_there_or_not_planned_has_no_lateness(answers: TraceAnswers) -> None:
    nothing: dict[str, Any] = {"schema": "serried.late/1", "late_ns": None, "causes": []}
    assert late_answer(answers, words(rank=0, start=5)) == nothing
    assert late_answer(answers, words(rank=99, start=0)) == nothing


def test_without_a_plan_both_answers_are_refused(answers: TraceAnswers) -> None:
    trace = answers.trace
    job = dataclasses.replace(trace.job, schedule="unknown")
    shuffled = dataclasses.replace(trace.spans, microbatch=(trace.spans.microbatch * 3) % 8)
    unknown = TraceAnswers(dataclasses.replace(trace, job=job, spans=shuffled))
    for ask in (lambda: plan_payload(unknown), lambda: late_answer(unknown, {})):
        with pytest.raises(InputError, match="so there is no plan to lay over it"):
            ask()
    assert "lateness" not in unknown.figures
    assert "busy" in unknown.figures


def test_a_figure_is_sent_for_every_rank_with_what_is_usual(answers: TraceAnswers) -> None:
    message = read(heat_payload(answers, words(figure="excess")))
    header, values = message.header, message.columns["value"]
    assert (header["figure"], header["unit"], header["num_ranks"]) == ("excess", "ns", 8)
    assert header["figures"] == list(answers.figures)
    assert header["most"] == values.max() == values[4] == pytest.approx(EXTRA / 3)
    assert header["median"] == 0
    assert [each["rank"] for each in header["farthest"]] == [4]
    assert {len(ramp) for ramp in header["colours"].values()} == {9}
    assert read(heat_payload(answers, {})).header["figure"] == "busy"


def test_an_unknown_figure_is_refused_with_those_there_are(answers: TraceAnswers) -> None:
    with pytest.raises(InputError, match="'heat' is no figure of this trace; it has busy, idle,"):
        heat_payload(answers, words(figure="heat"))


def test_a_search_counts_and_gives_the_one_that_is_next_in_view(named: NamedTrace) -> None:
    def found(**values: object) -> dict[str, object]:
        return found_answer(named.answers, named.shown.table, words(**values))

    first = found(kinds="F", stage=1, microbatch=2)
    assert (first["count"], first["place"], first["ranks"]) == (6, 0, 2)
    later = found(kinds="F", stage=1, microbatch=2, after=30 * MS)
    span = later["span"]
    assert isinstance(span, dict)
    assert (later["place"], span["rank"], span["step"], span["action"]) == (2, 2, 1, "1F2")
    assert found(kinds="F", stage=1, microbatch=2, place=7)["place"] == 1, "it begins anew"
    assert found(kinds="F", stage=1, microbatch=2, after=10**12)["place"] == 0
    assert found(rank=99) == {
        "schema": "serried.found/1",
        "count": 0,
        "place": -1,
        "id": -1,
        "span": None,
    }


def test_what_was_found_tells_its_bytes_and_whom_it_went_over(tmp_path: Path) -> None:
    carried = NamedTrace("carried", merge([write_carried(tmp_path)]))
    table = carried.shown.table
    answer = found_answer(carried.answers, table, words(kinds="REDUCE_GRAD", rank=1, place=0))
    assert answer["span"]["bytes"] == DP_BYTES
    assert answer["span"]["group"] == {"collective": "ALL_REDUCE", "count": 2, "ranks": "1, 3"}
    answer = found_answer(carried.answers, table, words(kinds="F", rank=1))
    assert (answer["span"]["bytes"], answer["span"]["group"]) == (None, None)
    sent = read(trace_payload(carried))
    places = sent.columns["group"].tolist()
    assert {sent.header["groups"][at]["ranks"] for at in places if at >= 0} == {
        *("0, 1", "2, 3", "0, 2", "1, 3"),
    }
    assert sent.columns["size_bytes"].max() == DP_BYTES + 8


def test_the_id_of_what_was_found_is_that_of_the_timeline(named: NamedTrace) -> None:
    answer = found_answer(named.answers, named.shown.table, words(rank=5, microbatch=3, place=1))
    (span,) = list(named.shown.table.spans(np.array([answer["id"]])))
    assert (span.rank, str(span.action)) == (5, answer["span"]["action"])
    assert span.start_ns == answer["span"]["start_ns"]


def test_a_range_is_told_apart_by_kind_and_cause(answers: TraceAnswers) -> None:
    asked: Words = {"from": ["0"], "to": [str(10 * MS)], "ranks": ["0,4-5"]}
    answer = stretch_answer(answers, asked)
    assert (answer["num_ranks"], answer["total_ns"]) == (3, 30 * MS)
    assert answer["compute_ns"] + sum(answer["idle_ns"].values()) == 30 * MS
    assert {each["name"] for each in answer["kinds"]} == {"F", "B"}
    assert sum(each["time_ns"] for each in answer["kinds"]) == answer["compute_ns"]
    assert answer["longest"]["action"].startswith(("0B", "2B"))
    assert json.loads(json.dumps(answer)) == answer
    empty = stretch_answer(answers, {"from": [str(10**12)], "to": [str(10**12 + 1)]})
    assert (empty["num_spans"], empty["longest"]) == (0, None)


def test_a_microbatch_that_tensor_parallel_ranks_share_is_counted_once(tmp_path: Path) -> None:
    run = Run(pp=2, tp=2, dp=2, num_microbatches=4, num_steps=1)
    answers = NamedTrace("shared", merge([run.write(tmp_path)])).answers
    answer = stretch_answer(answers, {"from": ["0"], "to": [str(100 * MS)]})
    assert answer["microbatches"] == 4 * 2, "four of each of the two replicas"
