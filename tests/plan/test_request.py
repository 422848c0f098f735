from __future__ import annotations

from typing import Any

import pytest

from serried.errors import InputError
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ExpertShape, ModelShape
from serried.plan.request import LowRank, PlanRequest

LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
MIXTRAL = ModelShape(
    "mixtral", 32, 4096, 32, 8, 128, 14336, 32000, experts=ExpertShape(8, 2, 14336)
)
H100 = Cluster(
    "dgx-h100", Gpu("h100", "nvidia", {"bf16": 989e12}, 80e9, 3.35e12, 450e9), 8, 8, 5e10
)


def test_microbatches_and_tokens_follow_from_the_batch() -> None:
    asked = PlanRequest(
        LLAMA, H100, Degrees(tp=2, cp=2, dp=4), sequence=8192, micro_batch=2, global_batch=64
    )
    assert (asked.num_microbatches, asked.tokens) == (8, 8192)


@pytest.mark.parametrize(
    ("model", "changed", "sentence"),
    [
        (LLAMA, {"degrees": Degrees(tp=3)}, "tp=3 does not divide heads, 32; sizes that do: 1, 2"),
        (LLAMA, {"degrees": Degrees(dp=8), "global_batch": 12}, "batches that would do: 8, 16"),
        (LLAMA, {"degrees": Degrees(cp=3)}, "6 equal parts, which 4096 tokens do not divide into"),
        (
            LLAMA,
            {"degrees": Degrees(cp=2), "sequence": 4095},
            "4095 tokens do not divide into; sequences that do: 4092, 4096; cp that does: 1$",
        ),
        (LLAMA, {"degrees": Degrees(cp=2), "sequence": 4086}, "cp that does: 1, 3, 9, 227"),
        (LLAMA, {"degrees": Degrees(dp=2, ep=2), "global_batch": 2}, "has none; leave ep at 1"),
        (
            MIXTRAL,
            {"degrees": Degrees(dp=16, ep=16), "global_batch": 16},
            "does not divide experts",
        ),
        (LLAMA, {"degrees": Degrees(pp=64)}, "64 stages have too few layers"),
        (LLAMA, {"degrees": Degrees(pp=2), "stage_layers": (32,)}, "layers are given for 1 stages"),
        (LLAMA, {"compute": "int4"}, "not multiplied in 'int4'"),
    ],
)
def test_what_cannot_be_is_refused_with_what_could(
    model: ModelShape, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        PlanRequest(model, H100, **changed)


def test_a_rank_has_its_part_of_each_stage() -> None:
    asked = PlanRequest(LLAMA, H100, Degrees(tp=2, pp=2), global_batch=4)
    first, last = asked.stages
    assert (first.layers, last.layers) == (range(16), range(16, 32))
    # 128,256 words are a multiple of 128 tp, so that tables are cut in two and norms stay whole.
    norms = 65 * 4096
    parts = sum(asked.parameters(stage).total for stage in asked.stages)
    assert parts * 2 - norms == 8_030_261_248
    assert asked.trained(first) == asked.parameters(first).total


def test_adapters_alone_are_trained_with_lora() -> None:
    asked = PlanRequest(LLAMA, H100, lora=LowRank(16))
    assert asked.trained(asked.stages[0]) == 32 * 16 * (4096 + 6144 + 8192)


def test_layers_that_megatron_cannot_divide_are_refused_when_stages_are_asked_for() -> None:
    asked = PlanRequest(LLAMA, H100, Degrees(pp=5))
    with pytest.raises(InputError, match=r"5 stages .* do not divide the 32 layers"):
        _ = asked.stages
    assert len(PlanRequest(LLAMA, H100, Degrees(pp=5), framework="fsdp").stages) == 5
