"""Jobs as columns: every number that a step's time follows from, one row a job.

    PlanRequest, PlanRequest, … ──> Jobs ──> layer, exposed, pipeline ──> StepTimes
    search's layouts ────────────────┘       formulas on whole columns

A column is one number for all jobs or one number a job; formulas are written once for both. A
search over one model replaces the columns that it varies and leaves the model's as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.plan.cluster.cluster import Cluster
from serried.plan.model.shape import ModelShape
from serried.plan.precision import recipe
from serried.plan.request import PlanRequest

Column = NDArray[np.float64]
FORMATS = ("16", "8", "4")
"""Bits that linear layers are multiplied in."""
RECIPES = ("bf16", "fp8-ds", "fp8-cs", "mxfp8", "nvfp4")
"""How numbers are made narrow before they are multiplied: bf16 not at all."""
STACKS = ("megatron", "megatron-deepspeed", "torch-fsdp", "jax")
"""Software that runs the step, where it tells in the time of a step."""
_RECIPE_OF = {"fp8": "fp8-ds", "fp16": "bf16", "fp32": "bf16"}
_STACK_OF = {
    "maxtext": "jax",
    "paxml": "jax",
    "deepspeed": "megatron-deepspeed",
    "fsdp": "torch-fsdp",
    "torchtitan": "torch-fsdp",
    "internevo": "torch-fsdp",
    "llm-foundry": "torch-fsdp",
}
PERMUTED = {"deepep": 10.0, "hybridep": 6.0}
"""How often routing passes over a token with dispatchers whose kernels permute; else 16 times."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Holds jobs, one a row of every column; ``Jobs.of`` makes them of requests."""

    clusters: tuple[Cluster, ...]
    """The distinct clusters among them."""
    cluster: NDArray[np.intp]
    """Which of those each job runs on."""
    layers: Column
    hidden: Column
    heads: Column
    kv_heads: Column
    qk_dim: Column
    v_dim: Column
    ffn: Column
    matrices: Column
    """Matrices of a feed-forward: 3 where it is gated, else 2."""
    vocab: Column
    is_tied: Column
    q_rank: Column
    kv_rank: Column
    """0 where attention is not latent."""
    nope_dim: Column
    rope_dim: Column
    experts: Column
    top_k: Column
    expert_ffn: Column
    shared_ffn: Column
    imbalance: Column
    """Tokens of the fullest rank's experts, for each that they would get if all got as many."""
    has_expert_bias: Column
    """Whether experts have biases, as GPT-OSS's do, whose activation no kernel fuses."""
    moe_layers: Column
    mtp_layers: Column
    window: Column
    windowed_layers: Column
    tp: Column
    pp: Column
    cp: Column
    dp: Column
    ep: Column
    etp: Column
    chunks: Column
    is_dp_inner: Column
    """Whether replicas are said to lie nearer than stages; neither of the two: nobody says."""
    is_pp_inner: Column
    slowest_layers: Column
    """Layers of the fullest rank that is not the last."""
    last_layers: Column
    """Layers of the last rank of the pipeline."""
    is_balanced: Column
    """Whether embedding and output count as layers where stages were cut."""
    sequence: Column
    document: Column
    """Tokens that attention spans: less than a sequence where it is packed of documents."""
    micro_batch: Column
    microbatches: Column
    shard_ranks: Column
    """Ranks that share the optimizer's states."""
    reduced_bytes: Column
    """Bytes of a weight's gradient as replicas add it up."""
    gathered_bytes: Column
    """Bytes of a weight as ranks gather it: 1 where it is computed with in fp8."""
    is_fsdp: Column
    is_kept_after_forward: Column
    recipe: NDArray[np.intp]
    """Which of ``RECIPES``."""
    is_sequence_parallel: Column
    is_flash: Column
    is_lora: Column
    offloads_optimizer: Column
    offloads_activations: Column
    """Share of a rank's layers whose activations go to the host."""
    offloads_parameters: Column
    full_recompute: Column
    """Share of a rank's layers that are recomputed whole."""
    recomputed: Mapping[str, Column]
    """Whether a part of each layer is recomputed, by the names of ``PARTS``."""
    is_tp_overlapped: Column
    is_ep_overlapped: Column
    permuted: Column
    """How often routing reads or writes a token's numbers, there and back, forward and backward."""
    cuda_graph: Column
    """Share of the launches that CUDA graphs spare the host."""
    stack: NDArray[np.intp]
    """Which of ``STACKS``."""

    @classmethod
    def of(cls, requests: Iterable[PlanRequest]) -> Jobs:
        """Returns the columns of so many requests."""
        asked = list(requests)
        clusters: dict[tuple[object, ...], tuple[int, Cluster]] = {}
        which = []
        for each in asked:
            key = _identity(each.cluster)
            clusters.setdefault(key, (len(clusters), each.cluster))
            which.append(clusters[key][0])
        rows = [_row(each) for each in asked]
        table: dict[str, Any] = {
            name: np.array([row[name] for row in rows], np.float64) for name in rows[0]
        }
        parts = {name: table.pop(name) for name in PARTS}
        table["recipe"] = table["recipe"].astype(np.intp)
        table["stack"] = table["stack"].astype(np.intp)
        distinct = tuple(cluster for _, cluster in clusters.values())
        return cls(distinct, np.array(which, np.intp), recomputed=parts, **table)

    def varied(self, **columns: Column) -> Jobs:
        """Returns the same jobs with other columns, as a search makes its layouts."""
        return replace(self, **columns)  # type: ignore[arg-type]

    @property
    def world_size(self) -> Column:
        """GPUs of each job."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def tokens(self) -> Column:
        """Tokens of a microbatch on a rank of cp."""
        return self.micro_batch * self.sequence / self.cp

    @property
    def is_moe(self) -> NDArray[np.bool_]:
        """Whether the model has experts."""
        return np.asarray(self.experts > 0)

    @property
    def moe_share(self) -> Column:
        """Share of the slowest rank's layers that have experts.

        A model's few dense layers come first: in a pipeline of three ranks or more, those in the
        middle have none. Where dense layers are many they are taken to be everywhere.
        """
        dense = self.layers - self.moe_layers
        counted = np.maximum(self.layers + self.mtp_layers, 1.0)
        mean = (self.moe_layers + self.mtp_layers) / counted
        first = 1.0 - dense / np.maximum(self.slowest_layers, 1.0)
        staged = np.where(self.pp > 2, 1.0, first)
        is_few = 2.0 * dense <= self.slowest_layers
        share = np.where((self.pp > 1) & is_few, staged, mean)
        return np.asarray(np.where(self.is_moe, share, 0.0))

    @property
    def format(self) -> NDArray[np.intp]:
        """Which of ``FORMATS`` linear layers are multiplied in."""
        return np.array([0, 1, 1, 1, 2])[self.recipe]


PARTS = ("linear", "core", "up", "feed_forward", "routed", "norms", "expert_act")


def _identity(cluster: Cluster) -> tuple[object, ...]:
    """Returns what tells clusters apart here; a GPU's peaks cannot be hashed."""
    gpu = cluster.gpu
    peaks = tuple(sorted(gpu.peak_flops.items()))
    wired = (cluster.nvlink_domain, cluster.nic_bytes_per_s, cluster.gpus_per_node)
    host = (gpu.host_bytes_per_s, gpu.host_memory_bytes_per_s)
    return gpu.name, gpu.maker, peaks, gpu.memory_bytes_per_s, gpu.link_bytes_per_s, wired, host


