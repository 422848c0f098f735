"""The models, GPUs and clusters that are known by name, made of ``serried.catalog``'s figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from serried.catalog import figures
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.model.written import is_written, shape_of_text

GB, TERA = 1e9, 1e12


def model_named(name: str) -> ModelShape:
    """Returns a model by its name, another one that it goes by, or that on Hugging Face's hub.

    >>> model_named("Llama3.1-8B").layers, model_named("meta-llama/Llama-3.1-8B").layers
    (32, 32)

    Raises InputError with the nearest names where there is none.
    """
    models = _by_alias("models")
    key = _key(name)
    if key in models:
        return _model(models[key])
    # What is written as a path says where a file should be, not what the model is called.
    found = None if key.startswith(("/", ".", "~")) else model_by_loose_name(key)
    if found is None:
        raise unknown(said("model"), name, models)
    return found


def model_by_loose_name(name: str) -> ModelShape | None:
    """Returns the model that a path or a name on Hugging Face's hub says, None where none is meant.

    >>> model_by_loose_name("/models/Meta-Llama-3-8B-Instruct").name
    'llama3-8b'
    >>> model_by_loose_name("Qwen/Qwen2.5-7B").name, model_by_loose_name("/models/mine")
    ('qwen2.5-7b', None)
    """
    last = name.rstrip("/").split("/")[-1].lower()
    loose = {_loose(alias): first for alias, first in _by_alias("models").items()}
    first = loose.get(_loose(last))
    return _model(first) if first else None


TRAITS = (
    *("norm", "norms_per_layer", "has_norm_bias", "qk_norm", "has_bias", "has_qkv_bias"),
    *("has_o_bias", "has_sinks", "learned_positions", "has_embedding_norm"),
)
"""What a table of sizes leaves out of a model, and the catalogue's has."""


def with_traits(shape: ModelShape) -> ModelShape:
    """Returns a shape with the norms and biases of the catalogued model that it is.

    That is the one of its name; else of its widths, however many layers and experts it has, for
    those of one family are built alike. Of several, those of its vocabulary count, and only what
    they agree on. A shape that the catalogue does not have stays as it is.

    >>> gpt_oss = model_named("gpt-oss-120b")
    >>> bare = replace(gpt_oss, name="mine", has_bias=False, has_sinks=False)
    >>> with_traits(bare).has_bias, with_traits(replace(bare, hidden=2944)).has_bias
    (True, False)
    """
    named = _by_alias("models").get(_key(shape.name))
    alike = [_model(name) for name in ([named] if named else model_names())]
    alike = alike if named else [each for each in alike if _widths(each) == _widths(shape)]
    alike = [each for each in alike if each.vocab == shape.vocab] or alike
    told = {trait: {getattr(each, trait) for each in alike} for trait in TRAITS}
    return replace(shape, **{trait: each.pop() for trait, each in told.items() if len(each) == 1})


def _widths(shape: ModelShape) -> tuple[object, ...]:
    """Returns what tells the models of a family by their sizes, but for the vocabulary."""
    experts = shape.experts
    routed = (experts.ffn, experts.top_k, experts.shared_ffn) if experts else None
    heads = (shape.heads, shape.kv_heads, shape.head_dim if not shape.latent else 0)
    return shape.hidden, heads, shape.latent, shape.ffn, routed, shape.is_gated, shape.is_tied


_DECORATION = re.compile(r"^(meta|nvidia|bigscience|hf)-|-(instruct|base|chat|hf|it|bf16|v0\.1)$")


def _loose(name: str) -> str:
    """Returns a name without what says nothing of its sizes: maker, tuning, dashes."""
    text = name.lower().replace("_", "-")
    while (bare := _DECORATION.sub("", text)) != text:
        text = bare
    return text.replace("-", "")


def gpu_named(name: str) -> Gpu:
    """Returns a GPU by its name; raises InputError with the nearest names where there is none.

    >>> gpu_named("h100").peak("bf16")
    989000000000000.0
    """
    gpus = _by_alias("gpus")
    key = _key(name)
    if key not in gpus:
        raise unknown("GPU", name, gpus)
    return _gpu(gpus[key])


def cluster_named(name: str) -> Cluster:
    """Returns a cluster by its name; a GPU's name is that of the cluster its maker builds of it.

    >>> cluster_named("h100").name, cluster_named("gb200").nvlink_domain
    ('dgx-h100', 72)

    Raises InputError with the nearest names where there is none.
    """
    clusters = _by_alias("clusters")
    key = _key(name)
    if key not in clusters:
        raise unknown(said("cluster"), name, clusters)
    return _cluster(clusters[key])


