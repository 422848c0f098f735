"""Measured memory beside planned memory, from any of these tables of a folder.

    simumax_b200_real_vs_model.csv                  allocated at most, of the fullest rank
    megatron_functional_golden_memory_time.csv      allocated at most and between steps, last stage
    perf_*.csv, rows with mem_GiB                   in use on the device, or reserved, of the same

Rows of tests that do not say all that their memory follows from are left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy.published import DATA
from benchmarks.accuracy.table import HEAD, Errors, line
from serried.errors import InputError
from serried.mesh.layers import unfolded
from serried.plan.calibration.rows import MODELS, read_folder
from serried.plan.calibration.specs import model_of
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.memory.job_memory import JobMemory, job_memory
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.model.stages import layers_accounted
from serried.plan.request import PlanRequest, Recompute

Cells = Mapping[str, str]
GIB = 1 << 30
B200 = Gpu("b200", "nvidia", {"bf16": 2250e12, "fp8": 4500e12}, 180e9, 8e12, 900e9)
H100 = Gpu("h100", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
A100 = Gpu("a100", "nvidia", {"bf16": 312e12}, 80e9, 2.039e12, 300e9)


@dataclass(frozen=True)
class MeasuredMemory:
    """Holds one figure that was measured, and the job that it was measured of."""

    table: str
    row: str
    what: str
    """Which figure of the plan it is: allocated, steady or in use."""
    group: str
    request: PlanRequest
    num_bytes: float | None
    """None where the job did not fit."""

    def planned(self) -> float:
        """Returns the figure that the plan has for it."""
        return FIGURES[self.what](job_memory(self.request))


FIGURES: Mapping[str, Callable[[JobMemory], float]] = {
    "allocated": lambda job: max(each.allocated for each in job.of_ranks),
    "allocated, last stage": lambda job: job.of_ranks[-1].allocated,
    "steady, last stage": lambda job: job.of_ranks[-1].steady,
    "in use": lambda job: job.fullest.total,
    "reserved": lambda job: max(each.reserved for each in job.of_ranks),
}


def cells_of(path: Path) -> Iterator[Cells]:
    lines = path.read_text(encoding="utf-8").splitlines()
    yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def number(cells: Cells, name: str, otherwise: int = 0) -> int:
    told = cells.get(name) or ""
    return int(float(told)) if told else otherwise


# ----------------------------------------------------------------------- SimuMax, 8 x B200

_LATENT = LatentAttention(kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128, q_rank=1536)
SIMUMAX_MODELS = {
    each.name: each
    for each in (
        ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256),
        ModelShape("llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256),
        # SimuMax's 405B has 16 heads of keys and values: configs/models/llama3-405b_padding_128.
        ModelShape("llama3-405b", 128, 16384, 128, 16, 128, 53248, 128256),
        ModelShape("qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936),
        ModelShape("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000,
                   experts=ExpertShape(8, 2, 14336)),
        ModelShape("deepseekv2", 60, 5120, 128, 128, 128, 12288, 102400, latent=_LATENT,
                   experts=ExpertShape(160, 6, 1536, 3072, 1)),
        # Its DeepSeek-V3 rows have one dense layer: docs/b200, the notes on the release's rows.
        ModelShape("deepseekv3", 61, 7168, 128, 128, 128, 18432, 129280, latent=_LATENT,
                   experts=ExpertShape(256, 8, 2048, 2048, 1)),
    )
}  # fmt: skip
"""Source: MooreThreads/SimuMax 4dcaae5, configs/models."""


def simumax(path: Path) -> Iterator[MeasuredMemory]:
    known = dict(SIMUMAX_MODELS)
    if (path.parent / MODELS).is_file():  # models that stand beside the table, as in other tables
        rows = [row for row in cells_of(path.parent / MODELS) if row["layers"]]
        known |= {row["model"]: model_of(row) for row in rows if row["model"] not in known}
    for cells in cells_of(path):
        if cells["model"] not in known:
            continue
        axes = {axis: int(size) for axis, size in re.findall(r"([a-z]+)(\d+)", cells["parallel"])}
        degrees = _eight(axes, number(cells, "cp", 1))
        model = replace(known[cells["model"]], layers=number(cells, "layers"))
        request = PlanRequest(
            model,
            Cluster("8xb200", B200, 8, 8, 50e9),
            degrees,
            sequence=number(cells, "seq"),
            global_batch=degrees.dp * number(cells, "mbc"),
            schedule="interleaved-1f1b" if degrees.chunks > 1 else "1f1b",
            options={"cross_entropy_fusion_impl": "te", "cp_comm_type": "a2a"},
        )
        real = float(cells["real_max_rank_GiB"]) * GIB
        yield MeasuredMemory("simumax_b200", cells["case"], "allocated", "", request, real)


def _eight(axes: Mapping[str, int], cp: int) -> Degrees:
    tp, pp = axes.get("tp", 1), axes.get("pp", 1)
    told = {"ep": axes.get("ep", 1), "etp": axes.get("etp", 1), "chunks": axes.get("vp", 1)}
    return Degrees(tp=tp, pp=pp, cp=cp, dp=8 // (tp * pp * cp), **told)


# ----------------------------------------------------------------------- Megatron-LM's own tests


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


# ----------------------------------------------------------------------- perf_*.csv


def of_jobs(folder: Path) -> Iterator[MeasuredMemory]:
    """Yields rows of measured steps that say what memory they took, or that they found too little.

    What a row's source means by memory stands in its options: all that a device has in use, or
    what torch's allocator reserved.
    """
    if not (folder / MODELS).is_file():
        return
    for row in read_folder(folder, ("1", "mem", "oom")).rows:
        if row.memory_gib is None and row.score != "oom":
            continue
        what = "reserved" if "reserved" in row.request.options.get("mem", "") else "in use"
        real = row.memory_gib * GIB if row.memory_gib else None
        request = _balanced(row.request)
        try:
            job_memory(request)
        except InputError:
            continue
        yield MeasuredMemory(row.table, row.name, what, request.framework, request, real)


def _balanced(request: PlanRequest) -> PlanRequest:
    """Returns a job whose ends count as layers, where its row says that these are balanced."""
    if "balanced" not in request.options.get("layout", ""):
        return request
    degrees = request.degrees
    counts = layers_accounted(request.model, degrees.pp, degrees.chunks)
    return replace(request, stage_layers=tuple(counts))


# ----------------------------------------------------------------------- the table


READERS: Mapping[str, Callable[[Path], Iterator[MeasuredMemory]]] = {
    "simumax_b200_real_vs_model.csv": simumax,
    "megatron_functional_golden_memory_time.csv": megatron,
}


def measured_memory(folder: Path) -> list[MeasuredMemory]:
    """Returns every figure that a folder's tables have and that can be planned."""
    found = list(of_jobs(folder))
    for name, read in READERS.items():
        if (folder / name).is_file():
            found += read(folder / name)
    return found