def _row(asked: PlanRequest) -> dict[str, float]:
    """Returns every number of one request, by the name of its column."""
    degrees = asked.degrees
    slowest, last, is_balanced = _loads(asked)
    kept = recipe(asked.states)
    return {
        **_of_model(asked.model),
        "imbalance": float(asked.options.get("moe_imbalance", 1)),
        "tp": degrees.tp,
        "pp": degrees.pp,
        "cp": degrees.cp,
        "dp": degrees.dp,
        "ep": degrees.ep,
        "etp": degrees.etp,
        "chunks": degrees.chunks,
        "is_dp_inner": asked.inner == "dp",
        "is_pp_inner": asked.inner == "pp",
        "slowest_layers": slowest,
        "last_layers": last,
        "is_balanced": is_balanced,
        "sequence": asked.sequence,
        "document": min(asked.sequence, float(asked.options.get("document_tokens", "inf"))),
        "micro_batch": asked.micro_batch,
        "microbatches": asked.num_microbatches,
        "shard_ranks": _shard_ranks(asked),
        "reduced_bytes": kept.reduced_bytes,
        "gathered_bytes": 1 if asked.compute.startswith(("fp8", "mxfp8")) else kept.computed_bytes,
        "is_fsdp": asked.zero >= 3,
        "is_kept_after_forward": asked.is_kept_after_forward,
        "is_lora": asked.lora is not None,
        "offloads_optimizer": asked.offload == "optimizer",
        "offloads_activations": _activations_away(asked),
        "offloads_parameters": asked.offload == "parameters",
        "is_sequence_parallel": asked.has_sequence_parallel and degrees.tp > 1,
        "is_flash": asked.has_flash_attention,
        **_recompute(asked),
        **_options(asked),
    }


