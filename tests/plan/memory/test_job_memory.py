"""A job's memory: items that sum, the fullest rank, and what changes it and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.plan.catalog import cluster_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.memory.job_memory import JobMemory, job_memory
from serried.plan.request import COMPUTE_FORMATS, PlanRequest, Recompute

LLAMA, H100 = model_named("llama3-8b"), cluster_named("dgx-h100")


def memory(**told: Any) -> JobMemory:
    degrees = Degrees(**{"tp": 2, "pp": 4, "dp": 2} | told.pop("degrees", {}))
    told.setdefault("global_batch", 16 * degrees.dp)
    return job_memory(PlanRequest(told.pop("model", LLAMA), H100, degrees, **told))


@given(
    st.sampled_from(["1f1b", "gpipe", "zb-h1", "zb-h2"]),
    st.sampled_from([0, 1, 2, 3]),
    st.sampled_from(["none", "selective", "full"]),
    st.sampled_from(COMPUTE_FORMATS),
)
def test_items_sum_to_the_total_and_none_is_below_zero(
    schedule: str, zero: int, recompute: Any, compute: str
) -> None:
    found = memory(schedule=schedule, zero=zero, recompute=Recompute(recompute), compute=compute)
    for each in found.of_ranks:
        assert sum(item.num_bytes for item in each.items) == each.total
        assert min(item.num_bytes for item in each.items) > 0
        assert each.steady < each.allocated < each.reserved < each.total
        assert each.interval[0] < each.total < each.interval[1]
    assert found.fullest.total == max(each.total for each in found.of_ranks)


def test_of_1f1b_the_first_stage_holds_most_activations() -> None:
    found = memory().of_ranks
    held = [each.bytes_of("activations") for each in found]
    assert held[0] > held[1] > held[2]
    assert 2 * held[1] == 3 * held[2]
    assert found[0].moment == "0B0"


def test_gpipe_holds_every_microbatch() -> None:
    one, every = memory().of_ranks[2], memory(schedule="gpipe").of_ranks[2]
    assert every.bytes_of("activations") == 8 * one.bytes_of("activations")


def test_dualpipe_holds_its_weights_twice() -> None:
    once = memory().of_ranks
    twice = memory(schedule="dualpipe").of_ranks
    both = once[1].bytes_of("parameters") + once[2].bytes_of("parameters")
    assert twice[1].bytes_of("parameters") == both


def test_embedding_and_output_make_the_ends_hold_more_weights() -> None:
    held = [each.bytes_of("parameters") for each in memory().of_ranks]
    assert held[0] > held[1] == held[2] < held[3]


@pytest.mark.parametrize(
    "told",
    [
        {"recompute": Recompute("full")},
        {"offload": "optimizer"},
        {"offload": "activations"},
        {"offload": "parameters"},
        {"zero": 3},
        {"degrees": {"cp": 2}},
    ],
)
def test_there_are_ways_to_make_room(told: dict[str, Any]) -> None:
    assert memory(**told).fullest.total < memory().fullest.total


def test_layers_recomputed_in_full_can_be_some_of_a_stage() -> None:
    by_layers = [
        memory(recompute=Recompute("full", layers=layers)).of_ranks[1].bytes_of("activations")
        for layers in (0, 2, 4, 8)
    ]
    assert by_layers == sorted(by_layers, reverse=True)
    assert by_layers[0] == memory().of_ranks[1].bytes_of("activations")


def test_a_card_that_is_too_small_lacks_what_it_says() -> None:
    found = memory(zero=0, schedule="gpipe", global_batch=128).fullest
    assert not found.fits
    assert found.room == found.card_bytes - found.total < 0
    sizes = sorted((item.num_bytes for item in found.items), reverse=True)
    assert [item.num_bytes for item in found.largest] == sizes[:3]


def test_ranks_of_a_place_begin_at_its_first() -> None:
    assert [each.first_rank for each in memory().of_ranks] == [0, 4, 8, 12]


def test_a_schedule_that_cannot_be_is_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match="zb-h2"):
        memory(schedule="zb-h2", global_batch=4)


def test_imbalance_fills_the_rank_with_the_fullest_experts() -> None:
    told: dict[str, Any] = {"model": model_named("mixtral-8x7b"), "degrees": {"ep": 2}}
    even = memory(**told | {"degrees": {"ep": 2}}).fullest
    options = {"moe_imbalance": "1.3"}
    fuller = memory(**told | {"degrees": {"ep": 2}, "options": options}).fullest
    assert fuller.bytes_of("activations") > 1.1 * even.bytes_of("activations")
    assert fuller.bytes_of("optimizer") == even.bytes_of("optimizer")


def test_multi_token_prediction_has_scores_of_its_own() -> None:
    deepseek = model_named("deepseek-v3")
    degrees = {"ep": 4, "pp": 1, "tp": 1, "dp": 16}
    found = memory(model=deepseek, degrees=degrees).of_ranks[-1]
    assert found.bytes_of("activations") > 2 * 4 * 129280 * 4096
