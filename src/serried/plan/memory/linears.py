"""The linear layers of one layer, as wide as they are on one of its ranks.

    attention       qkv   h -> (a + 2 kv) d / tp         o     a d / tp -> h
    latent (MLA)    q_down h -> q_rank      q_up  q_rank -> a (nope + rope) / tp
                    kv_down h -> kv_rank + rope          kv_up kv_rank -> a (nope + v) / tp
    feed-forward    fc1   h -> 2 f / tp, f / tp plain    fc2   f / tp -> h
    an expert       fc1   h -> 2 f_e / etp               fc2   f_e / etp -> h

Activations, gradients of weights and copies in 8 bits all follow from these widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from serried.plan.model.shape import ModelShape


@dataclass(frozen=True)
class Linear:
    """Holds one linear layer of a rank: what it reads and what it gives, in numbers a token."""

    name: str
    inputs: int
    outputs: int
    count: int = 1
    """How many of it the rank has: its experts."""
    share: float = 1.0
    """Tokens that go through all of them, for each token that goes through the layer."""

    @property
    def num_weights(self) -> int:
        """Weights of all of them, biases left out."""
        return self.inputs * self.outputs * self.count

    @property
    def is_expert(self) -> bool:
        """Whether tokens are routed to it."""
        return self.name.startswith("expert")


@lru_cache(maxsize=4096)
def layer_linears(
    model: ModelShape, is_moe: bool, tp: int = 1, ep: int = 1, etp: int = 1
) -> tuple[Linear, ...]:
    """Returns those of a layer, with experts or without, in the order of the forward.

    >>> model = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> [(each.name, each.inputs, each.outputs) for each in layer_linears(model, False, tp=2)]
    [('qkv', 4096, 3072), ('o', 2048, 4096), ('fc1', 4096, 14336), ('fc2', 7168, 4096)]
    """
    attention = _latent(model, tp) if model.latent else _heads(model, tp)
    if not is_moe or model.experts is None:
        return (*attention, *_feed_forward(model, "", model.ffn, tp))
    experts, found = model.experts, list(attention)
    if experts.shared_ffn:
        found += _feed_forward(model, "shared_", experts.shared_ffn, tp)
    # Balanced experts of one rank get the routed tokens of tp-th of the sequence, from etp ranks.
    share, count = experts.top_k * etp / tp, -(-experts.count // ep)
    found += _feed_forward(model, "expert_", experts.ffn, etp, count, share)
    return tuple(found)


def _heads(model: ModelShape, tp: int) -> tuple[Linear, ...]:
    queries = -(-model.heads // tp) * model.head_dim
    keys = -(-model.kv_heads // tp) * model.head_dim
    return (
        Linear("qkv", model.hidden, queries + 2 * keys),
        Linear("o", queries, model.hidden),
    )


def _latent(model: ModelShape, tp: int) -> tuple[Linear, ...]:
    latent, hidden, heads = model.latent, model.hidden, -(-model.heads // tp)
    assert latent is not None
    query: tuple[Linear, ...] = (Linear("q", hidden, heads * latent.qk_dim),)
    if latent.q_rank:
        query = (
            Linear("q_down", hidden, latent.q_rank),
            Linear("q_up", latent.q_rank, heads * latent.qk_dim),
        )
    return (
        *query,
        Linear("kv_down", hidden, latent.kv_rank + latent.rope_dim),
        Linear("kv_up", latent.kv_rank, heads * (latent.nope_dim + latent.v_dim)),
        Linear("o", heads * latent.v_dim, hidden),
    )


def _feed_forward(
    model: ModelShape, prefix: str, width: int, parts: int, count: int = 1, share: float = 1.0
) -> tuple[Linear, ...]:
    own = -(-width // parts)
    columns = 2 * own if model.is_gated else own
    return (
        Linear(f"{prefix}fc1", model.hidden, columns, count, share),
        Linear(f"{prefix}fc2", own, model.hidden, count, share),
    )
