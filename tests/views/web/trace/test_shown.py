"""What a trace's timeline is drawn from: its groups of rows, its ways to colour, its steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.errors import InputError
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.trace import Trace
from serried.views.web.trace import sample as trace_sample
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.payload import NamedTrace, rows_payload, scale_answer, trace_payload
from serried.views.web.trace.sample import some_steps
from serried.views.web.trace.shown import ShownTrace
from tests.trace.recorded_run import Run
from tests.views.web.reader import read

RUN = Run(pp=2, tp=2, dp=2, num_microbatches=4, num_steps=5)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return merge([RUN.write(tmp_path_factory.mktemp("runs") / "small")])


def shown_of(trace: Trace) -> ShownTrace:
    return ShownTrace(trace, TraceAnswers(trace))


def test_rows_stand_under_nodes_stages_and_every_kind_of_the_layout(trace: Trace) -> None:
    shown = shown_of(trace)
    assert shown.groupings[:2] == ["node", "stage"]
    assert {"tp", "dp", "pp"} <= set(shown.groupings)
    assert shown.grouping("node").of.tolist() == [0] * 8
    assert shown.grouping("stage").of.tolist() == [0] * 4 + [1] * 4
    assert shown.grouping("tp").of.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert shown.grouping("tp").size.tolist() == [2, 2, 2, 2]


def test_ranks_that_are_in_no_group_share_one_of_their_own(trace: Trace) -> None:
    shown = shown_of(trace)
    assert trace.layout is not None
    partial = next(
        kind.name
        for kind in trace.layout.kinds
        if (trace.layout.groups(kind.name).index(8) < 0).any()
    )
    grouping = shown.grouping(partial)
    assert grouping.has_rest
    assert grouping.size.sum() == 8
    assert grouping.of.max() == len(grouping.size) - 1


def test_the_busy_share_of_a_group_is_the_mean_of_its_ranks(trace: Trace) -> None:
    shown = shown_of(trace)
    total = shown.table.total_ns
    computed = 5 * RUN.num_microbatches * 3_000_000
    assert shown.grouping("dp").busy == pytest.approx(np.full(4, computed / total))


def test_a_trace_without_a_layout_offers_its_nodes(trace: Trace) -> None:
    assert shown_of(replace(trace, layout=None)).groupings == ["node"]


def test_the_rows_of_a_grouping_are_labelled_as_dimensions_are(trace: Trace) -> None:
    named = NamedTrace("small", trace)
    message = read(rows_payload(named, "dp"))
    assert (message.header["label"], message.header["has_rest"]) == ("DP", False)
    assert message.columns["size"].tolist() == [2, 2, 2, 2]


def test_lateness_is_offered_where_the_schedule_is_known_or_recognised(trace: Trace) -> None:
    named = NamedTrace("small", trace)
    assert list(named.shown.measured) == ["lateness"]
    assert len(scale_answer(named, "lateness")["edges"]) == 6
    unnamed = replace(trace, job=replace(trace.job, schedule=UNKNOWN_SCHEDULE))
    assert list(NamedTrace("unnamed", unnamed).shown.measured) == ["lateness"]
    assert NamedTrace("large", unnamed, whole_below=10).shown.measured == {}
    mixed = replace(trace.spans, microbatch=trace.spans.microbatch * 3 % RUN.num_microbatches)
    foreign = replace(unnamed, spans=mixed)
    assert NamedTrace("foreign", foreign).shown.measured == {}
    with pytest.raises(InputError, match="cannot be coloured by 'lateness'; it can by microbatch"):
        scale_answer(NamedTrace("foreign", foreign), "lateness")


def test_the_sums_of_the_last_two_ways_to_colour_are_kept(trace: Trace) -> None:
    shown = shown_of(trace)
    first = shown.levels("")
    assert shown.levels("") is first
    shown.levels("step")
    shown.levels("microbatch")
    assert shown.levels("") is not first


def test_a_large_trace_is_offered_without_its_spans(trace: Trace) -> None:
    message = read(trace_payload(NamedTrace("small", trace, whole_below=10)))
    assert (message.header["whole"], message.header["statistics"]) == (False, None)
    assert "start_ns" not in message.columns
    assert message.columns["track:bounds"][-1] == len(trace.spans)
    assert message.header["total_ns"] == trace.spans.end_ns.max()


def test_a_large_trace_is_measured_by_some_of_its_steps(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert some_steps(trace) is trace
    monkeypatch.setattr(trace_sample, "SPANS", len(trace.spans) * 2 // 5)
    assert np.unique(some_steps(trace).spans.step).tolist() == [1, 3]
    monkeypatch.setattr(trace_sample, "SPANS", 1)
    assert np.unique(some_steps(trace).spans.step).tolist() == [2]
    assert [step.step for step in TraceAnswers(trace).statistics.steps] == [2]
