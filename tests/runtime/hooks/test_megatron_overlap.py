"""Megatron-core's combined step, a forward and a backward side by side, recorded on a GPU.

``overlap_moe_expert_parallel_comm`` needs CUDA streams; the ranks share the first GPU.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import serried
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.in_memory import merge
from serried.trace.model.pairs import pair_messages
from serried.trace.model.trace import Trace
from tests.runtime.rank_group import NEEDS_GPU, run_ranks

pytest.importorskip("megatron.core", reason="megatron-core is missing: make bench installs it")
pytestmark = list(NEEDS_GPU)

STEPS, MICROBATCHES, HIDDEN, LENGTH, WORDS = 2, 4, 64, 32, 256


def experts(folder: Path, pp: int, chunks: int) -> dict[str, Any]:
    """Trains a small mixture of experts over ep 2, recorded; ``chunks`` of it on each rank."""
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    from megatron.core.transformer.moe import moe_utils

    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None  # 0.16.1 asks for it where there is no Transformer Engine
    virtual = chunks if chunks > 1 else None
    parallel_state.initialize_model_parallel(
        1,
        pp,
        virtual_pipeline_model_parallel_size=virtual,
        expert_model_parallel_size=2,
    )
    model_parallel_cuda_manual_seed(1)
    model = chunks_of_model(pp, virtual)
    run = get_forward_backward_func()
    for step in range(STEPS + 1):
        with serried.record_steps(step, 1, STEPS + 1, folder=folder):
            run(
                forward_step_func=forward_of_user,
                data_iterator=[None for _ in model],
                model=model,
                num_microbatches=MICROBATCHES,
                seq_length=LENGTH,
                micro_batch_size=1,
                forward_only=False,
            )
    recorder_doors.finish()
    parallel_state.destroy_model_parallel()
    return {}


def chunks_of_model(pp: int, virtual: int | None) -> list[Any]:
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.module import Float16Module
    from megatron.core.transformer.transformer_config import TransformerConfig

    config = TransformerConfig(
        num_layers=2 * pp * (virtual or 1),
        hidden_size=HIDDEN,
        num_attention_heads=4,
        num_moe_experts=4,
        moe_token_dispatcher_type="alltoall",
        expert_model_parallel_size=2,
        pipeline_model_parallel_size=pp,
        virtual_pipeline_model_parallel_size=virtual,
        overlap_moe_expert_parallel_comm=True,
        bf16=True,
        params_dtype=torch.bfloat16,
        pipeline_dtype=torch.bfloat16,
        add_bias_linear=False,
        overlap_p2p_comm=pp > 1,
        batch_p2p_comm=pp == 1,
    )
    place = parallel_state.get_pipeline_model_parallel_rank()
    return [
        Float16Module(
            config,
            GPTModel(
                config,
                get_gpt_layer_local_spec(num_experts=4, moe_grouped_gemm=False),
                WORDS,
                LENGTH,
                pre_process=(place, chunk) == (0, 0),
                post_process=(place, chunk) == (pp - 1, (virtual or 1) - 1),
                position_embedding_type="rope",
                vp_stage=chunk if virtual else None,
            ).cuda(),
        )
        for chunk in range(virtual or 1)
    ]


def forward_of_user(batches: object, model: Any, return_schedule_plan: bool = False) -> Any:
    words = torch.randint(WORDS, (1, LENGTH))
    places = torch.arange(LENGTH)[None]
    later = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).triu(1)
    compute = model.build_schedule_plan if return_schedule_plan else model
    output = compute(words, places, later, labels=words)

    def loss(output: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        mean = output.float().mean()
        return mean, {"loss": mean.detach()}

    return output, loss


def computed(trace: Trace, rank: int, step: int) -> list[str]:
    """Returns the computations of a rank's step, in order."""
    wanted = {"F", "B", "OVERLAP_F_B"}
    return [
        str(span.action)
        for span in trace.spans
        if (span.rank, span.step) == (rank, step) and span.action.kind.name in wanted
    ]


def test_without_a_pipeline_each_backward_overlaps_the_next_forward(tmp_path: Path) -> None:
    run_ranks(experts, 2, tmp_path, tmp_path / "spans", 1, 1, device="cuda")
    trace = merge([tmp_path / "spans"])
    for rank in range(2):
        for step in (1, 2):
            assert computed(trace, rank, step) == [
                *("0F0", "0OVERLAP_F_B1", "0OVERLAP_F_B2", "0OVERLAP_F_B3", "0B3")
            ]


def test_in_an_interleaved_pipeline_every_microbatch_goes_both_ways(tmp_path: Path) -> None:
    run_ranks(experts, 4, tmp_path, tmp_path / "spans", 2, 2, device="cuda")
    trace = merge([tmp_path / "spans"])
    for rank in range(4):
        found = Counter(
            span.action.kind.name for span in trace.spans if (span.rank, span.step) == (rank, 1)
        )
        assert found["F"] + found["OVERLAP_F_B"] == 2 * MICROBATCHES
        assert found["B"] + found["OVERLAP_F_B"] == 2 * MICROBATCHES
        assert found["OVERLAP_F_B"] > 0
    assert len(pair_messages(trace.spans).sends) > 0
