"""What a layer keeps of each token from forward to backward, item by item.

    stream ─┬─> norm ─> qkv ─> q k v ─> attention ─> o ─> (mask) ─ + ─┬─> norm ─> fc1 ─> act ─> fc2
            └──────────────────────────────────────────────────> +     └─ …

    item              bytes a token, in 16 bits             split over      module of recompute
    norm inputs       2 x 2h                                sp
    inputs of both    2 x 2h, what norms give               sp              layernorm
    q, k, v           2 (a + 2 kv) d                        tp              mla_up_proj, where MLA
    scores            5 a s, 2 a s without dropout          tp              core_attn
    row sums          4 a, of flash attention               tp              core_attn
    attended          2 a d                                 tp
    fc1's output      4f gated, 2f plain                    tp              mlp
    activated         2f                                    tp              mlp, moe_act
    masks             2 x h, of dropout                     sp

sp is tp where norms and dropout are split along the sequence, else 1. With f = 4h, a d = h and
all of it the sum is Korthikanti's s b h (34 + 5 a s / h), over tp with the sequence split and
s b h (10 + 24 / t + 5 a s / (h t)) without (arXiv 2205.05198, section 4, equations 1, 2 and 4).
Context parallelism leaves each rank its part of the tokens; scores still see the whole sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.plan.memory.implementation import Implementation
from serried.plan.memory.linears import Linear, layer_linears
from serried.plan.memory.numbers import activation_bytes, is_narrow, saved_input_bytes
from serried.plan.model.shape import ModelShape

RECOMPUTED = (
    "core_attn",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "moe_act",
    "op",
    "shared_experts",
)
"""Modules that Megatron recomputes selectively (megatron-core 0.16.1, transformer_config.py).

``op`` is torchtitan's: attention and every other matrix keep what they gave, nothing else is kept
(torchtitan b5bcd76c, distributed/activation_checkpoint.py).
"""


@dataclass(frozen=True)
class LayerPlan:
    """Says how a layer is split and computed, as far as what it keeps follows from it."""

    tp: int = 1
    ep: int = 1
    etp: int = 1
    cp: int = 1
    has_sequence_parallel: bool = True
    sequence: int = 4096
    """Tokens of a whole sequence, which every query may see."""
    compute: str = "bf16"
    has_flash_attention: bool = True
    has_hidden_dropout: bool = False
    has_attention_dropout: bool = False
    cp_exchange: str = "p2p"
    """How cp ranks reach one another's keys: p2p, all_gather or a2a."""
    imbalance: float = 1.0
    """Tokens that the fullest rank's experts get, for each that they would if all got as many."""
    has_narrow_swiglu: bool = False
    """Whether SwiGLU keeps what it reads in 8 bits (``activation_func_fp8_input_store``)."""

    @property
    def sp(self) -> int:
        """Over how many ranks the stream between matrices is split."""
        return self.tp if self.has_sequence_parallel else 1


@dataclass(frozen=True)
class LayerItem:
    """Holds one thing that a layer keeps, in bytes for each token of its rank's sequences."""

    name: str
    token_bytes: float
    modules: tuple[str, ...] = ()
    """Modules of selective recompute that would not keep it."""


def layer_items(
    model: ModelShape, is_moe: bool, split: LayerPlan, built: Implementation
) -> tuple[LayerItem, ...]:
    """Returns all that a layer keeps when nothing is computed again.

    >>> from serried.plan.memory.implementation import IMPLEMENTATIONS
    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> built = IMPLEMENTATIONS["megatron"]
    >>> items = layer_items(llama, False, LayerPlan(), built)
    >>> round(sum(each.token_bytes for each in items))
    139392
    """
    linears = {
        each.name: each for each in layer_linears(model, is_moe, split.tp, split.ep, split.etp)
    }
    items = _norms(model, is_moe, split, built)
    items += _latent(model, linears, split) if model.latent else ()
    items += _attention(model, split, built)
    for prefix in ("", "shared_", "expert_"):
        if f"{prefix}fc1" in linears:
            ends = linears[f"{prefix}fc1"], linears[f"{prefix}fc2"]
            items += _feed_forward(prefix, ends, split, _copies_of(model, prefix, built))
    if is_moe and model.experts:
        # The router's scores, and what it chooses by, are of 32 bits; its map is of one byte.
        items += (LayerItem("router", 9 * model.experts.count / split.sp, ("moe",)),)
    return tuple(each for each in items if each.token_bytes)


