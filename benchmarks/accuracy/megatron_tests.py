"""Memory of Megatron-LM's own functional tests: what its last stage allocated, and between steps.

    megatron_functional_golden_memory_time.csv   figures, and most of what each test sets
    megatron_functional_settings.csv             what the tests' files say besides

Rows of tests that do not say all that their memory follows from are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.accuracy.memory_rows import (
    A100,
    B200,
    H100,
    Cells,
    MeasuredMemory,
    cells_of,
    number,
)
from benchmarks.accuracy.published import DATA
from serried.errors import InputError
from serried.mesh.layers import unfolded
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.request import PlanRequest, Recompute

SETTINGS = "megatron_functional_settings.csv"
"""What the tests' own files say that the table of their figures leaves out."""


def _settings(folder: Path) -> Mapping[str, Cells]:
    """Returns what is told of each test: beside the table, else in this package's own data."""
    told = folder / SETTINGS
    found = cells_of(told if told.is_file() else DATA / SETTINGS)
    return {cells["test"]: cells for cells in found}


def megatron(path: Path) -> Iterator[MeasuredMemory]:
    settings = _settings(path.parent)
    for figures in cells_of(path):
        cells = {**figures, **settings.get(figures["test"], {})}
        if cells["suite"] not in ("gpt", "moe", "mixtral") or not _is_stated(cells):
            continue
        try:
            request = _megatron_request(cells)
        except InputError:
            continue
        row = f"{cells['test']} on {cells['platform']}"
        group = _group(cells)
        columns = (
            ("steady, last stage", "mem_allocated_bytes_last"),
            ("allocated, last stage", "mem_max_allocated_bytes"),
        )
        for what, column in columns:
            if cells[column]:
                yield MeasuredMemory(
                    f"megatron, {what}", row, what, group, request, float(cells[column])
                )


def _is_stated(cells: Cells) -> bool:
    """Tells whether a row says all that its memory follows from.

    Tests without a recipe leave out the ranks; those of GRPO, distillation and offloading have
    other models or settings beside what the table says, and so have those that account for the
    embedding in the split or tune the groups of microbatches.
    """
    beside = ("grpo", "modelopt", "offloading", "account_for_embedding", "tunable")
    return bool(cells["world_size"]) and not any(word in cells["test"] for word in beside)


def _group(cells: Cells) -> str:
    tp = number(cells, "tensor_model_parallel_size", 1)
    kind = "experts" if cells["num_experts"] else "dense"
    fsdp = ", fsdp" if cells["use_megatron_fsdp"] == "True" else ""
    return f"{kind}, {'tp' if tp > 1 else 'no tp'}{fsdp}"


def _megatron_request(cells: Cells) -> PlanRequest:
    """Returns the job of a row; what it leaves out is Megatron's default."""
    tp = number(cells, "tensor_model_parallel_size", 1)
    pp = number(cells, "pipeline_model_parallel_size", 1)
    cp = number(cells, "context_parallel_size", 1)
    dp = number(cells, "world_size") // (tp * pp * cp)
    picture = cells["pipeline_model_parallel_layout"] or None
    is_moe = bool(cells["num_experts"])
    degrees = Degrees(
        tp=tp,
        pp=pp,
        cp=cp,
        dp=dp,
        ep=number(cells, "expert_model_parallel_size", 1),
        etp=number(cells, "expert_tensor_parallel_size", tp) if is_moe else 1,
        chunks=_chunks(cells, picture, pp),
    )
    has_engine = cells["transformer_impl"] != "local"
    options = {
        "hidden_dropout": cells["hidden_dropout"] or "0.1",
        "attention_dropout": cells["attention_dropout"] or "0.1",
        "transformer_impl": cells["transformer_impl"],
        "cross_entropy_loss_fusion": cells["cross_entropy_loss_fusion"].lower(),
        # Of a test whose settings are not known: what nearly all tests have.
        "gradient_accumulation_fusion": cells.get("gradient_accumulation_fusion", "False").lower(),
        "cublas_workspace_config": cells.get("cublas_workspace_config", ":4096:8"),
        "moe_grouped_gemm": "true" if cells["moe_grouped_gemm"] == "True" else "false",
        "moe_token_dispatcher_type": cells["moe_token_dispatcher_type"] or "allgather",
        "a2a_overlap": cells.get("overlap_moe_expert_parallel_comm", ""),
        "tp_comm_overlap": cells.get("tp_comm_overlap", ""),
        "fp8_param_gather": cells.get("fp8_param_gather", "").lower(),
    }
    instances = number(cells, "num_distributed_optimizer_instances", 1)
    is_fsdp = cells["use_megatron_fsdp"] == "True"
    return PlanRequest(
        _megatron_model(cells),
        Cluster("ci", _gpu(cells["platform"]), 8, 8, 50e9),
        degrees,
        sequence=number(cells, "seq_length"),
        micro_batch=number(cells, "micro_batch_size"),
        global_batch=number(cells, "global_batch_size"),
        schedule="interleaved-1f1b" if degrees.chunks > 1 else "1f1b",
        stage_layers=_layers(cells, degrees),
        stage_picture=picture,
        zero=3 if is_fsdp else int(cells["use_distributed_optimizer"] == "True"),
        shard_ranks=dp * cp // instances,
        states=_states(cells),
        compute="fp8" if cells["fp8_format"] else "bf16",
        recompute=_recompute(cells),
        has_sequence_parallel=cells["sequence_parallel"] == "True",
        has_flash_attention=has_engine and _is_fused(cells),
        options=options,
    )


