from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.plan.catalog import cluster_named, model_named
from serried.plan.request import PlanRequest
from serried.plan.search.space import COLUMNS, SearchSpace, rows_of

H100 = cluster_named("h100")


def asked_of(model: str, batch: int, **changed: object) -> PlanRequest:
    return PlanRequest(model_named(model), H100, global_batch=batch, **changed)  # type: ignore[arg-type]


@given(
    model=st.sampled_from(["llama3-8b", "llama3-70b", "mixtral-8x7b", "deepseek-v3"]),
    world=st.sampled_from([1, 6, 8, 48, 64]),
    batch=st.sampled_from([48, 64, 96]),
    schedule=st.sampled_from(["1f1b", "interleaved-1f1b", "zbv"]),
)
def test_every_row_is_a_request_that_the_planner_takes(
    model: str, world: int, batch: int, schedule: str
) -> None:
    asked = asked_of(model, batch, schedule=schedule)
    rows = rows_of(SearchSpace(world), asked)
    count = len(rows["tp"])
    assert {name: len(rows[name]) for name in COLUMNS} == dict.fromkeys(COLUMNS, count)
    assert (rows["tp"] * rows["cp"] * rows["pp"] * rows["dp"] == world).all()
    assert (rows["dp"] * rows["micro_batch"] * rows["microbatches"] == batch).all()
    table = np.stack([rows[name] for name in COLUMNS], axis=1)
    assert len(np.unique(table, axis=0)) == count
    if schedule == "interleaved-1f1b" and count:
        assert (rows["microbatches"] % rows["pp"] == 0).all()
        assert (rows["chunks"] > 1).all()


def test_all_layouts_of_a_small_job_are_there() -> None:
    rows = rows_of(SearchSpace(4), asked_of("llama3-8b", 4))
    found = {tuple(row) for row in np.stack([rows[n] for n in ("tp", "pp", "cp")], 1).tolist()}
    sizes = [1, 2, 4]
    wanted = {
        (tp, pp, cp) for tp in sizes for pp in sizes for cp in sizes if 4 % (tp * pp * cp) == 0
    }
    assert found == wanted


def test_a_fixed_size_is_kept() -> None:
    rows = rows_of(SearchSpace(64, tp=(4,), micro_batch=(2,)), asked_of("llama3-8b", 64))
    assert set(rows["tp"].tolist()) == {4}
    assert set(rows["micro_batch"].tolist()) == {2}


def test_no_gpu_is_refused() -> None:
    with pytest.raises(InputError, match="0 GPUs cannot be"):
        SearchSpace(0)
