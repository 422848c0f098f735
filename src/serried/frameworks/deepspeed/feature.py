"""What one DeepSpeed feature adds to a layout: its meshes, group kinds and dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from serried.errors import InputError, listed
from serried.finding import Finding
from serried.frameworks.framework import divisors
from serried.mesh import GroupKind, Mesh


@dataclass(frozen=True)
class Feature:
    """Holds the groups of one feature; ``world_size`` is set where it decides the world."""

    meshes: Mapping[str, Mesh]
    kinds: tuple[GroupKind, ...]
    dims: dict[str, str] = field(default_factory=dict)
    order: str = ""
    world_size: int | None = None
    ranks_per_host: tuple[int, ...] = ()
    """How many ranks each host has, where the feature counts them host by host."""
    findings: tuple[Finding, ...] = ()


def require_divides(name: str, size: int, whole: int) -> None:
    """Raises InputError unless ``size``, the setting called ``name``, divides ``whole`` ranks."""
    if whole % size:
        raise InputError(
            "{name}={size} does not divide {whole} ranks; sizes that do: {fits}",
            name=name,
            size=size,
            whole=whole,
            fits=listed(divisors(whole), limit=24),
        )