def model_asked(text: str) -> ModelShape:
    """Returns the model that a text asks for: a name, a config.json or its folder, or its sizes.

    Raises InputError for a name that is not known and a file that is no config of a model.
    """
    if is_written(text):
        return shape_of_text(text)
    path = Path(text).expanduser()
    if text.endswith(".json") or path.is_dir():
        from serried.plan.model.hugging_face import shape_of_file

        return shape_of_file(path)
    return model_named(text)


def model_names() -> tuple[str, ...]:
    """Returns the models there are, each by its first name."""
    return tuple(figures("models")["models"])


def gpu_names() -> tuple[str, ...]:
    """Returns the GPUs there are, each by its first name."""
    return tuple(figures("gpus"))


def cluster_names() -> tuple[str, ...]:
    """Returns the clusters there are, each by its first name."""
    return tuple(figures("clusters"))


def unknown(what: Sentence | str, name: str, known: Iterable[str]) -> InputError:
    """Returns the error for a name that is not known, with the names nearest to it."""
    names = list(known)
    near = get_close_matches(_key(name), names, n=4, cutoff=0.5)
    if near:
        return InputError(
            "there is no {what} '{name}'; the nearest are {near}",
            what=what,
            name=name[:40],
            near=listed(near),
        )
    return InputError(
        "there is no {what} '{name}', and none has a name like it; some there are: {known}",
        what=what,
        name=name[:40],
        known=listed(names, limit=8),
    )


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


@cache
def _by_alias(table: str) -> Mapping[str, str]:
    """Returns the first name of each thing by all names that it goes by."""
    rows = figures(table)["models"] if table == "models" else figures(table)
    return {alias: name for name, row in rows.items() for alias in (name, *row.get("aliases", ()))}


@cache
def _model(name: str) -> ModelShape:
    tables = figures("models")
    row = dict(tables["models"][name])
    row = tables["families"][row.pop("family")] | row
    row.pop("aliases", None)
    experts, latent = row.pop("experts", None), row.pop("latent", None)
    row.setdefault("kv_heads", row["heads"])
    row.setdefault("head_dim", row["hidden"] // row["heads"])
    row.setdefault("ffn", 4 * row["hidden"])
    return ModelShape(
        name=name,
        experts=ExpertShape(**experts) if experts else None,
        latent=LatentAttention(**latent) if latent else None,
        **row,
    )


@cache
def _gpu(name: str) -> Gpu:
    return gpu_of(name, figures("gpus")[name])


@cache
def _cluster(name: str) -> Cluster:
    row = figures("clusters")[name]
    return cluster_of(name, row, _gpu(row["gpu"]))


def gpu_of(name: str, row: Mapping[str, Any]) -> Gpu:
    """Returns the GPU that a row of ``gpus.toml`` describes."""
    host = row.get("host", {})
    told = (
        {}
        if not host
        else {
            "host_bytes_per_s": host["gb_per_s"] * GB * _reached(host),
            "host_memory_bytes_per_s": host["memory_gb_per_s"] * GB,
            "host_source": host["source"],
        }
    )
    return Gpu(
        name,
        row["maker"],
        {each: flops * TERA for each, flops in row["peak_tflops"].items()},
        row["memory_gb"] * GB,
        row["memory_gb_per_s"] * GB,
        row["link"]["gb_per_s"] * GB,
        row["source"],
        _reached(row["link"]),
        **told,
    )


def cluster_of(name: str, row: Mapping[str, Any], gpu: Gpu) -> Cluster:
    """Returns the cluster of such GPUs that a row of ``clusters.toml`` describes."""
    per_node, nic = row["gpus_per_node"], row["nic"]
    return Cluster(
        name,
        gpu,
        per_node,
        row.get("nvlink_domain", per_node),
        nic["gb_per_s"] * GB * nic.get("per_node", per_node) / per_node,
        row.get("num_gpus"),
        row.get("network", name),
        row["source"],
        _reached(nic),
        row.get("switch_sums", {}).get("share", 0.0),
    )


def _reached(wire: Mapping[str, Any]) -> float:
    """Returns the share of a link's bandwidth that libraries reach; all where nobody says."""
    speed = wire["gb_per_s"]
    return float(wire.get("reached_gb_per_s", speed) / speed)
