from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.planned_trace import planned_trace
from serried.plan.time.simulated import simulated_step
from serried.trace.formats.chrome import write_chrome
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.merge.files import place_of
from serried.trace.model.pairs import pair_messages
from serried.trace.model.trace import Trace
from serried.views.trace.text import headlines, message_lines

WORDS = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192"}


def traced(world: int, batch: int, **sizes: object) -> Trace:
    asked = LayoutRequest.of({"world_size": world, "tp": 2, "pp": 4} | sizes)
    layout, placement = asked.laid_out()
    made = plan_request(asked, WORDS | {"global_batch": str(batch)})
    return planned_trace(made, layout, placement)


def test_every_rank_runs_what_its_place_in_the_pipeline_does() -> None:
    trace = traced(16, 64)
    counts = np.bincount(trace.spans.rank)
    # 32 microbatches on two replicas of tp 2: a forward and a backward each, a sum, an optimizer;
    # messages go both ways over one boundary at the ends of the pipeline, over two within.
    ends, within = 4 * 32 + 2, 6 * 32 + 2
    assert counts.reshape(4, 4).tolist() == [[ends] * 4, [within] * 4, [within] * 4, [ends] * 4]
    first = trace.spans.where(trace.spans.rank == 0)
    other = trace.spans.where(trace.spans.rank == 1)
    assert (first.start_ns == other.start_ns).all() and set(first.stage.tolist()) == {0, -1}


def test_the_timeline_is_as_long_as_the_step_that_is_simulated() -> None:
    asked = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    layout, placement = asked.laid_out()
    made = plan_request(asked, WORDS | {"global_batch": "64"})
    trace = planned_trace(made, layout, placement)
    assert trace.spans.end_ns.max() / 1e9 == pytest.approx(simulated_step(made).step_s, rel=1e-6)


@pytest.mark.parametrize("schedule", ["1f1b", "zbv", "dualpipe"])
def test_all_messages_pair_within_their_own_pipeline(schedule: str) -> None:
    asked = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    layout, placement = asked.laid_out()
    words = WORDS | {"global_batch": "16", "schedule": schedule}
    trace = planned_trace(plan_request(asked, words), layout, placement)
    pairs = pair_messages(trace.spans)
    sent = trace.spans.where(pairs.sends)
    met = trace.spans.where(pairs.receives)
    assert len(pairs) and not len(pairs.lone_sends) and not len(pairs.lone_receives)
    assert (sent.peer == met.rank).all() and (met.peer == sent.rank).all()
    pipeline = layout.groups("pp").index(16)
    assert (pipeline[sent.rank] == pipeline[met.rank]).all()
    # Half a microbatch of 8,192 tokens x 4,096 numbers of 2 bytes, shared by tp.
    assert set(sent.size_bytes.tolist()) == {8192 * 4096 * 2 // 2}
    assert (met.end_ns >= sent.end_ns).all()


def test_a_plan_has_one_clock_and_says_that_nothing_ran(tmp_path: Path) -> None:
    write_chrome(traced(16, 16), tmp_path / "plan.json")
    again = read_trace([place_of(str(tmp_path / "plan.json"))])
    lines = message_lines(measure(again))
    assert lines == ["sends and receives pair: 384 of 384"]
    assert (again.spans.end_ns == traced(16, 16).spans.end_ns).all()
    assert headlines(again, measure(again))[1].endswith("; planned, nothing ran")


def test_of_a_large_job_one_replica_is_shown_and_of_a_larger_one_a_pipeline() -> None:
    asked = LayoutRequest.of({"world_size": 64, "tp": 2, "pp": 4})
    layout, placement = asked.laid_out()
    made = plan_request(asked, WORDS | {"global_batch": "64"})

    def ranks(most: int) -> list[int]:
        trace = planned_trace(made, layout, placement, cut_above=most)
        assert bool(trace.warnings) == (len(trace.ranks) < 64)
        return [*trace.ranks]

    assert ranks(10_000) == [*range(64)]
    assert ranks(1_000) == [0, 1, 16, 17, 32, 33, 48, 49]
    assert ranks(300) == [0, 16, 32, 48]


def test_it_is_written_and_read_as_any_trace(tmp_path: Path) -> None:
    trace = traced(8, 8)
    write_chrome(trace, tmp_path / "plan.json")
    again = read_trace([place_of(str(tmp_path / "plan.json"))])
    assert isinstance(again, Trace)
    assert len(again.spans) == len(trace.spans)
    assert again.job.sizes["pp"] == 4


def test_a_step_of_too_many_spans_is_refused() -> None:
    with pytest.raises(InputError, match=r"spans on 8,192 ranks; at most"):
        traced(8192, 1024 * 1024)
