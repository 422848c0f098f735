"""How ColossalAI splits sequences: four modes, and two rings inside a ring-attention group.

Read from colossalai 0.5.0: booster/plugin/hybrid_parallel_plugin.py (sequence_parallelism_mode)
and shardformer/layer/attn.py (RingAttention.get_double_ring_groups).

    sp 8, inner_ring_size 2     inner [0 1] [2 3]  (two of four)     inter [0 4 …] [1 5 …] …
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.frameworks.framework import choice, divisors, number, switch
from serried.mesh import GroupKind, Slices
from serried.mesh.sizes import Sizes

MODES = ("all_to_all", "split_gather", "ring", "ring_attn")


@dataclass(frozen=True)
class Sequence:
    """Holds how sequences are split: the mode, None for not at all, and the ranks."""

    mode: str | None
    size: int

    @classmethod
    def of(cls, sizes: Sizes, plugin: str) -> Sequence:
        """Returns how a plugin splits sequences; raises InputError where it refuses."""
        mode = sizes.options.get("sequence_parallelism_mode")
        size = number(sizes, "sp_size", 1)
        if not switch(sizes, "enable_sequence_parallelism", default=mode is not None):
            if size > 1:
                raise InputError("sp_size={size} needs enable_sequence_parallelism=true", size=size)
            return cls(None, 1)
        mode = choice(sizes, "sequence_parallelism_mode", MODES)
        if mode == "ring_attn" and plugin == "moe":
            raise InputError(
                "the moe plugin has no ring_attn; it has all_to_all, split_gather, ring"
            )
        if mode in ("split_gather", "ring"):
            if sizes.tp == 1:
                raise InputError("sequence_parallelism_mode={mode} needs tp above 1", mode=mode)
            return cls(mode, 1)
        return cls(mode, size)

    @property
    def shares_tp(self) -> bool:
        """Whether the sequence groups are the tensor groups."""
        return self.mode in ("split_gather", "ring")


def rings(sizes: Sizes, sequence: Sequence) -> list[GroupKind]:
    """Returns inner and outer rings of ring attention, cut as get_double_ring_groups cuts them.

    It makes inner_ring_size inner rings where sp / inner_ring_size are needed.
    """
    if not _has_rings(sizes, sequence):
        return []
    inner, sp = number(sizes, "inner_ring_size", 1), sequence.size
    if sp % inner:
        raise InputError(
            "inner_ring_size={inner} does not divide sp_size={sp}; sizes that do: {fits}",
            inner=inner,
            sp=sp,
            fits=listed(divisors(sp)),
        )
    if inner * inner > sp and inner != sp:
        raise InputError(
            "inner_ring_size={inner} fails for sp_size={sp}: ColossalAI makes {inner} inner "
            "rings of {inner}, more ranks than there are; sizes that fit: {fits}",
            inner=inner,
            sp=sp,
            fits=listed(n for n in divisors(sp) if n * n <= sp or n == sp),
        )
    return [
        GroupKind("inner_ring", ("sp",), rule=_inner(inner, sp), about="ring inside a node"),
        GroupKind("inter_ring", ("sp",), rule=_inter(inner, sp), about="ring across nodes"),
    ]


def _has_rings(sizes: Sizes, sequence: Sequence) -> bool:
    """Tells whether rings are made: only ring_attn looks at inner_ring_size."""
    return sequence.mode == "ring_attn" and "inner_ring_size" in sizes.options


def _inner(inner: int, sp: int) -> Slices:
    count = 1 if inner == sp else inner
    return Slices(tuple((i * inner, (i + 1) * inner, 1) for i in range(count)))


def _inter(inner: int, sp: int) -> Slices:
    num_rings = 1 if inner == sp else sp // inner
    return Slices(tuple((i, sp, num_rings) for i in range(num_rings)))


def half_rings(sizes: Sizes, sequence: Sequence) -> tuple[Finding, ...]:
    """Returns a finding where ColossalAI makes too few inner rings for all ranks."""
    if not _has_rings(sizes, sequence):
        return ()
    inner, sp = number(sizes, "inner_ring_size", 1), sequence.size
    if inner * inner >= sp:
        return ()
    return (
        Finding(
            "uncovered",
            groups=("inner_ring",),
            evidence=(
                said(
                    "ColossalAI makes {inner} inner rings of {inner} ranks for sp_size={sp}, so "
                    "{left} ranks of every sequence group are in none",
                    inner=inner,
                    sp=sp,
                    left=sp - inner * inner,
                ),
            ),
            cure=said("choose inner_ring_size x inner_ring_size = sp_size"),
        ),
    )
