"""Training: what the reference training's memory follows from, free of torch.

model        layers, widths, heads …                       Gpt
cut          tp, cp, sequence and loss parallelism          of each layer
schedule     which stages a rank has, and when each runs    of each microbatch
sharing      how data parallel ranks hold weights           plain, buffer, replicate, zero
kernels      which of torch's kernels a device computes with
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from serried.pipeline import Schedule

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number of each type that a run computes in."""

Attention = Literal["flash", "efficient", "math"]
Recompute = Literal["none", "selective", "full"]
Sharing = Literal["plain", "buffer", "replicate", "zero"]


@dataclass(frozen=True)
class Gpt:
    """Holds the sizes of the model."""

    hidden: int
    ffn: int
    """Width inside the feed-forward layer."""
    heads: int
    kv_heads: int
    seq_len: int
    vocabulary: int
    tie: bool = False
    """Whether the output's weight is the embedding's."""
    has_dropout: bool = False

    @property
    def shared(self) -> int:
        """Width of all keys, and of all values."""
        return self.hidden // self.heads * self.kv_heads


@dataclass(frozen=True)
class Kernels:
    """Says which of torch's kernels a device computes with, as they keep different things.

    Attention is ``flash`` where it keeps q, k, v, its output and the logarithm of each row's
    sum; ``efficient`` keeps the same but writes its output as the next layer reads it, so that
    no copy is made; ``math`` keeps the weights of every query for every key.
    """

    attention: Attention = "flash"
    fuses_norm: bool = True
    """Whether RMSNorm is one kernel, which keeps its input alone."""
    mask_bytes: int = 1
    """What dropout's mask takes for each number."""


def kernels_of(device: str, dtype: str, *, shares_heads: bool = False) -> Kernels:
    """Returns what torch computes with on ``device``, ``cpu`` or ``cuda``.

    ``shares_heads`` is whether heads share keys and values (GQA), which the memory-efficient
    kernel does not know. Source: torch 2.13, aten/src/ATen/native/transformers
    (cuda/sdp_utils.cpp, sdp_utils_cpp.cpp) and layer_norm.cpp.

    >>> kernels_of("cuda", "bfloat16").attention, kernels_of("cuda", "float64").attention
    ('flash', 'math')
    """
    if device == "cpu":
        return Kernels("flash", fuses_norm=False, mask_bytes=BYTES[dtype])
    if BYTES[dtype] == 2:
        return Kernels("flash")
    if dtype == "float32" and not shares_heads:
        return Kernels("efficient")
    return Kernels("math")


@dataclass(frozen=True)
class Training:
    """Describes one run as far as its memory follows from it."""

    model: Gpt
    layers: tuple[int, ...]
    """Layers of each stage."""
    schedule: Schedule
    """What each rank of the pipeline runs; no stage stands on two ranks."""
    microbatch_size: int
    dtype: str = "float32"
    """The type that is computed in."""
    tp: int = 1
    cp: int = 1
    cp_form: str = "ring"
    sequence_parallel: bool = False
    loss_parallel: bool = False
    sharing: Sharing = "plain"
    """How data parallel ranks hold weights: whole and plain (one rank, or none that torch
    reduces for), whole with gradient buffers, whole through torch's replicate, or in shards."""
    zero: int = 0
    shard: int = 1
    """Ranks that share one copy, for ``zero``."""
    recompute: Recompute = "none"
    kernels: Kernels = field(default_factory=Kernels)

    @property
    def num_stages(self) -> int:
        """How many stages the model is cut into."""
        return len(self.layers)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in the type that is computed in."""
        return BYTES[self.dtype]

    @property
    def wide_bytes(self) -> int:
        """Bytes of an element of the optimizer, the loss and sums: 4 at least."""
        return max(4, self.element_bytes)

    @property
    def tokens(self) -> int:
        """Places of all sequences of a microbatch that this rank holds."""
        return self.microbatch_size * self.model.seq_len // self.cp

    @property
    def stream_tokens(self) -> int:
        """Places of the stream between matrices that this rank holds."""
        return self.tokens // self.tp if self.sequence_parallel else self.tokens
