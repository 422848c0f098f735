"""The shape of a transformer: every number from which its weights, its work and its bytes follow.

    token ids ─> embedding ─> layer 0 ─> … ─> layer L-1 ─> norm ─> output ─> loss
                 V h          attention + feed-forward            V h, or the embedding's own

    layer   norm ─ q k v ─ attention ─ o ─ + ─ norm ─ feed-forward, or router ─ experts ─ +

Names are those of the field: h hidden, a heads, L layers, V vocabulary, f the feed-forward's width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from serried.errors import InputError


@dataclass(frozen=True)
class LatentAttention:
    """Holds the widths of multi-head latent attention (MLA; DeepSeek-V2, arXiv 2405.04434).

    Queries and keys have ``nope_dim + rope_dim`` numbers a head, values ``v_dim``; keys and values
    are made from ``kv_rank`` numbers a token, queries from ``q_rank``, or directly where it is 0.
    """

    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    q_rank: int = 0

    @property
    def qk_dim(self) -> int:
        """The numbers of one head's query, and of its key."""
        return self.nope_dim + self.rope_dim


@dataclass(frozen=True)
class ExpertShape:
    """Holds the experts of a model's MoE layers, which stand in place of the feed-forward."""

    count: int
    """Routed experts of one layer."""
    top_k: int
    """Routed experts that a token goes through."""
    ffn: int
    """Width of one expert."""
    shared_ffn: int = 0
    """Width of what every token goes through besides, all shared experts together."""
    dense_layers: int = 0
    """Layers, the first of the model, that have a dense feed-forward instead."""
    every: int = 1
    """2 where every second of the layers behind those has experts (Llama 4 Maverick)."""
    has_shared_gate: bool = False
    """Whether a gate weighs what the shared experts say (Qwen2-MoE)."""

    def is_moe(self, layer: int) -> bool:
        """Tells whether a layer, numbered from 0, has experts.

        >>> [ExpertShape(16, 1, 8192, every=2).is_moe(layer) for layer in range(4)]
        [False, True, False, True]
        """
        behind = layer - self.dense_layers
        return behind >= 0 and (behind + 1) % self.every == 0

    def __post_init__(self) -> None:
        if not 1 <= self.top_k <= self.count:
            raise InputError(
                "a token goes through {top_k} of {count} experts; it can go through 1 to {count}",
                top_k=self.top_k,
                count=self.count,
            )


@dataclass(frozen=True)
class ModelShape:
    """Holds the shape of one decoder-only transformer.

    >>> gpt3 = ModelShape("gpt3-175b", 96, 12288, 96, 96, 128, 49152, 51200, is_gated=False)
    >>> gpt3.query_dim, gpt3.num_moe_layers
    (12288, 0)

    Raises InputError for sizes below 1 and for query heads that key-value heads do not divide.
    """

    name: str
    layers: int
    """Layers of the decoder, those of multi-token prediction not among them."""
    hidden: int
    heads: int
    kv_heads: int
    """Heads of keys and values: ``heads`` in multi-head attention, less in GQA, 1 in MQA."""
    head_dim: int
    """Numbers of one head's query; ``heads * head_dim`` may differ from ``hidden``."""
    ffn: int
    """Width of the dense feed-forward."""
    vocab: int
    """Words that the model knows, before a framework pads their number."""
    is_gated: bool = True
    """Whether the feed-forward has three matrices (SwiGLU) instead of two (GELU)."""
    is_tied: bool = False
    """Whether the output's weights are the embedding's own."""
    latent: LatentAttention | None = None
    experts: ExpertShape | None = None
    window: int | None = None
    """Keys that a query of a windowed layer sees; None where every layer sees all before it."""
    windowed_layers: int = 0
    """Layers that have the window."""
    mtp_layers: int = 0
    """Further layers that predict further tokens (DeepSeek-V3, arXiv 2412.19437, section 2.2)."""
    norm: Literal["rms", "layer"] = "rms"
    norms_per_layer: int = 2
    """1 where attention and feed-forward share one, 4 where what they add is normed too."""
    has_norm_bias: bool = True
    """Whether a LayerNorm has a bias; an RMSNorm has none."""
    qk_norm: Literal["", "head", "whole"] = ""
    """What of queries and keys is normed: each head with the same weights, all heads, or none."""
    has_bias: bool = False
    """Whether every linear layer has a bias, but the output."""
    has_qkv_bias: bool = False
    """Whether queries, keys and values have one, where others have none."""
    has_o_bias: bool = False
    """Whether attention's output projection has one, where others have none."""
    has_sinks: bool = False
    """Whether each head has a weight that takes attention off all keys (GPT-OSS)."""
    learned_positions: int = 0
    """Rows of a learned table of positions; 0 where positions are computed."""
    has_embedding_norm: bool = False
    """Whether a norm stands behind the embedding (BLOOM)."""
    source: str = ""
    """Where the figures are from."""
    left_out: tuple[str, ...] = ()
    """Parts of a model that its config describes beside what reads text, such as vision_config."""

    def __post_init__(self) -> None:
        least = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
        for name in least:
            if getattr(self, name) < 1:
                raise InputError(
                    "model {model} has {name}={size}; it is at least 1",
                    model=self.name,
                    name=name,
                    size=getattr(self, name),
                )
        if self.heads % self.kv_heads:
            raise InputError(
                "model {model} has {heads} query heads, and {kv} heads of keys and values do not "
                "divide them",
                model=self.name,
                heads=self.heads,
                kv=self.kv_heads,
            )

    @property
    def query_dim(self) -> int:
        """Numbers of all query heads together."""
        return self.heads * (self.latent.qk_dim if self.latent else self.head_dim)

    @property
    def value_dim(self) -> int:
        """Numbers that attention hands to its output projection."""
        return self.heads * (self.latent.v_dim if self.latent else self.head_dim)

    @property
    def num_moe_layers(self) -> int:
        """Layers with experts."""
        return sum(map(self.is_moe, range(self.layers))) if self.experts else 0

    def is_moe(self, layer: int) -> bool:
        """Tells whether a layer, numbered from 0, has experts; those of MTP are as the last is."""
        return bool(self.experts and self.experts.is_moe(min(layer, self.layers - 1)))
