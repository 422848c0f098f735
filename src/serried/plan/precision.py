"""Recipes of precision: how many bytes a parameter takes, in each form that training keeps of it.

    bytes          parameter   gradient   wide copy   moments
    fp16-adam          2           2          4           8      16   the ZeRO paper
    fp32-grads         2           4          4           8      18   Megatron-LM, summed in fp32
    fsdp2-mixed        4           4          –           8      16   torch FSDP2; gathered as 2
    adam-8bit          2           2          4           2      10   bitsandbytes

``computed_bytes`` is the form that is gathered and multiplied with, ``reduced_bytes`` the one that
gradients travel in; where they are not what lies on a rank, a cast stands between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serried.errors import InputError, listed


@dataclass(frozen=True)
class Precision:
    """Holds the bytes that training keeps for each parameter, by what they are kept for.

    >>> RECIPES["fp16-adam"].total_bytes, RECIPES["fp32-grads"].optimizer_bytes
    (16, 12)
    """

    name: str
    parameter_bytes: int
    """The parameter, as it lies on its rank between steps."""
    gradient_bytes: int
    master_bytes: int
    """The optimizer's wide copy of the parameter; 0 where the parameter itself is wide."""
    moment_bytes: int
    """What the optimizer remembers of it: both of Adam's moments."""
    computed_bytes: int
    """The parameter as it is gathered and computed with."""
    reduced_bytes: int
    """The gradient as it is summed over ranks."""
    source: str
    """Paper, or package and version."""
    table_moment_bytes: int = 0
    """What the optimizer remembers besides of embeddings and output, which it may treat apart."""

    @property
    def optimizer_bytes(self) -> int:
        """The optimizer's state: the wide copy and the moments."""
        return self.master_bytes + self.moment_bytes

    @property
    def total_bytes(self) -> int:
        """What a parameter takes where nothing is shared."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes


def _recipe(
    name: str,
    kept: tuple[int, int, int, int],
    moved: tuple[int, int],
    source: str,
    table_moment_bytes: int = 0,
) -> Precision:
    return Precision(name, *kept, *moved, source, table_moment_bytes)


# Kept are parameter, gradient, wide copy and moments; moved are parameter and gradient.
RECIPES: Mapping[str, Precision] = {
    each.name: each
    for each in (
        _recipe("fp16-adam", (2, 2, 4, 8), (2, 2), "ZeRO, arXiv 1910.02054, section 3.1: K = 12"),
        _recipe(
            "fp32-grads",
            (2, 4, 4, 8),
            (2, 4),
            "Megatron-LM d98e8a64, theoretical_memory_usage.py: 18 bytes, or 6 + 12/N sharded",
        ),
        _recipe(
            "bf16-grads",
            (2, 2, 4, 8),
            (2, 2),
            "megatron-core 0.16.1, grad_reduce_in_fp32=False",
        ),
        _recipe(
            "fsdp2-mixed",
            (4, 4, 0, 8),
            (2, 4),
            "torch 2.13.0, MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32)",
        ),
        _recipe("fp32", (4, 4, 0, 8), (4, 4), "torch 2.13.0, AdamW of float32 parameters"),
        _recipe("bf16", (2, 2, 0, 4), (2, 2), "torch 2.13.0, AdamW of bfloat16 parameters"),
        _recipe(
            "adam-8bit",
            (2, 2, 4, 2),
            (2, 2),
            "bitsandbytes, arXiv 2110.02861: moments of one byte each, their scales left out",
        ),
        _recipe(
            "fp16-scaled",
            (2, 2, 8, 8),
            (2, 2),
            "Megatron-LM d98e8a64, --fp16: gradients are unscaled into fp32 beside the wide copy",
        ),
        _recipe(
            "muon",
            (2, 4, 4, 4),
            (2, 4),
            "Megatron-LM d98e8a64, --optimizer muon: one moment, and Adam's two of embeddings",
            table_moment_bytes=4,
        ),
        _recipe(
            "bf16-moments",
            (2, 4, 4, 4),
            (2, 4),
            "DeepSeek-V3, arXiv 2412.19437, section 3.3.2; Megatron-LM d98e8a64, "
            "--use-precision-aware-optimizer with bf16 moments",
        ),
        _recipe("sgd-momentum", (2, 2, 4, 4), (2, 2), "mixed precision, one moment in fp32"),
    )
}
"""Every recipe by its name."""

DEFAULT = "fp16-adam"
"""The recipe of the ZeRO paper, whose figures are those that people compare with."""


def recipe(name: str) -> Precision:
    """Returns the recipe called ``name``; raises InputError naming those there are."""
    if name not in RECIPES:
        raise InputError(
            "precision '{name}' is not known; recipes are {known}",
            name=name[:40],
            known=listed(RECIPES, limit=len(RECIPES)),
        )
    return RECIPES[name]