def errors(rows: Iterable[MeasuredMemory]) -> Errors:
    """Returns how far plans are off."""
    pairs = [(row.planned(), row.num_bytes) for row in rows if row.num_bytes]
    planned, real = zip(*pairs, strict=True)
    return Errors.of(np.array(planned), np.array(real))


def wrongly_fitting(rows: Iterable[MeasuredMemory]) -> int:
    """Returns how many jobs that ran out of memory are said to fit."""
    return sum(job_memory(row.request).fits for row in rows if row.num_bytes is None)


def covered(rows: Iterable[MeasuredMemory]) -> float:
    """Returns the part of what was measured that lies in the interval planned for it."""
    inside = []
    for row in rows:
        if row.num_bytes is None or "steady" in row.what:
            continue
        job = job_memory(row.request)
        least, most = (job.of_ranks[-1] if "last" in row.what else job.fullest).interval
        off = (most - least) / 2
        inside.append(abs(row.planned() - row.num_bytes) <= off)
    return float(np.mean(inside))


def print_memory(folder: Path) -> None:
    """Prints the errors of planned memory by table and kind of row."""
    rows = measured_memory(folder)
    if not rows:
        return
    print("\nmemory of the fullest rank, or of the last stage where that alone was logged")
    print(HEAD)
    groups: dict[tuple[str, str], list[MeasuredMemory]] = {}
    for row in rows:
        for group in {"", row.group}:
            groups.setdefault((row.table, group), []).append(row)
    for (table, group), each in sorted(groups.items()):
        if any(row.num_bytes for row in each):
            print(line(f"  {group}" if group else table, errors(each)))
    peaks = [row for row in rows if row.num_bytes and "steady" not in row.what]
    print(f"measured peak inside the 90 % interval: {100 * covered(peaks):.0f} % of rows")
    missed = [row for row in rows if row.num_bytes is None]
    if missed:
        print(f"of {len(missed)} that ran out of memory, {wrongly_fitting(missed)} are said to fit")


def document_memory(folder: Path) -> list[dict[str, object]]:
    """Returns every row's prediction with its interval."""
    found: list[dict[str, object]] = []
    for row in measured_memory(folder):
        job = job_memory(row.request)
        place = job.of_ranks[-1] if "last" in row.what else job.fullest
        found.append(
            {
                "row": row.row,
                "table": row.table,
                "what": row.what,
                "measured_bytes": row.num_bytes,
                "predicted_bytes": FIGURES[row.what](job),
                "interval_bytes": list(place.interval),
                "fits": job.fits,
            }
        )
    return found
