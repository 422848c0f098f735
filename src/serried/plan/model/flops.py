"""How many FLOPs a model takes, part by part, and the conventions by which they are reported.

One token's forward, a multiplication and an addition counted as two:

    q k v o          2 x weights            feed-forward     2 x weights
    attention core   2 a (d_qk + d_v) keys  router           2 h E
    output           2 V h                  experts          2 x weights of the top_k, and shared

Backward takes twice that: the gradients of inputs and those of weights. ``keys`` is what tells
conventions apart, s of a sequence or what causal attention needs on average, and so is what of
recomputation is counted as work. Times of a forward, with B sequences a step and no window:

    convention    layers   core   output   keys   all of a step, where f = 4h and kv = a
    full             3       3      3       s     72 B L s h^2 (1 + s/6h + V/12hL)
    causal           3       3      3       s/2   72 B L s h^2 (1 + s/12h + V/12hL)
    sc21             4       4      3       s     96 B L s h^2 (1 + s/6h + V/16hL)
    korthikanti      3       6      3       s     72 B L s h^2 (1 + s/3h + V/12hL)

``full`` is that of PaLM, Korthikanti's model FLOPs, MegaScale and torchtitan; ``causal`` that of
Megatron-LM since 2025; ``sc21`` counts full recomputation (Narayanan et al., arXiv 2104.04473,
section 3); ``korthikanti`` are that paper's hardware FLOPs with selective recomputation (arXiv
2205.05198, appendix A).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.plan.model.shape import ModelShape


@dataclass(frozen=True)
class ForwardFlops:
    """Holds the FLOPs of one token's forward by part: of a layer, a stage or a model.

    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> forward_flops(llama, 4096).output == 2 * 4096 * 128256
    True
    """

    projections: float = 0.0
    """Queries, keys, values and attention's output."""
    core: float = 0.0
    """Queries by keys, and weights by values."""
    feed_forward: float = 0.0
    """Dense feed-forwards, and experts that every token goes through."""
    router: float = 0.0
    experts: float = 0.0
    """Those of the routed experts that the token goes through."""
    joins: float = 0.0
    """What multi-token prediction joins its two inputs with."""
    output: float = 0.0

    @property
    def total(self) -> float:
        """All of them."""
        return self.layers + self.core + self.output

    @property
    def layers(self) -> float:
        """Matrices of the layers, attention's core left out."""
        return self.projections + self.feed_forward + self.router + self.experts + self.joins

    def __add__(self, other: ForwardFlops) -> ForwardFlops:
        return ForwardFlops(
            self.projections + other.projections,
            self.core + other.core,
            self.feed_forward + other.feed_forward,
            self.router + other.router,
            self.experts + other.experts,
            self.joins + other.joins,
            self.output + other.output,
        )

    def __mul__(self, times: float) -> ForwardFlops:
        return ForwardFlops(
            self.projections * times,
            self.core * times,
            self.feed_forward * times,
            self.router * times,
            self.experts * times,
            self.joins * times,
            self.output * times,
        )


@dataclass(frozen=True)
class FlopsConvention:
    """Says how often each part's forward counts in a step, and which keys a query is counted for.

    >>> CONVENTIONS["sc21"].per_step(ForwardFlops(projections=1.0, core=1.0, output=1.0))
    11.0
    """

    name: str
    layers: float
    core: float
    output: float
    is_causal: bool
    about: Sentence

    def per_step(self, forward: ForwardFlops) -> float:
        """Returns the FLOPs that a forward stands for, forward and backward together."""
        return (
            forward.layers * self.layers + forward.core * self.core + forward.output * self.output
        )


CONVENTIONS: Mapping[str, FlopsConvention] = {
    each.name: each
    for each in (
        FlopsConvention(
            "full", 3, 3, 3, False, said("every key of the sequence (PaLM, torchtitan)")
        ),
        FlopsConvention("causal", 3, 3, 3, True, said("keys before the query alone (Megatron-LM)")),
        FlopsConvention(
            "sc21", 4, 4, 3, False, said("full recomputation counted (arXiv 2104.04473)")
        ),
        FlopsConvention(
            "korthikanti",
            3,
            6,
            3,
            False,
            said("selective recomputation counted (arXiv 2205.05198)"),
        ),
    )
}
"""Every convention by its name."""


def convention(name: str) -> FlopsConvention:
    """Returns the convention called ``name``; raises InputError naming those there are."""
    if name not in CONVENTIONS:
        raise InputError(
            "FLOPs are not counted by '{name}'; conventions are {known}",
            name=name[:40],
            known=listed(CONVENTIONS),
        )
    return CONVENTIONS[name]


def keys_seen(sequence: int, *, is_causal: bool, window: int | None = None) -> float:
    """Returns how many keys a query is counted for, on average over the sequence.

    Of a window both conventions count what it lets through; the few queries at the beginning that
    have less before them are counted only where causality is.

    >>> keys_seen(4096, is_causal=False), keys_seen(4096, is_causal=True)
    (4096, 2048.0)
    >>> keys_seen(4096, is_causal=True, window=128), keys_seen(4096, is_causal=False, window=128)
    (126.0, 128)
    """
    reach = min(sequence, window) if window else sequence
    return reach - reach * reach / (2 * sequence) if is_causal else reach