def _norms(
    model: ModelShape, is_moe: bool, split: LayerPlan, built: Implementation
) -> tuple[LayerItem, ...]:
    hidden, number = model.hidden, activation_bytes(split.compute)
    whole = 1 if built.is_norm_output_whole else split.sp
    # A router reads the norm's output too, in 16 bits, so that there it is kept as it is.
    narrow = saved_input_bytes(split.compute)
    before = number if is_moe else narrow
    besides = built.norm_root_bytes + built.norm_copy_bytes * hidden
    masks = 2 * hidden * built.mask_bytes if split.has_hidden_dropout else 0
    more = model.norms_per_layer - 2  # norms of what is added to the stream
    return (
        LayerItem(
            "norm inputs", (2 + more) * (built.norm_input_bytes or number) * hidden / split.sp
        ),
        LayerItem("attention's input", narrow * hidden / whole, ("layernorm",)),
        LayerItem("feed-forward's input", before * hidden / whole, ("layernorm",)),
        LayerItem("norms besides", (2 + more) * besides / split.sp),
        LayerItem("masks", masks / split.sp),
    )


def _latent(
    model: ModelShape, linears: dict[str, Linear], split: LayerPlan
) -> tuple[LayerItem, ...]:
    """Returns the narrow forms of queries, keys and values, and what their norms give."""
    latent, number = model.latent, activation_bytes(split.compute)
    assert latent is not None
    narrow = saved_input_bytes(split.compute)
    wide = linears["kv_down"].outputs + latent.q_rank
    normed = latent.kv_rank + latent.q_rank
    return (
        LayerItem("latents", number * wide / split.sp),
        LayerItem("latents normed", narrow * normed / split.sp, ("mla_up_proj",)),
    )


def _attention(model: ModelShape, split: LayerPlan, built: Implementation) -> tuple[LayerItem, ...]:
    number, tp = activation_bytes(split.compute), split.tp
    heads = model.heads / tp
    wide = _query_width(model, tp)
    attended = model.value_dim / tp
    again = ("mla_up_proj",) if model.latent else ()
    items: tuple[LayerItem, ...] = (LayerItem("q, k, v", number * wide, again),)
    if split.has_flash_attention:
        items += (LayerItem("row sums", max(4, number) * heads, ("core_attn",)),)
    else:
        # The softmax; with dropout its mask, and what is left of it.
        scores = number + (built.mask_bytes + number if split.has_attention_dropout else 0)
        items += (LayerItem("scores", scores * heads * split.sequence, ("core_attn",)),)
    # What o reads is what attention gives; in fewer bits, or exchanged over cp, it is a copy.
    copies = built.attention_output_copies + (split.cp > 1 and split.cp_exchange == "a2a")
    reads = saved_input_bytes(split.compute)
    if is_narrow(split.compute) and split.has_flash_attention:
        copies += 1
    own = LayerItem("attended, as it was given", number * copies * attended, ("core_attn",))
    return (*items, LayerItem("attended", reads * attended), own)


def _query_width(model: ModelShape, tp: int) -> float:
    """Returns the numbers of queries, keys and values of a rank's heads."""
    if model.latent:
        return model.heads * (2 * model.latent.qk_dim + model.latent.v_dim) / tp
    keys = max(model.kv_heads, tp) * model.head_dim / tp
    return model.heads * model.head_dim / tp + 2 * keys


def _copies_of(model: ModelShape, prefix: str, built: Implementation) -> int:
    """Returns copies as wide as a feed-forward that stay besides what its fc2 reads.

    Experts weigh what they activate, which one kernel does for SwiGLU alone: megatron-core 0.16.1,
    moe/experts.py and fusions/fused_bias_swiglu.py.
    """
    if model.is_gated:
        return built.activation_copies
    return int(prefix == "expert_")


def _feed_forward(
    prefix: str, ends: tuple[Linear, Linear], split: LayerPlan, copies: int
) -> tuple[LayerItem, ...]:
    into, out = ends
    number, narrow = activation_bytes(split.compute), saved_input_bytes(split.compute)
    activated = 1 if split.has_narrow_swiglu else number
    share = into.share * split.imbalance if into.is_expert else 1.0
    modules = {"": ("mlp",), "shared_": ("moe", "shared_experts"), "expert_": ("moe",)}[prefix]
    acts = (*modules, "moe_act") if into.is_expert else modules
    copied = copies * number * out.inputs
    items: tuple[LayerItem, ...] = (
        LayerItem(f"{prefix}fc1 output", share * activated * into.outputs, modules),
        LayerItem(f"{prefix}activated", share * (narrow * out.inputs + copied), acts),
    )
    if into.is_expert:
        # Routed tokens, and in fp32 what each is weighed with.
        routed = narrow * into.inputs + 4
        items += (LayerItem("routed tokens", share * routed, ("moe",)),)
    return items
