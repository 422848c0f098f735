"""Models and GPUs as tables list them: ``perf_models.csv`` and ``gpu_specs.csv`` of a folder.

A table's row names a model and a GPU by a short key; a GPU's key is the beginning of its name in
the specifications, with its memory where a type is sold with several: A100-40 is A100-SXM-40GB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from serried.errors import InputError
from serried.plan import catalog
from serried.plan.cluster.cluster import Gpu
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape

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
    return ModelShape(
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
        has_bias=_has_bias(row["model"]),
    )


def _has_bias(name: str) -> bool:
    """Returns whether the catalog knows a model and its biases, which tables do not list."""
    try:
        return catalog.model_named(name).has_bias
    except InputError:
        return False


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
    name = row["gpu"]
    wide = number(row, "bf16_dense_tflops") * 1e12
    narrow = number(row, "fp8_dense_tflops") * 1e12
    peaks = {"bf16": wide} | ({"fp8": narrow} if narrow else {})
    for word, times in (
        ("B200", 2.0),
        ("GB200", 2.0),
        ("B300", 3.0),
        ("GB300", 3.0),
        ("MI35", 2.0),
    ):
        if name.upper().startswith(word):
            peaks["fp4"] = narrow * times
    if number(row, "fp4_dense_tflops"):
        peaks["fp4"] = number(row, "fp4_dense_tflops") * 1e12
    return Gpu(
        name,
        "amd" if name.upper().startswith("MI") else "nvidia",
        peaks,
        number(row, "hbm_GB") * 1e9,
        number(row, "hbm_TBps") * 1e12,
        number(row, "scaleup_bidir_GBps") * 1e9 / 2.0,
        row.get("source", ""),
    )
