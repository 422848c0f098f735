"""Models and GPUs as tables list them: ``perf_models.csv`` and ``gpu_specs.csv`` of a folder.

A table's row names a model and a GPU by a short key; a GPU's key is the beginning of its name in
the specifications, with its memory where a type is sold with several: A100-40 is A100-SXM-40GB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from serried.errors import InputError
from serried.plan import catalog
from serried.plan.cluster.cluster import Gpu
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.time import chips

Row = Mapping[str, str]
_CATALOGED = {"H200-NVL": "h200"}
"""Types that the tables name otherwise than the catalog does."""


def number(row: Row, name: str, otherwise: float = 0.0) -> float:
    """Returns a cell as a number, or another where it is empty or not there.

    >>> number({"tp": "8", "pp": ""}, "tp"), number({"pp": ""}, "pp", 1.0)
    (8.0, 1.0)
    """
    told = (row.get(name) or "").strip()
    if not told:
        return otherwise
    try:
        return float(told)
    except ValueError:
        raise InputError("{name} is '{value}'; it is a number", name=name, value=told) from None


def whole(row: Row, name: str, otherwise: int = 0) -> int:
    """Returns a cell as a whole number, or another where it is empty."""
    return round(number(row, name, float(otherwise)))


def model_of(row: Row) -> ModelShape:
    """Returns the model that a row of ``perf_models.csv`` describes.

    Tables do not list biases and norms; a catalogued model of the same widths has them.

    >>> model_of({"model": "m", "layers": "2", "hidden": "8", "heads": "2", "kv_heads": "2",
    ...           "head_dim": "4", "ffn": "32", "gated": "0", "vocab": "9"}).is_gated
    False
    """
    latent = experts = None
    if number(row, "kv_lora"):
        latent = LatentAttention(
            kv_rank=whole(row, "kv_lora"),
            nope_dim=whole(row, "qk_nope"),
            rope_dim=whole(row, "qk_rope"),
            v_dim=whole(row, "v_head"),
            q_rank=whole(row, "q_lora"),
        )
    if number(row, "experts"):
        experts = ExpertShape(
            count=whole(row, "experts"),
            top_k=whole(row, "topk"),
            ffn=whole(row, "moe_ffn"),
            shared_ffn=whole(row, "shared_ffn"),
            dense_layers=whole(row, "dense_layers"),
        )
    shape = ModelShape(
        row["model"],
        layers=whole(row, "layers"),
        hidden=whole(row, "hidden"),
        heads=whole(row, "heads"),
        kv_heads=whole(row, "kv_heads"),
        head_dim=whole(row, "head_dim"),
        ffn=whole(row, "ffn") or whole(row, "moe_ffn"),
        vocab=whole(row, "vocab"),
        is_gated=bool(number(row, "gated")),
        is_tied=bool(number(row, "tied")),
        latent=latent,
        experts=experts,
        window=whole(row, "window") or None,
        windowed_layers=whole(row, "window_layers"),
        mtp_layers=whole(row, "mtp"),
    )
    return catalog.with_traits(shape)


def gpus_of(rows: Iterable[Row]) -> dict[str, tuple[Gpu, Row]]:
    """Returns GPUs by the name that their row of ``gpu_specs.csv`` has, with the row."""
    return {row["gpu"]: (_gpu(row), row) for row in rows}


def gpu_named(key: str, known: Mapping[str, tuple[Gpu, Row]]) -> tuple[Gpu, Row]:
    """Returns the GPU that a table's key means, from the catalog where no specification has it.

    >>> names = ("A100-SXM-40GB", "A100-SXM-80GB", "B200 (HGX, 1000W)")
    >>> cells = {"bf16_dense_tflops": "1", "hbm_GB": "1", "hbm_TBps": "1",
    ...          "scaleup_bidir_GBps": "1"}
    >>> known = gpus_of({"gpu": name, **cells} for name in names)
    >>> [gpu_named(key, known)[0].name for key in ("A100", "A100-40", "B200")]
    ['A100-SXM-80GB', 'A100-SXM-40GB', 'B200 (HGX, 1000W)']
    """
    if key in known:
        return known[key]
    word, _, memory = key.partition("-")
    found = [name for name in known if name.replace("(", " ").split()[0].split("-")[0] == word]
    if memory:
        found = [name for name in found if memory.lower() in name.lower()]
    if word == "A100" and not memory:
        found = [name for name in found if "40GB" not in name] or found
    if not found:
        return catalog.gpu_named(_CATALOGED.get(key, key.lower())), {}
    return known[found[0]]


def _gpu(row: Row) -> Gpu:
    """Returns the GPU of a row; what tables leave out is as in the type whose figures are nearest.

    Its maker and its way to the host are not listed, nor is its peak in 4 bits, which is a multiple
    of the one in 8.
    """
    named = {name: number(row, f"{name}_dense_tflops") * 1e12 for name in ("bf16", "fp8", "fp4")}
    peaks = {name: flops for name, flops in named.items() if flops}
    gpu = Gpu(
        row["gpu"],
        "amd" if row["gpu"].upper().startswith("MI") else "",
        peaks,
        number(row, "hbm_GB") * 1e9,
        number(row, "hbm_TBps") * 1e12,
        number(row, "scaleup_bidir_GBps") * 1e9 / 2.0,
        row.get("source", ""),
    )
    like = chips.like(gpu)
    for narrow, wide in (("fp8", "bf16"), ("fp4", "fp8")):
        if narrow not in peaks and narrow in like.peak_flops and wide in peaks:
            peaks[narrow] = peaks[wide] * like.peak_flops[narrow] / like.peak_flops[wide]
    return replace(
        gpu,
        maker=like.maker,
        peak_flops=peaks,
        host_bytes_per_s=like.host_bytes_per_s,
        host_memory_bytes_per_s=like.host_memory_bytes_per_s,
        host_source=like.host_source,
    )
