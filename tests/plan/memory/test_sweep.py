"""Many layouts at once are answered as each is alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from serried.errors import InputError
from serried.plan.catalog import cluster_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.memory.job_memory import job_memory
from serried.plan.memory.sweep import Layouts, Sweep
from serried.plan.request import LowRank, PlanRequest, Recompute

H100 = cluster_named("dgx-h100")
LAYOUTS = Layouts.of(
    {
        "tp": [1, 2, 4, 8, 2, 1, 8],
        "pp": [4, 2, 1, 4, 8, 16, 2],
        "dp": [8, 8, 8, 2, 1, 2, 1],
        "cp": [1, 1, 1, 1, 2, 1, 2],
        "ep": [1, 2, 4, 2, 1, 2, 2],
        "micro_batch": [1, 2, 1, 4, 1, 1, 2],
        "microbatches": [32, 32, 64, 32, 32, 32, 64],
    }
)


def fullest_bytes(asked: PlanRequest, layouts: Layouts) -> NDArray[np.float64]:
    return Sweep(asked, layouts).fullest(asked)


def alone(asked: PlanRequest, layouts: Layouts) -> Iterator[float]:
    """Yields what each layout's plan has for its fullest rank."""
    for row in range(len(layouts)):
        told = {each.name: int(getattr(layouts, each.name)[row]) for each in fields(layouts)}
        micro, microbatches = told.pop("micro_batch"), told.pop("microbatches")
        kept = {each.name: getattr(asked, each.name) for each in fields(asked)}
        degrees = Degrees(**told)
        batch = micro * microbatches * degrees.dp
        kept |= {"degrees": degrees, "micro_batch": micro, "global_batch": batch}
        yield float(job_memory(PlanRequest(**kept)).fullest.total)


def asked(name: str, **told: Any) -> PlanRequest:
    return PlanRequest(model_named(name), H100, sequence=8192, **told)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"zero": 0, "recompute": Recompute("full")},
        {"zero": 3, "framework": "fsdp", "states": "fsdp2-mixed"},
        {"zero": 2, "framework": "deepspeed", "states": "fp16-adam", "has_flash_attention": False},
        {"schedule": "gpipe", "compute": "fp8", "recompute": Recompute("selective")},
        {"schedule": "zb-h1", "has_sequence_parallel": False},
        {"offload": "optimizer", "recompute": Recompute("full", layers=1)},
        {"offload": "activations"},
        {"options": {"implementation": "megatron-deepspeed"}, "states": "fp32-grads"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["llama3-8b", "mixtral-8x7b"])
def test_layouts_are_answered_as_each_is_alone(name: str, told: dict[str, Any]) -> None:
    request = asked(name, **told)
    layouts = LAYOUTS if name == "mixtral-8x7b" else Layouts.of(vars(LAYOUTS) | {"ep": 1})
    found = fullest_bytes(request, layouts)
    # A plan cuts each item to whole bytes.
    assert found == pytest.approx(list(alone(request, layouts)), abs=16)


def test_adapters_are_answered_too() -> None:
    request = asked("llama3-8b", lora=LowRank(16), zero=0)
    layouts = Layouts.of({"tp": [1, 2], "dp": [8, 4], "microbatches": 4})
    assert fullest_bytes(request, layouts) == pytest.approx(list(alone(request, layouts)), abs=16)


@pytest.mark.parametrize("schedule", ["interleaved-1f1b", "zbv", "dualpipev"])
def test_of_several_chunks_the_sweep_is_near(schedule: str) -> None:
    request = asked("llama3-70b", schedule=schedule)
    layouts = Layouts.of({"tp": 8, "pp": [2, 4, 8], "dp": 2, "chunks": 2, "microbatches": 64})
    found = fullest_bytes(request, layouts)
    assert found == pytest.approx(list(alone(request, layouts)), rel=0.04)


def test_a_schedule_without_a_closed_form_is_refused() -> None:
    with pytest.raises(InputError, match="no closed form"):
        fullest_bytes(asked("llama3-8b", schedule="hanayo"), LAYOUTS)


def test_the_order_of_layouts_does_not_matter() -> None:
    request = asked("mixtral-8x7b")
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    assert fullest_bytes(request, LAYOUTS)[order].tolist() == (
        fullest_bytes(request, LAYOUTS.rows(order)).tolist()
    )
