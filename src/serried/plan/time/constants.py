"""The efficiency constants: what hardware and software reach of what they could, as data.

``catalog/efficiency.toml`` holds them, fitted to measured steps by ``plan.time.fit``:

    gemm.hopper.8      share of the peak FLOP/s that large fp8 GEMMs reach on a generation of GPUs
    device.h200.8      what one GPU type reaches beside its generation; 1 where nobody measured it
    attention.hopper   share of the bf16 peak that flash attention's forward reaches at 128 a head
    memory             share of the memory's bandwidth, and so on, one number for all hardware

A GPU type that was never measured has its generation's constants (``chips``): its peaks, bandwidths
and links do the rest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from serried.plan.cluster.cluster import Gpu
from serried.plan.time.chips import SAME_CHIP, ULTRA, generation, kind
from serried.plan.time.experience import FAMILIARITIES, Experience, JobMark

LIKE = {"volta": "ampere", "cpu": "ampere"}
"""Generations that nobody measured here, and the one whose constants they have."""


@dataclass(frozen=True)
class Constant:
    """Holds one constant, and the standard error of its logarithm: 0.1 is about 10 %."""

    value: float
    error: float
    bears: float = 0.0
    """How far measured steps narrowed it: 0 for what is only expected, 1 for what they settle."""


@dataclass(frozen=True)
class Constants:
    """Holds all constants by name, where they come from, and how far predictions are off."""

    entries: Mapping[str, Constant]
    residuals: Mapping[str, tuple[float, ...]]
    """Half widths of ln(measured / predicted) that nine in ten lie within, by kind of job, one for
    each of ``experience.FAMILIARITIES``."""
    source: str
    experience: Experience = field(default_factory=Experience)
    """What they were fitted to."""

    def value(self, name: str) -> float:
        """Returns a constant that is there for all hardware."""
        return self.entries[name].value

    def gemm(self, gpu: Gpu, bits: str) -> float:
        """Returns the share of its peak that a GPU's large GEMMs reach in so many bits."""
        made = self._known_as(gpu, "gemm.{}.16")
        for width in (bits, "8", "16"):
            if f"gemm.{made}.{width}" in self.entries:
                chip = SAME_CHIP.get(kind(gpu), kind(gpu))
                device = self.entries.get(f"device.{chip}.{width}")
                return self.value(f"gemm.{made}.{width}") * (device.value if device else 1.0)
        raise KeyError(made)

    def attention(self, gpu: Gpu) -> float:
        """Returns the share of its bf16 peak that flash attention's forward reaches."""
        made = self._known_as(gpu, "attention.{}")
        ultra = self.value("attention_ultra") if kind(gpu) in ULTRA else 1.0
        return self.value(f"attention.{made}") * ultra

    def _known_as(self, gpu: Gpu, name: str) -> str:
        """Returns a GPU's generation, or where it was not measured here the one it is like."""
        made = generation(gpu)
        return made if name.format(made) in self.entries else LIKE.get(made, made)


@lru_cache(maxsize=1)
def shipped() -> Constants:
    """Returns the constants that serried ships."""
    text = files("serried.catalog").joinpath("efficiency.toml").read_text(encoding="utf-8")
    return of_document(tomllib.loads(text))


def of_document(document: Mapping[str, Any]) -> Constants:
    """Returns the constants of a read TOML file, {"constants": {name: {value, error, bears}}}."""
    entries = {
        name: Constant(float(each["value"]), float(each["error"]), float(each.get("bears", 0.0)))
        for name, each in document["constants"].items()
    }
    residuals = {
        name: tuple(float(each) for each in widths)
        for name, widths in document.get("residuals", {}).items()
    }
    if any(len(widths) != len(FAMILIARITIES) for widths in residuals.values()):
        raise ValueError(f"residuals have {len(FAMILIARITIES)} widths each")
    measured = document.get("measured", {})
    experience = Experience(
        frozenset(JobMark.of_text(line) for line in measured.get("jobs", ())),
        {name: int(size) for name, size in measured.get("most", {}).items()},
    )
    return Constants(entries, residuals, str(document.get("source", "")), experience)