@lru_cache(maxsize=4096)
def layer_flops(model: ModelShape, is_moe: bool) -> ForwardFlops:
    """Returns the FLOPs of one token's forward in one layer, attention's core left out."""
    hidden, tokens = model.hidden, 2.0
    if model.latent:
        kept = model.latent
        weights = hidden * (kept.kv_rank + kept.rope_dim) + model.value_dim * hidden
        weights += kept.kv_rank * model.heads * (kept.nope_dim + kept.v_dim)
        weights += (hidden + model.query_dim) * kept.q_rank if kept.q_rank else 0
        weights += 0 if kept.q_rank else hidden * model.query_dim
    else:
        weights = hidden * (2 * model.query_dim + 2 * model.kv_heads * model.head_dim)
    columns = 3 if model.is_gated else 2
    dense = ForwardFlops(projections=tokens * weights)
    if not is_moe or model.experts is None:
        return dense + ForwardFlops(feed_forward=tokens * columns * hidden * model.ffn)
    experts = model.experts
    return dense + ForwardFlops(
        feed_forward=tokens * columns * hidden * experts.shared_ffn,
        router=tokens * hidden * experts.count,
        experts=tokens * columns * hidden * experts.ffn * experts.top_k,
    )


def core_flops(model: ModelShape, keys: float) -> float:
    """Returns the FLOPs of one token's attention core in one layer, over so many keys."""
    return 2.0 * (model.query_dim + model.value_dim) * keys


def mtp_flops(model: ModelShape, keys: float) -> ForwardFlops:
    """Returns the FLOPs of one token's forward in one layer of MTP, its output with it."""
    return layer_flops(model, model.is_moe(model.layers)) + ForwardFlops(
        core=core_flops(model, keys),
        joins=4.0 * model.hidden * model.hidden,
        output=2.0 * model.hidden * model.vocab,
    )


def forward_flops(
    model: ModelShape, sequence: int, *, is_causal: bool = False, has_mtp: bool = True
) -> ForwardFlops:
    """Returns the FLOPs of one token's forward through the model, on average over a sequence."""
    keys = keys_seen(sequence, is_causal=is_causal)
    near = keys_seen(sequence, is_causal=is_causal, window=model.window)
    windowed = model.windowed_layers if model.window else 0
    core = core_flops(model, keys) * (model.layers - windowed) + core_flops(model, near) * windowed
    found = ForwardFlops(core=core, output=2.0 * model.hidden * model.vocab)
    num_moe = model.num_moe_layers
    found += layer_flops(model, False) * (model.layers - num_moe)
    if num_moe:
        found += layer_flops(model, True) * num_moe
    return found + mtp_flops(model, keys) * (model.mtp_layers if has_mtp else 0)


def model_flops(
    model: ModelShape, sequence: int, by: str = "causal", *, has_mtp: bool = True
) -> float:
    """Returns the FLOPs of training on one token, forward and backward, by a convention.

    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> [round(model_flops(llama, 4096, by) / 1e9, 2) for by in ("full", "causal")]
    [51.47, 48.25]
    """
    rule = convention(by)
    return rule.per_step(forward_flops(model, sequence, is_causal=rule.is_causal, has_mtp=has_mtp))


def hardware_flops(
    model: ModelShape,
    sequence: int,
    recompute: Literal["none", "selective", "full"],
    *,
    modules: Iterable[str] = (),
    share: float = 1.0,
) -> float:
    """Returns the FLOPs that really run for one token, causal keys and recomputation counted.

    ``modules`` are those recomputed selectively, as Megatron names them, attention's core where
    there are none; ``share`` is the part of the layers that are recomputed in full.

    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> norms = hardware_flops(llama, 4096, "selective", modules=["layernorm"])
    >>> norms == hardware_flops(llama, 4096, "none")
    True
    """
    forward = forward_flops(model, sequence, is_causal=True)
    found = 3 * forward.total
    if recompute == "full":
        return found + share * (forward.layers + forward.core)
    if recompute == "selective":
        found += _run_again(model, forward, frozenset(modules) or {"core_attn"})
    return found


def _run_again(model: ModelShape, forward: ForwardFlops, modules: Set[str]) -> float:
    """Returns the FLOPs of the modules that run forward twice; norms and activations have none."""
    num_moe = model.num_moe_layers
    dense = layer_flops(model, False).feed_forward * (model.layers - num_moe)
    shared = forward.feed_forward - dense
    found = 0.0
    if "core_attn" in modules:
        found += forward.core
    if "mlp" in modules:
        found += dense
    if "moe" in modules:
        found += forward.router + forward.experts + shared
    elif "shared_experts" in modules:
        found += shared
    if "mla_up_proj" in modules and (kept := model.latent):
        wide = kept.kv_rank * model.heads * (kept.nope_dim + kept.v_dim)
        found += 2.0 * (wide + model.query_dim * kept.q_rank) * model.layers
    if "op" in modules:  # torchtitan's: every other matrix
        found += forward.layers / 2
    return found


def adapted_flops(
    model: ModelShape, sequence: int, adapters: int, *, is_causal: bool = True
) -> float:
    """Returns the FLOPs of training LoRA ``adapters`` (parameters) on one token.

    Frozen weights have no gradient, so that they are gone through twice instead of three times;
    attention's core has no weights and takes all three.
    """
    forward = forward_flops(model, sequence, is_causal=is_causal)
    return 2 * (forward.layers + forward.output) + 3 * forward.core + 6 * adapters
