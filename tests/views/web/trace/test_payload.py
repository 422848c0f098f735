"""A trace's payload: every span in a track of its rank, none overlapping, and its statistics."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried import frameworks
from serried.action import COMPUTE, ActionKind, Span, Spans
from serried.frameworks import Sizes
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import TracedJob
from serried.trace.model.trace import Trace
from serried.views.colours import ACTIONS
from serried.views.web.trace.lanes import lanes
from serried.views.web.trace.payload import NamedTrace, question_of, trace_payload, traces_answer
from serried.views.web.wire.query import read_query
from tests.trace.recorded_run import Run, table
from tests.views.web.reader import Message, read

RUN = Run(pp=2, tp=2, dp=2, num_microbatches=4)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return merge([RUN.write(tmp_path_factory.mktemp("runs") / "small")])


@pytest.fixture(scope="module")
def message(trace: Trace) -> Message:
    return read(trace_payload(NamedTrace("small", trace)))


def spans_of(message: Message) -> set[tuple[object, ...]]:
    names = ("rank", "kind", "stage", "microbatch", "step", "peer", "start_ns", "end_ns")
    return set(zip(*(message.columns[name].tolist() for name in names), strict=True))


def test_every_span_recorded_is_sent_once(message: Message, trace: Trace) -> None:
    sent = spans_of(message)
    assert len(sent) == len(message.columns["rank"]) == len(trace.spans) == len(RUN.spans())
    for span in trace.spans:
        action = span.action
        row = (span.rank, action.kind, action.stage, action.microbatch, span.step, span.peer)
        assert (*row, float(span.start_ns), float(span.end_ns)) in sent


def test_within_a_track_spans_of_one_rank_follow_one_another(message: Message) -> None:
    columns = message.columns
    bounds = columns["track:bounds"]
    assert (bounds[0], bounds[-1]) == (0, len(columns["rank"]))
    for track, (first, last) in enumerate(pairwise(bounds)):
        assert set(columns["rank"][first:last]) == {columns["track:rank"][track]}
        assert (columns["end_ns"][first : last - 1] <= columns["start_ns"][first + 1 : last]).all()


def test_rows_stand_in_rank_order_with_stage_node_and_pipeline(message: Message) -> None:
    columns = message.columns
    rank = columns["track:rank"]
    assert (np.diff(rank) >= 0).all()
    assert set(rank.tolist()) == set(range(8))
    layout = frameworks.layout("megatron", Sizes(8, tp=2, pp=2))
    for number, ranks in enumerate(layout.groups("pp").lists()):
        for stage, each in enumerate(ranks):
            assert set(columns["track:stage"][rank == each]) == {stage}
            assert set(columns["track:pipeline"][rank == each]) == {number}


def test_steps_reach_from_their_first_span_to_their_last(message: Message, trace: Trace) -> None:
    assert message.columns["step:number"].tolist() == [0, 1]
    for step in (0, 1):
        inside = trace.spans.step == step
        assert message.columns["step:start_ns"][step] == trace.spans.start_ns[inside].min()
        assert message.columns["step:end_ns"][step] == trace.spans.end_ns[inside].max()


def test_the_job_says_that_its_compute_was_emulated(message: Message) -> None:
    assert message.header["job"]["compute"] == "emulated"


def test_the_bubble_measured_stands_beside_the_ideal(message: Message) -> None:
    statistics = message.header["statistics"]
    assert statistics["bubble"] == pytest.approx(1 / 5)
    assert statistics["ideal"] == pytest.approx(1 / 5)
    assert statistics["num_steps"] == 2


def test_every_kind_of_action_has_a_colour_and_says_whether_it_computes(message: Message) -> None:
    sent = {each["number"]: each for each in message.header["actions"]}
    assert set(sent) == set(ActionKind) == set(ACTIONS)
    assert {number for number, each in sent.items() if each["computes"]} == set(COMPUTE)


@pytest.mark.parametrize(("lang", "word"), [("en", "have no file"), ("zh", "没有")])
def test_what_a_trace_lacks_is_said_in_the_page_s_language(
    lang: str, word: str, tmp_path: Path
) -> None:
    torn = merge([RUN.write(tmp_path / "part", only=range(4))])
    header = read(trace_payload(NamedTrace("part", torn))).header
    assert any(word in warning for warning in header["warnings"][lang])


def test_files_without_an_end_are_told_apart_from_what_a_trace_lacks(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "torn", only=range(4))
    cut = folder / "rank-00001.spans"
    cut.write_bytes(cut.read_bytes()[:-1])
    header = read(trace_payload(NamedTrace("torn", merge([folder])))).header
    assert ["rank 1" in each for each in header["torn"]["en"]] == [True]
    assert not any("rank-00001" in each for each in header["warnings"]["en"])


def test_a_trace_whose_layout_is_not_known_still_shows_its_rows(trace: Trace) -> None:
    foreign = dataclasses.replace(trace, layout=None)
    columns = read(trace_payload(NamedTrace("foreign", foreign))).columns
    assert set(columns["track:rank"].tolist()) == set(range(8))
    assert set(columns["track:stage"].tolist()) == {0}


def test_the_traces_on_offer_ask_for_their_own_layout(trace: Trace) -> None:
    (offered,) = traces_answer([NamedTrace("small", trace)])["traces"]
    assert (offered["name"], offered["num_spans"]) == ("small", len(trace.spans))
    question = offered["question"]
    query = read_query({name: [word] for name, word in question.items() if isinstance(word, str)})
    assert trace.layout is not None
    assert query.layout.sizes == trace.layout.sizes
    assert query.dims == ("dp", "tp", "pp")


def test_a_question_keeps_an_order_and_settings_that_are_not_the_default() -> None:
    job = TracedJob(
        "megatron", 8, {"tp": 2, "pp": 2}, "tp-cp-ep-pp-dp", "1f1b", 4, options={"use_sharp": "0"}
    )
    question = question_of(job)
    assert (question["order"], question["set"]) == ("tp-cp-ep-pp-dp", ["use_sharp=0"])
    assert question_of(dataclasses.replace(job, order="tp-cp-ep-dp-pp"))["order"] == ""


def test_a_question_says_only_the_sizes_that_do_not_follow_from_others() -> None:
    sizes = {"tp": 2, "cp": 1, "pp": 2, "dp": 2, "ep": 1, "etp": 2, "edp": 2}
    assert "etp" not in question_of(TracedJob("megatron", 8, sizes, "", "1f1b", 4))
    assert question_of(TracedJob("megatron", 8, {**sizes, "etp": 1}, "", "1f1b", 4))["etp"] == "1"
    sizes = {"tp": 1, "pp": 1, "dp": 8, "zero1": 4, "nettest": 32}
    question = question_of(TracedJob("internlm", 8, sizes, "", "1f1b", 4))
    assert (question["zero1"], "nettest" in question) == ("4", False)


def test_a_question_about_named_axes_asks_for_nothing_beside_them() -> None:
    options = {"axes": "pp=2 dp=2", "ranks": "0 2 4 6"}
    question = question_of(
        TracedJob("custom", 8, {"pp": 2, "dp": 2}, "pp,dp", "x", 4, options=options)
    )
    words = {name: [each] if isinstance(each, str) else each for name, each in question.items()}
    assert read_query(words).layout.groups("pp").lists() == [[0, 4], [2, 6]]


def test_a_job_of_a_framework_that_is_not_known_is_offered_all_the_same() -> None:
    question = question_of(TracedJob("nemo", 8, {"tp": 2, "etp": 4}, "a-b", "1f1b", 4))
    assert (question["framework"], question["etp"], question["order"]) == ("nemo", "4", "a-b")


def spans_at(times: list[tuple[int, int]]) -> Spans:
    rows = sorted((start, start + length) for start, length in times)
    kind = Span(0, RUN.spans()[0].action, 0, 0, 1).action
    return table([Span(0, kind, 0, start, end) for start, end in rows])


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=20))
def test_spans_that_overlap_go_to_lanes_of_their_own(times: list[tuple[int, int]]) -> None:
    spans = spans_at(times)
    lane = lanes(spans)
    for number in range(lane.max() + 1):
        chosen = spans.where(lane == number)
        assert (chosen.end_ns[:-1] <= chosen.start_ns[1:]).all()
    deepest = max(
        int(((spans.start_ns <= at) & (spans.end_ns > at)).sum()) for at in spans.start_ns.tolist()
    )
    assert lane.max() + 1 == deepest
