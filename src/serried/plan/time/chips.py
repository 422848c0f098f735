"""Which chip a GPU has: by its name where that is known, else by its figures.

    name       H100-SXM-80GB is an h100
    figures    peaks, memory and links of a catalogued type, within a few percent: that type
    neither    a type of its own, of the generation of the type whose figures are nearest

Constants are fitted by type and by generation, so that a GPU that is called otherwise, or is not in
the catalogue, has those of what it is or of what it is nearest to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from serried.plan import catalog
from serried.plan.cluster.cluster import Gpu

GENERATIONS: Mapping[str, tuple[str, ...]] = {
    "volta": ("v100",),
    "ampere": ("a100", "a800", "a30", "a10", "a10g", "a6000"),
    "ada": ("l40s", "l40", "l4", "rtx6000ada", "rtx4090"),
    "hopper": ("h100", "h200", "h800", "h20", "gh200"),
    "blackwell": ("b100", "b200", "gb200", "b300", "gb300"),
    "cdna3": ("mi250", "mi250x", "mi300a", "mi300x", "mi308x", "mi325x"),
    "cdna4": ("mi350x", "mi355x"),
    "cpu": ("cpu",),
}
"""GPU types by generation, the type being the first word of a name."""
ULTRA = ("b300", "gb300")
"""Types that compute exponentials at twice their generation's rate (Blackwell Ultra)."""
SAME_CHIP = {"b300": "gb300", "h800": "h100", "a800": "a100", "gh200": "h200", "mi350x": "mi355x"}
"""Types that nobody measured here, and the measured one that has the same chip."""
_KNOWN = {kind: made for made, kinds in GENERATIONS.items() for kind in kinds}
_SAME = 0.07
"""Figures of one type differ by so much between sources: 180 or 192 GB, 7.7 or 8.0 TB/s."""
_FORMAT = 2.0
"""How far a type is that lacks a number format, or has one more: as by this logarithm."""


def kind(gpu: Gpu) -> str:
    """Returns the type that a GPU's name begins with, or else the one that its figures are of.

    >>> kind(Gpu("GB200 NVL72", "nvidia", {"bf16": 2.5e15}, 186e9, 8e12, 900e9))
    'gb200'
    >>> kind(Gpu("ours", "nvidia", {"bf16": 990e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9))
    'h100'
    """
    named = _word(gpu.name)
    return named if named in _KNOWN else _of_figures(gpu)[0] or named


def generation(gpu: Gpu) -> str:
    """Returns the generation a GPU is of; of an unknown type, that of the nearest by figures."""
    named = _word(gpu.name)
    return _KNOWN[named] if named in _KNOWN else _KNOWN[_of_figures(gpu)[1]]


def like(gpu: Gpu) -> Gpu:
    """Returns the catalogue's GPU that a name means, or else the one with the nearest figures."""
    named = [each for each in _types() if _word(each.name) == _word(gpu.name)]
    return min(named or _types(), key=lambda each: _apart(gpu, each))


def _word(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-").split("-")[0]


def _of_figures(gpu: Gpu) -> tuple[str, str]:
    """Returns the type that has a GPU's figures, "" where none has, and the nearest one."""
    peaks = tuple(sorted(gpu.peak_flops.items()))
    sizes = (gpu.memory_bytes, gpu.memory_bytes_per_s, gpu.link_bytes_per_s)
    return _told(gpu.maker, peaks, sizes)


@lru_cache(maxsize=256)
def _told(
    maker: str, peaks: tuple[tuple[str, float], ...], sizes: tuple[float, float, float]
) -> tuple[str, str]:
    gpu = Gpu("", maker, dict(peaks), *sizes)
    same = [each for each in _types() if _most_apart(gpu, each) <= _SAME]
    first = min(same, key=lambda each: _apart(gpu, each), default=None)
    return (_word(first.name) if first else ""), _word(like(gpu).name)


def _types() -> Iterator[Gpu]:
    """Yields the catalogue's GPUs that have a generation and are no CPU."""
    for name in catalog.gpu_names():
        gpu = catalog.gpu_named(name)
        if _word(name) in _KNOWN and gpu.maker != "cpu":
            yield gpu


def _logarithms(gpu: Gpu, other: Gpu) -> Iterator[float]:
    """Yields how far the figures that both have are apart, as logarithms."""
    for name in ("bf16", "fp8", "fp4"):
        if name in gpu.peak_flops and name in other.peak_flops:
            yield math.log(gpu.peak_flops[name] / other.peak_flops[name])
    for figure in ("memory_bytes", "memory_bytes_per_s", "link_bytes_per_s"):
        yield math.log(getattr(gpu, figure) / getattr(other, figure))


def _most_apart(gpu: Gpu, other: Gpu) -> float:
    """Returns the most that any figure differs by; a format that only one has is no reason, for
    tables leave peaks out."""
    if "bf16" not in gpu.peak_flops or "bf16" not in other.peak_flops:
        return math.inf
    return max(map(abs, _logarithms(gpu, other)))


def _apart(gpu: Gpu, other: Gpu) -> float:
    """Returns how unlike two GPUs are: mostly by formats and peaks, less by memory and links."""
    is_other_format = ("fp8" in gpu.peak_flops) != ("fp8" in other.peak_flops)
    is_other_maker = gpu.maker.lower() != other.maker and gpu.maker.lower() in ("amd", "nvidia")
    wide = math.log(_wide(gpu) / _wide(other))
    speeds = math.log(gpu.memory_bytes_per_s / other.memory_bytes_per_s)
    links = math.log(gpu.link_bytes_per_s / other.link_bytes_per_s)
    sizes = math.log(gpu.memory_bytes / other.memory_bytes)
    formats = _FORMAT * (is_other_format + is_other_maker)
    return math.sqrt(wide**2 + (speeds**2 + links**2 + sizes**2) / 4.0 + formats**2)


def _wide(gpu: Gpu) -> float:
    """Returns a GPU's peak in 16 bits, or in what it has nearest to them."""
    for name in ("bf16", "fp16", "fp8", "fp4"):
        if name in gpu.peak_flops:
            return gpu.peak_flops[name]
    return min(gpu.peak_flops.values(), default=1e15)
