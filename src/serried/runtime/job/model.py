"""ModelSizes: what the byte-level GPT is made of, and which layers each stage holds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors
from serried.runtime.job.limits import require_at_least_zero, require_positive, require_share

VOCABULARY = 256
"""The model reads and predicts bytes."""


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of the byte-level GPT; the same model whatever the layout.

    >>> ModelSizes(hidden=64, heads=8, kv_heads=2).head_size
    8

    Raises InputError when ``hidden`` cannot be cut into heads of an even size (rotary
    embeddings turn pairs), or heads into equal groups that share a KV head.
    """

    layers: int = 4
    hidden: int = 64
    heads: int = 8
    seq_len: int = 64
    kv_heads: int | None = None
    """Heads of keys and values, shared by groups of heads (GQA); None takes one for each."""
    experts: int = 0
    """Experts in each layer's feed-forward; 0 takes a plain one."""
    top_k: int = 2
    """Experts that each byte is sent to."""
    balance: float = 0.0
    """Weight of the load-balancing loss, over the rows of a microbatch; 0 leaves it out."""
    tie: bool = False
    """Whether the output layer's weight is the embedding's."""
    dropout: float = 0.0
    """Share of each block's outputs that a training step leaves out."""

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "seq_len", "top_k"):
            require_positive(name, getattr(self, name))
        for name in ("experts", "balance"):
            require_at_least_zero(name, getattr(self, name))
        require_share("dropout", self.dropout)
        self._check_heads()
        if self.experts and self.top_k > self.experts:
            raise InputError(
                "top_k={k} of {experts} experts cannot be; take k up to {experts}",
                k=self.top_k,
                experts=self.experts,
            )

    def _check_heads(self) -> None:
        if self.hidden % (2 * self.heads):
            raise InputError(
                "hidden={hidden} cannot be cut into {heads} heads of an even size; "
                "sizes that can: {fits}",
                hidden=self.hidden,
                heads=self.heads,
                fits=listed([2 * self.heads * n for n in range(1, 5)]) + ", …",
            )
        if self.num_kv_heads < 1 or self.heads % self.num_kv_heads:
            raise InputError(
                "{heads} heads cannot share {kv_heads} KV heads evenly; numbers that fit: {fits}",
                heads=self.heads,
                kv_heads=self.num_kv_heads,
                fits=listed(divisors(self.heads)),
            )

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @property
    def num_kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def ffn(self) -> int:
        """Width of the feed-forward layer: near SwiGLU's 8/3, and cut evenly by any tp."""
        return 3 * self.hidden


def stage_layers(layers: int, num_stages: int) -> list[range]:
    """Cuts ``layers`` into a run for each stage, as even as can be, longer ones first.

    >>> stage_layers(5, 2)
    [range(0, 3), range(3, 5)]
    """
    short, longer = divmod(layers, num_stages)
    starts = [stage * short + min(stage, longer) for stage in range(num_stages + 1)]
    return [range(a, b) for a, b in pairwise(starts)]