def _megatron_model(cells: Cells) -> ModelShape:
    hidden, heads = number(cells, "hidden_size"), number(cells, "num_attention_heads")
    is_gated = cells["swiglu"] == "True"
    ffn = number(
        cells, "ffn_hidden_size", 4 * hidden * 2 // 3 // 64 * 64 if is_gated else 4 * hidden
    )
    shares = cells["group_query_attention"] == "True"
    experts = None
    if cells["num_experts"]:
        dense = re.match(r"\(\[0\]\*(\d+)", cells["moe_layer_freq"])
        experts = ExpertShape(
            number(cells, "num_experts"),
            number(cells, "moe_router_topk", 2),
            number(cells, "moe_ffn_hidden_size", ffn),
            number(cells, "moe_shared_expert_intermediate_size"),
            int(dense[1]) if dense else 0,
        )
    is_latent = cells["multi_latent_attention"] == "True"
    ranks = (
        number(cells, "kv_lora_rank", 512),
        number(cells, "qk_head_dim", 128),
        number(cells, "qk_pos_emb_head_dim", 64),
        number(cells, "v_head_dim", 128),
        number(cells, "q_lora_rank"),
    )
    is_learned = cells["position_embedding_type"] not in ("rope", "none")
    return ModelShape(
        "ci",
        number(cells, "num_layers"),
        hidden,
        heads,
        number(cells, "num_query_groups", heads) if shares else heads,
        number(cells, "kv_channels", hidden // heads),
        ffn,
        number(cells, "vocab_size", 50257),
        is_gated=is_gated,
        is_tied=cells["untie_embeddings_and_output_weights"] != "True",
        latent=LatentAttention(*ranks) if is_latent else None,
        experts=experts,
        mtp_layers=number(cells, "mtp_num_layers"),
        norm="rms" if cells["normalization"] == "RMSNorm" else "layer",
        has_bias=cells["disable_bias_linear"] != "True",
        learned_positions=number(cells, "seq_length") if is_learned else 0,
    )


def _chunks(cells: Cells, picture: str | None, pp: int) -> int:
    if picture:
        return (unfolded(picture).count("|") + 1) // pp
    each = number(cells, "num_layers_per_virtual_pipeline_stage")
    if each:
        return number(cells, "num_layers") // pp // each
    return number(cells, "num_virtual_stages_per_pipeline_rank", 1)


def _layers(cells: Cells, degrees: Degrees) -> tuple[int, ...] | None:
    """Returns the layers of each stage where the first or the last has a number of its own."""
    first = number(cells, "decoder_first_pipeline_num_layers")
    last = number(cells, "decoder_last_pipeline_num_layers")
    if not (first and last) or degrees.chunks > 1:
        return None
    between = (number(cells, "num_layers") - first - last) // (degrees.pp - 2)
    return (first, *[between] * (degrees.pp - 2), last)


def _states(cells: Cells) -> str:
    if cells["optimizer"].endswith("muon"):
        return "muon"
    return "fp16-scaled" if cells["fp16"] == "True" else "fp32-grads"


def _recompute(cells: Cells) -> Recompute:
    if cells["recompute_granularity"] == "full":
        return Recompute("full")
    if cells["recompute_granularity"] == "selective":
        return Recompute("selective", modules=tuple(re.findall(r"\w+", cells["recompute_modules"])))
    return Recompute()


def _is_fused(cells: Cells) -> bool:
    """Tells whether attention is one kernel; the oldest containers chose none where none is told.

    There, tests without a backend took to the MiB what the same tests with ``unfused`` take.
    """
    told = cells["attention_backend"]
    return told != "unfused" and (bool(told) or "dracooci" not in cells["platform"])


def _gpu(platform: str) -> Gpu:
    if "gb200" in platform:
        return B200
    return A100 if "a100" in platform or platform == "lts" else H100
