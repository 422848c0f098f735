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
from serried.trace.merge.files import place_of
from serried.trace.model.trace import Trace

WORDS = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192"}


def traced(world: int, batch: int, **sizes: object) -> Trace:
    asked = LayoutRequest.of({"world_size": world, "tp": 2, "pp": 4} | sizes)
    layout, placement = asked.laid_out()
    made = plan_request(asked, WORDS | {"global_batch": str(batch)})
    return planned_trace(made, layout, placement)


def test_every_rank_runs_what_its_place_in_the_pipeline_does() -> None:
    trace = traced(16, 64)
    counts = np.bincount(trace.spans.rank)
    # 32 microbatches on two replicas of tp 2: a forward and a backward each, a sum, an optimizer.
    assert len(counts) == 16 and set(counts.tolist()) == {2 * 32 + 2}
    first = trace.spans.where(trace.spans.rank == 0)
    other = trace.spans.where(trace.spans.rank == 1)
    assert (first.start_ns == other.start_ns).all() and set(first.stage.tolist()) == {0, -1}


def test_the_timeline_is_as_long_as_the_step_that_is_simulated() -> None:
    asked = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    layout, placement = asked.laid_out()
    made = plan_request(asked, WORDS | {"global_batch": "64"})
    trace = planned_trace(made, layout, placement)
    assert trace.spans.end_ns.max() / 1e9 == pytest.approx(simulated_step(made).step_s, rel=1e-6)


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
