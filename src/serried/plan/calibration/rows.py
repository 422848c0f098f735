"""Measured steps as CSV: each row a job and how long its step took, made a PlanRequest.

One schema for all tables: row, score, ref, release, task, model, layers, gpu, gpus, tp, pp, vpp,
cp, ep, etp, dp, sharding, fsdp_group, sp, precision, recompute, offload, seq, mbs, gbs, step_s,
mem_GiB, extra (k=v;…), note. The first line names the source. Empty is not stated, and then

    ep          the largest that divides experts and ranks of a stage, where that given does not
    vpp         pretraining in a pipeline is interleaved as deeply as its layers divide, up to 12
    recompute   none
    sp          with tp, but in Megatron-DeepSpeed
    etp         tp in NeMo, 1 elsewhere
    framework   Megatron, unless the row or the file's source names another
    documents   fine-tuning packs short ones into a sequence, 512 tokens each; MLPerf's long ones

``Measured.assumed`` says which of these a row needed.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from serried import user_file
from serried.errors import InputError
from serried.finding import said
from serried.limits import PLAN_ROWS_BYTES
from serried.plan import catalog
from serried.plan.calibration.specs import Row, gpu_named, gpus_of, model_of, number, whole
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import layers_accounted
from serried.plan.request import LowRank, PlanRequest, Recompute

WHAT = said("a table of measured steps")
MODELS, GPUS = "perf_models.csv", "gpu_specs.csv"
DOCUMENT = "512"
"""Tokens of a document where fine-tuning packs a question-answering set (SQuAD)."""
_FRAMEWORKS = {
    "megatron-deepspeed": "megatron-deepspeed",
    "llm-foundry": "llm-foundry",
    "torchtitan": "torchtitan",
    "internevo": "internevo",
}
_COMPUTE = {"fp16/bf16": "bf16", "bf16 fp32-grad-accum": "bf16", "nvfp4?": "nvfp4", "": "bf16"}


@dataclass(frozen=True)
class Measured:
    """Holds one row: the job, its step, and what had to be assumed."""

    name: str
    table: str
    configuration: str
    """The part of the name that rows of one configuration share."""
    score: str
    task: str
    model: str
    gpu: str
    precision: str
    request: PlanRequest
    step_s: float | None
    memory_gib: float | None
    assumed: tuple[str, ...]
    day: str
    """Release, or day of measurement: rows of one can be ranked among themselves."""


@dataclass(frozen=True)
class Folder:
    """Holds the tables of a folder, and the rows that cannot be planned with why."""

    rows: tuple[Measured, ...]
    left_out: tuple[tuple[str, str], ...]


def read_folder(folder: Path, scores: Sequence[str] = ("1",)) -> Folder:
    """Returns the rows of every ``perf_*.csv`` in a folder that have one of the scores.

    Raises InputError where the folder has no such table, no models or no specifications.
    """
    for name in (MODELS, GPUS):
        if not (folder / name).is_file():
            raise InputError(
                "{folder} has no {name}; tables stand beside their models and specifications",
                folder=str(folder),
                name=name,
            )
    models = {row["model"]: row for row in read_csv(folder / MODELS)[1]}
    gpus = gpus_of(read_csv(folder / GPUS)[1])
    rows: list[Measured] = []
    left_out: list[tuple[str, str]] = []
    tables = [path for path in sorted(folder.glob("perf_*.csv")) if path.name != MODELS]
    for path in tables:
        source, cells = read_csv(path)
        if cells and "score" not in cells[0]:
            continue
        for row in cells:
            if row["score"] not in scores:
                continue
            try:
                rows.append(measured(row, path.stem.removeprefix("perf_"), source, models, gpus))
            except InputError as error:
                left_out.append((row["row"], str(error)))
    if not rows:
        raise InputError("{folder} has no perf_*.csv with rows to plan", folder=str(folder))
    return Folder(tuple(rows), tuple(left_out))


def read_table(path: Path) -> Folder:
    """Returns the measured steps of one table, its models and GPUs those of the catalog.

    Models and specifications beside it, where there are any, come first. Rows that cannot be
    planned are left out by name. Raises InputError for a table without rows that can.
    """
    beside = {name: path.parent / name for name in (MODELS, GPUS)}
    models, specs = (
        ([], [])
        if not all(each.is_file() for each in beside.values())
        else (
            read_csv(beside[MODELS])[1],
            read_csv(beside[GPUS])[1],
        )
    )
    known = {row["model"]: row for row in models}
    source, cells = read_csv(path)
    rows: list[Measured] = []
    left_out: list[tuple[str, str]] = []
    for line, row in enumerate(cells, start=2):
        told = {"row": f"line {line}", "score": "1", **{key: row[key] or "" for key in row}}
        try:
            rows.append(measured(told, path.stem, source, known, gpus_of(specs)))
        except (InputError, KeyError) as error:
            left_out.append((told["row"], str(error)))
    if not rows:
        why = left_out[0][1] if left_out else "it is empty"
        raise InputError(
            "{path} has no measured step that can be planned: {why}", path=str(path), why=why
        )
    return Folder(tuple(rows), tuple(left_out))


def read_csv(path: Path) -> tuple[str, list[dict[str, str]]]:
    """Returns the source line of a table, "" without one, and its rows."""
    text = user_file.read_text(path, PLAN_ROWS_BYTES.most, WHAT)
    lines = text.splitlines()
    source = lines.pop(0)[1:].strip() if lines and lines[0].startswith("#") else ""
    return source, list(csv.DictReader(lines))


def measured(
    row: Row,
    table: str,
    source: str,
    models: Mapping[str, Row],
    gpus: Mapping[str, tuple[Gpu, Row]],
) -> Measured:
    """Returns what one row says; raises InputError where it is no job that could run."""
    extra, assumed = extras(row.get("extra", "")), list[str]()
    model = _model(row, extra, models)
    if "w/o MTP" in row.get("note", ""):
        model = replace(model, mtp_layers=0)
    framework = _framework(row, extra, source)
    cluster = _cluster(row, extra, source, gpus)
    degrees = _degrees(row, model, extra, assumed)
    if not row.get("recompute"):
        assumed.append("recompute=none")
    sharding = row.get("sharding", "")
    is_fsdp = sharding.startswith(("fsdp", "zero3"))
    sp = row.get("sp", "")
    if not sp and degrees.tp > 1:
        assumed.append("sp=" + ("0" if framework == "megatron-deepspeed" else "1"))
    micro = whole(row, "mbs", 1)
    replicas = micro * degrees.dp
    batch = max(replicas, round(whole(row, "gbs", 1) / replicas) * replicas)
    if row.get("task") in ("sft", "lora") and "mlperf" not in table:
        extra["document_tokens"] = DOCUMENT
        assumed.append("document_tokens=" + DOCUMENT)
    precision = row.get("precision", "")
    if not precision:
        assumed.append("precision=bf16")
    request = PlanRequest(
        model,
        cluster,
        degrees,
        framework=framework,
        sequence=whole(row, "seq", 4096),
        micro_batch=micro,
        global_batch=batch,
        schedule="interleaved-1f1b" if degrees.chunks > 1 else "1f1b",
        stage_layers=_stage_layers(extra.get("layout", ""), degrees, model),
        zero=3 if is_fsdp else 0 if sharding == "zero0" else 1,
        shard_ranks=_shard_ranks(row, sharding, is_fsdp),
        is_kept_after_forward=sharding == "fsdp-zero2",
        states=_states(precision, framework),
        compute=_COMPUTE.get(precision, precision),
        recompute=_recompute(row.get("recompute", "")),
        offload="optimizer" if "optimizer" in row.get("offload", "") else "none",
        has_sequence_parallel=sp == "1" or (not sp and framework != "megatron-deepspeed"),
        has_flash_attention=framework != "megatron-deepspeed",
        lora=LowRank(16) if row.get("task") == "lora" else None,
        options=extra,
    )
    step = number(row, "step_s")
    memory = number(row, "mem_GiB")
    return Measured(
        row["row"],
        table,
        row["row"].split(".")[0],
        row.get("score", "1"),
        row.get("task", ""),
        row["model"],
        row["gpu"],
        precision,
        request,
        step or None,
        memory or None,
        tuple(assumed),
        row.get("release", ""),
    )


def extras(text: str) -> dict[str, str]:
    """Returns the options of a cell such as ``hidden=14336;layout=balanced``; a word alone is on.

    >>> extras("hidden=14336;deepspeed;layout=Et*4|tmL")
    {'hidden': '14336', 'deepspeed': 'true', 'layout': 'Et*4|tmL'}
    """
    parts = [part.partition("=") for part in (text or "").split(";") if part]
    return {name: value if sign else "true" for name, sign, value in parts}


def _model(row: Row, extra: Mapping[str, str], models: Mapping[str, Row]) -> ModelShape:
    layers = row.get("layers", "")
    if "hidden" in extra and "heads" in extra:
        hidden, heads = whole(extra, "hidden"), whole(extra, "heads")
        return ModelShape(
            row["model"],
            whole(row, "layers", 1),
            hidden,
            heads,
            heads,
            hidden // heads,
            whole(extra, "ffn", 4 * hidden),
            whole(extra, "vocab", 50257),
            is_gated=extra.get("gated") == "1",
            is_tied=extra.get("tied") == "1",
            norm="layer",
            has_bias=True,
        )
    if row["model"] in models:
        cells = models[row["model"]]
        if not cells.get("layers"):
            raise InputError("model '{model}' has no standard architecture", model=row["model"])
        shape = model_of(cells)
    else:
        shape = catalog.model_named(row["model"])
    if not layers:
        return shape
    experts = shape.experts
    if experts:
        experts = replace(experts, dense_layers=min(experts.dense_layers, whole(row, "layers")))
    return replace(shape, layers=whole(row, "layers"), experts=experts)


def _framework(row: Row, extra: Mapping[str, str], source: str) -> str:
    """Returns the framework a row names, its reference does, or its file's source alone does."""
    if extra.get("framework"):
        return extra["framework"]
    if "deepspeed" in extra:
        return "deepspeed"
    for text in (row.get("ref", ""), source):
        found = {name for word, name in _FRAMEWORKS.items() if word in text.lower()}
        if len(found) == 1 and not (text is source and "see ref" in source):
            return found.pop()
    return "megatron"