def _of_model(model: ModelShape) -> dict[str, float]:
    """Returns the columns that the model alone tells."""
    latent, experts = model.latent, model.experts
    return {
        "layers": model.layers,
        "hidden": model.hidden,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "qk_dim": latent.qk_dim if latent else model.head_dim,
        "v_dim": latent.v_dim if latent else model.head_dim,
        "ffn": model.ffn,
        "matrices": 3 if model.is_gated else 2,
        "vocab": model.vocab,
        "is_tied": model.is_tied,
        "q_rank": latent.q_rank if latent else 0,
        "kv_rank": latent.kv_rank if latent else 0,
        "nope_dim": latent.nope_dim if latent else 0,
        "rope_dim": latent.rope_dim if latent else 0,
        "experts": experts.count if experts else 0,
        "top_k": experts.top_k if experts else 0,
        "expert_ffn": experts.ffn if experts else 0,
        "shared_ffn": experts.shared_ffn if experts else 0,
        "has_expert_bias": bool(experts and model.has_bias),
        "moe_layers": model.num_moe_layers,
        "mtp_layers": model.mtp_layers,
        "window": model.window or 0,
        "windowed_layers": model.windowed_layers,
    }


def _activations_away(asked: PlanRequest) -> float:
    """Returns the share of layers whose activations go to the host."""
    if asked.offload != "activations":
        return 0.0
    stages = asked.degrees.num_stages
    return min(1.0, asked.offloaded_layers * stages / asked.model.layers)


def _shard_ranks(asked: PlanRequest) -> int:
    return asked.shard_ranks or (asked.degrees.shard_ranks if asked.zero else 1)


def _loads(asked: PlanRequest) -> tuple[float, float, bool]:
    """Returns layers of the fullest rank but the last, those of the last, and if ends count.

    Without a list of stages Megatron's ways are taken: even stages, or where only that divides,
    embedding and output counted as a layer each.
    """
    pp, stages, layers = asked.degrees.pp, asked.degrees.num_stages, asked.model.layers
    if "balanced" in asked.options.get("layout", ""):
        return layers / pp, layers / pp, True
    listed = asked.stage_layers
    if asked.stage_picture is not None:
        listed = tuple(stage.num_layers for stage in asked.stages)
    if listed is not None:
        by_rank = [sum(listed[rank::pp]) for rank in range(pp)]
        return float(max(by_rank[:-1] or by_rank)), float(by_rank[-1]), False
    if layers % stages and not (layers + 2) % stages:
        whole = (layers + 2) / pp
        return whole - (pp == 1), whole - 1 - (pp == 1), False
    whole = -(-layers // pp)
    return float(whole), float(layers - whole * (pp - 1)) if pp > 1 else float(whole), False


def _recompute(asked: PlanRequest) -> dict[str, float]:
    """Returns the share of layers recomputed whole, and which parts of the others are."""
    told = asked.recompute
    modules = set(told.modules) if told.kind == "selective" else set()
    if told.kind == "selective" and not modules:
        modules = {"core_attn"}
    return {
        "full_recompute": asked.recomputed_share,
        "linear": 0.5 if "op" in modules else 0.0,
        "core": float("core_attn" in modules),
        "up": float("mla_up_proj" in modules),
        "feed_forward": float("mlp" in modules),
        "routed": float("moe" in modules),
        "norms": float("layernorm" in modules),
        "expert_act": float("moe_act" in modules),
    }


def _options(asked: PlanRequest) -> dict[str, float]:
    """Returns what the options say, or what is assumed where they say nothing.

    Assumed: tp communication runs beside GEMMs where Megatron has sequence parallel; no CUDA
    graph; experts' exchange is not overlapped.
    """
    told = asked.options
    framework = told.get("framework", asked.framework)
    stack = _STACK_OF.get(framework, framework)
    stack = stack if stack in STACKS else "megatron"
    graph = told.get("cudagraph", "none")
    whole = asked.is_on("full_cuda_graph") or graph == "full_iteration"
    narrow = _RECIPE_OF.get(asked.compute, asked.compute)
    return {
        "recipe": RECIPES.index(narrow),
        "stack": STACKS.index(stack),
        "is_tp_overlapped": asked.hides_tensor,
        "is_ep_overlapped": asked.hides_exchange,
        "permuted": PERMUTED.get(told.get("disp", ""), 16.0),
        "cuda_graph": 0.9 if whole else 0.5 if graph == "transformer_engine" else 0.0,
    }
