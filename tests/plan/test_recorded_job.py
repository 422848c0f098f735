"""A recorded run is the job that it was, and its step the median of those after warm-up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.catalog import cluster_named, model_named
from serried.plan.recorded_job import recorded_job
from serried.trace.model.trace import Trace
from tests.plan.retime.simulated import run_of

MODEL = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 192, "vocab": 256}


def of_job(trace: Trace, **changed: object) -> Trace:
    return replace(trace, job=replace(trace.job, **changed))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def run() -> Trace:
    trace, _ = run_of(2, "interleaved-1f1b", 8, dp=2, cores=4)
    return of_job(trace, model=MODEL, training={"zero": "1", "dtype": "float32"})


def test_sizes_schedule_and_model_are_those_of_the_run(run: Trace) -> None:
    made = recorded_job(run)
    asked, degrees = made.request, made.request.degrees
    assert (degrees.pp, degrees.dp, degrees.chunks, degrees.tp) == (2, 2, 2, 1)
    assert (asked.schedule, asked.num_microbatches, asked.global_batch) == (
        "interleaved-1f1b",
        8,
        32,
    )
    assert (asked.sequence, asked.micro_batch, asked.zero, asked.compute) == (8, 2, 1, "fp32")
    shape = asked.model
    assert (shape.layers, shape.hidden, shape.kv_heads, shape.vocab) == (16, 64, 2, 256)
    periods = {round(float(each), 6) for each in [made.step_s]}
    assert periods == {round(made.step_s, 6)} and made.step_s > 0.1


def test_ranks_on_fewer_cores_have_their_part_of_one(run: Trace) -> None:
    whole, half = (recorded_job(of_job(run, cores=cores)).request.cluster for cores in (4, 2))
    assert whole.gpu.name == half.gpu.name == "cpu"
    assert half.gpu.peak("bf16") == whole.gpu.peak("bf16") / 2
    assert half.gpus_per_node == 4


def test_a_gpu_is_found_by_its_name(run: Trace) -> None:
    made = recorded_job(of_job(run, device="NVIDIA H100 80GB HBM3", backend="nccl"))
    assert made.request.cluster.gpu.name == "h100"


def test_what_a_run_does_not_say_may_be_given(run: Trace) -> None:
    given = {"model": model_named("llama3-8b"), "cluster": cluster_named("a100")}
    made = recorded_job(of_job(run, model={}, device="", cores=0), **given)  # type: ignore[arg-type]
    assert (made.request.model.name, made.request.cluster.gpu.name) == ("llama3-8b", "a100-80")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"compute": "emulated"}, "has emulated compute, which tells nothing of hardware"),
        ({"model": {}}, "does not say the sizes of its model; a run of serried train does"),
        ({"device": ""}, "does not say what it ran on"),
        ({"device": "Abacus 3"}, "ran on Abacus 3, which serried does not know; name its cluster"),
        ({"work": {"layers": 16}}, "does not say sequences and tokens of a microbatch"),
    ],
)
def test_a_run_that_tells_too_little_is_refused(
    run: Trace, changed: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        recorded_job(of_job(run, **changed))