def _cluster(
    row: Row, extra: Mapping[str, str], source: str, gpus: Mapping[str, tuple[Gpu, Row]]
) -> Cluster:
    gpu, spec = gpu_named(row["gpu"], gpus)
    named = row["gpu"] if row["gpu"] != "A100-40" else "A100-40"
    domain = whole(spec, "scaleup_domain", 4 if named in ("L40S", "H200-NVL") else 8)
    node = whole(extra, "per_node", 4 if domain >= 72 else 8)
    nic = number(spec, "nic_per_gpu_Gbps", 200.0 if named == "L40S" else 400.0)
    told = re.search(r"(\d+)\s*x\s*(\d+)\s*Gb", extra.get("net", "") or source)
    if told:
        nic = float(told[1]) * float(told[2]) / node
    return Cluster(row["gpu"], gpu, node, domain, nic * 1e9 / 8.0)


def _degrees(row: Row, model: ModelShape, extra: Mapping[str, str], assumed: list[str]) -> Degrees:
    tp, pp, cp, ep = (whole(row, name, 1) for name in ("tp", "pp", "cp", "ep"))
    gpus = whole(row, "gpus", tp * pp * cp)
    dp = max(1, gpus // (tp * pp * cp))
    chunks = whole(row, "vpp")
    if not chunks:
        chunks = _chunks(row, model.layers, pp)
        if pp > 1:
            assumed.append(f"vpp={chunks}")
    stage, told = tp * cp * dp, ep
    ep = math.gcd(ep, stage, model.experts.count if model.experts else 1)
    if ep != told:
        assumed.append(f"ep={ep}")
    etp = whole(row, "etp")
    if not etp:
        etp = tp if extra.get("framework") == "nemo" and ep > 1 else 1
        if ep > 1:
            assumed.append(f"etp={etp}")
    if stage % (ep * etp):
        etp = 1
    return Degrees(tp, pp, cp, dp, ep, etp if ep > 1 else 1, chunks)


def _chunks(row: Row, layers: int, pp: int) -> int:
    """Returns the chunks that a row without a number of them most likely had."""
    is_deepspeed = "hidden=" in row.get("extra", "")
    if pp <= 1 or row.get("task") != "pretrain" or is_deepspeed:
        return 1
    for whole_layers in (layers, layers + 2):
        if whole_layers % pp == 0:
            per_rank = whole_layers // pp
            return next(each for each in range(12, 0, -1) if per_rank % each == 0)
    return 1


def _stage_layers(picture: str, degrees: Degrees, model: ModelShape) -> tuple[int, ...] | None:
    """Returns layers by stage of a Megatron layout string; None where there is no such string.

    >>> from serried.plan.degrees import Degrees
    >>> _unfolded("Et*4|(t*4|)*2tmL")
    'Etttt|tttt|tttt|tmL'
    """
    if "balanced" in picture and (model.layers + 2) % degrees.num_stages == 0:
        return tuple(layers_accounted(model, degrees.pp, degrees.chunks))
    if "|" not in picture:
        return _uneven(degrees, model)
    counts = tuple(part.count("t") for part in _unfolded(picture).split("|"))
    fits = len(counts) == degrees.num_stages and sum(counts) == model.layers
    return counts if fits else _uneven(degrees, model)


def _uneven(degrees: Degrees, model: ModelShape) -> tuple[int, ...] | None:
    """Returns layers by stage where they do not divide, None where they do.

    Ends that count as a layer each are taken where that divides; else the last stage, which has the
    loss and MTP too, has what is left, or the first stages have one more.
    """
    stages = degrees.num_stages
    each, more = divmod(model.layers, stages)
    if not more:
        return None
    if (model.layers + 2) % stages == 0:
        return tuple(layers_accounted(model, degrees.pp, degrees.chunks))
    least = model.layers - (each + 1) * (stages - 1)
    if least >= 0:
        return (each + 1,) * (stages - 1) + (least,)
    return tuple(each + (stage < more) for stage in range(stages))


def _unfolded(picture: str) -> str:
    groups = re.sub(r"\(([^()]*)\)\*(\d+)", lambda found: found[1] * int(found[2]), picture)
    return re.sub(r"(\w)\*(\d+)", lambda found: found[1] * int(found[2]), groups)


def _shard_ranks(row: Row, sharding: str, is_fsdp: bool) -> int | None:
    if is_fsdp:
        return whole(row, "fsdp_group") or None
    told = re.search(r"group(\d+)", sharding)
    return int(told[1]) if told else None


def _states(precision: str, framework: str) -> str:
    """Returns the recipe of a row's states; Megatron's fast recipes add gradients up in bf16."""
    if "fp32-grad" in precision:
        return "fp32-grads"
    return "fp16-adam" if framework == "megatron-deepspeed" else "bf16-grads"


def _recompute(text: str) -> Recompute:
    """Returns what a cell such as full, none or modules:mla_up_proj+mlp says."""
    if text == "full":
        return Recompute("full")
    if text.startswith("modules:"):
        return Recompute("selective", modules=tuple(text.removeprefix("modules:").split("+")))
    if text.startswith("selective"):
        modules = ("op",) if "op" in text else ("core_attn",)
        return Recompute("selective", modules=modules)
    return Recompute()
