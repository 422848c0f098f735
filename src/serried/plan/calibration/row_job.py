"""The job that one row of a table of measured steps is of, made a PlanRequest.

A cell may be empty, which is not stated, and then

    ep          the largest that divides experts and ranks of a stage, where that given does not
    vpp         pretraining in a pipeline is interleaved as deeply as its layers divide, up to 12
    recompute   none
    sp          with tp, but in Megatron-DeepSpeed
    etp         tp in NeMo, 1 elsewhere
    framework   Megatron, unless the row or the file's source names another
    documents   fine-tuning packs short ones into a sequence, 512 tokens each; MLPerf's long ones

``row_job`` returns the job with which of these the row needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from serried.errors import InputError
from serried.plan import catalog
from serried.plan.calibration.specs import Row, gpu_named, model_of, number, whole
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import layers_accounted
from serried.plan.request import COMPUTE_FORMATS, LowRank, Offloaded, PlanRequest, Recompute

DOCUMENT = "512"
"""Tokens of a document where fine-tuning packs a question-answering set (SQuAD)."""
_FRAMEWORKS = {
    "megatron-deepspeed": "megatron-deepspeed",
    "llm-foundry": "llm-foundry",
    "torchtitan": "torchtitan",
    "internevo": "internevo",
}
_COMPUTE = {"fp16/bf16": "bf16", "bf16 fp32-grad-accum": "bf16", "nvfp4?": "nvfp4", "": "bf16"}
_NEAREST = (("mxfp8", "mxfp8"), ("fp8", "fp8-cs"), ("fp4", "nvfp4"), ("bf16", "bf16"))
"""What a precision that is not known by its name is taken as, by a word in it."""


def row_job(
    row: Row,
    source: str,
    models: Mapping[str, Row],
    gpus: Mapping[str, tuple[Gpu, Row]],
    *,
    is_packed: bool = False,
) -> tuple[PlanRequest, tuple[str, ...]]:
    """Returns the job of a row and what had to be assumed of it.

    ``is_packed`` says that its sequences are packed of short documents. Raises InputError where it
    is no job that could run.
    """
    extra, assumed = extras(row.get("extra", "")), list[str]()
    framework = _framework(row, extra, source)
    model = _model(row, extra, models)
    if "w/o MTP" in row.get("note", ""):
        model = replace(model, mtp_layers=0)
    cluster = _cluster(row, extra, source, gpus)
    degrees = _degrees(row, model, extra, assumed)
    if is_packed:
        extra["document_tokens"] = DOCUMENT
    narrow = _narrow_weights(row, framework)
    if narrow:
        extra |= narrow
        assumed += [f"{name}={told}" for name, told in narrow.items()]
    if extra.get("fp8_act") == "1":
        extra["activation_func_fp8_input_store"] = "true"
    layers = re.search(r"layers:(\d+)", row.get("offload", ""))
    if layers:
        extra["cpu_offloading_num_layers"] = layers[1]
    assumed += _assumed(row, framework, degrees, is_packed=is_packed)
    return _request(row, model, cluster, degrees, framework, extra), tuple(assumed)


def _assumed(row: Row, framework: str, degrees: Degrees, *, is_packed: bool) -> list[str]:
    """Returns what a row does not say of its training, and what is taken for it."""
    assumed = []
    if not row.get("recompute"):
        assumed.append("recompute=none")
    if not row.get("sp") and degrees.tp > 1:
        assumed.append("sp=" + ("0" if framework == "megatron-deepspeed" else "1"))
    if is_packed:
        assumed.append("document_tokens=" + DOCUMENT)
    precision = row.get("precision", "")
    if (compute := _compute(precision)) not in (precision, precision.rstrip("?")):
        assumed.append(f"precision={compute}")
    return assumed


def _request(
    row: Row,
    model: ModelShape,
    cluster: Cluster,
    degrees: Degrees,
    framework: str,
    extra: Mapping[str, str],
) -> PlanRequest:
    """Returns the job of a row, its batch rounded to what its replicas can share."""
    sharding, precision = row.get("sharding", ""), row.get("precision", "")
    is_fsdp = sharding.startswith(("fsdp", "hsdp", "zero3"))
    sp = row.get("sp", "")
    micro = whole(row, "mbs", 1)
    replicas = micro * degrees.dp
    batch = max(replicas, round(whole(row, "gbs", 1) / replicas) * replicas)
    return PlanRequest(
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
        compute=_compute(precision),
        recompute=_recompute(row.get("recompute", "")),
        offload=_offload(row.get("offload", "")),
        has_sequence_parallel=sp == "1" or (not sp and framework != "megatron-deepspeed"),
        has_flash_attention=framework != "megatron-deepspeed",
        lora=LowRank(16) if row.get("task") == "lora" else None,
        options=extra,
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


def _narrow_weights(row: Row, framework: str) -> dict[str, str]:
    """Returns what Megatron's recipes of 8 bits do with weights, where a table does not say.

    NeMo's and Megatron-Bridge's gather and keep them in 8 bits (Megatron-Bridge,
    training/mixed_precision.py), adapters' frozen base in what is computed in.
    """
    precision = row.get("precision", "")
    if framework not in ("megatron", "nemo") or not precision.startswith(("fp8", "mxfp8", "nvfp4")):
        return {}
    if row.get("task") == "lora":
        return {"frozen_format": _compute(precision), "fp8_param_gather": "true"}
    return {} if precision.startswith("nvfp4") else {"fp8_param_gather": "true"}


def _compute(precision: str) -> str:
    """Returns the format of a precision: its own, or the nearest, as blocks of fp8 are as fp8-cs.

    >>> _compute("mxfp8"), _compute("fp8-sc"), _compute("mxfp4")
    ('mxfp8', 'fp8-cs', 'nvfp4')
    """
    told = _COMPUTE.get(precision, precision)
    if told in COMPUTE_FORMATS:
        return told
    return next((known for word, known in _NEAREST if word in told), told)


def _offload(text: str) -> Offloaded:
    """Returns what a cell such as none, optimizer or layers:40 keeps in the host's memory."""
    if "optimizer" in text:
        return "optimizer"
    return "activations" if text.startswith(("layers:", "activations")) else "none"


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
