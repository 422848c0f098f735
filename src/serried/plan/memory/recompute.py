"""What of a layer stays under recompute, what comes back in backward, and what that works with.

    none        all items                                          nothing comes back
    selective   items of other modules than those recomputed       one layer's left-out items
    full        the layer's input, 2 h a token over sp             one layer's items

Selective recompute of ``core_attn`` is Korthikanti's: without scores 5 a s / h falls away
(arXiv 2205.05198, section 5). A module's own input stays, as it is another's output.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.plan.memory.implementation import Implementation
from serried.plan.memory.layer import RECOMPUTED, LayerItem, LayerPlan, layer_items
from serried.plan.memory.linears import layer_linears
from serried.plan.memory.numbers import activation_bytes, saved_input_bytes
from serried.plan.model.shape import ModelShape
from serried.plan.request import LowRank, Recompute


@dataclass(frozen=True)
class LayerUse:
    """Holds what one layer takes, in bytes for each token of its rank's sequences."""

    kept: float
    """From forward to backward."""
    again: float
    """What backward computes again, while it runs through this layer."""
    worked: float
    """Gradients of activations that stand beside all that when most does."""
    between: float
    """From the input half of a backward to its weight half: what weights' gradients are made of."""
    stream: float
    """The layer's input, which is the layer's before, or a message."""


def layer_use(
    model: ModelShape,
    is_moe: bool,
    split: LayerPlan,
    built: Implementation,
    recompute: Recompute | None = None,
    lora: LowRank | None = None,
) -> LayerUse:
    """Returns what a layer takes.

    >>> from serried.plan.memory.implementation import IMPLEMENTATIONS
    >>> gpt = ModelShape("gpt3", 96, 12288, 96, 96, 128, 49152, 51200, is_gated=False)
    >>> full = layer_use(gpt, False, LayerPlan(), IMPLEMENTATIONS["megatron"], Recompute("full"))
    >>> full.kept / 12288
    2.0

    Raises InputError for a module that is not known.
    """
    told = recompute or Recompute()
    items = layer_items(model, is_moe, split, built)
    if lora is not None:
        items = _frozen(items, lora)
    whole = sum(each.token_bytes for each in items)
    stream = activation_bytes(split.compute) * model.hidden / split.sp
    kept = whole
    if told.kind == "full":
        kept = stream
    elif told.kind == "selective":
        left_out = _modules(told)
        kept = sum(
            each.token_bytes * (_of_operators(each) if "op" in left_out else 1.0)
            for each in items
            if not left_out.intersection(each.modules)
        )
    return LayerUse(
        kept=kept,
        again=whole - kept,
        worked=stream + _worked(model, is_moe, split, built),
        between=0.0 if lora is not None else _between(model, is_moe, split),
        stream=stream,
    )


def _modules(recompute: Recompute) -> frozenset[str]:
    unknown = [each for each in recompute.modules if each not in RECOMPUTED]
    if unknown:
        raise InputError(
            "module '{module}' is not recomputed; modules that are: {known}",
            module=unknown[0][:40],
            known=listed(RECOMPUTED, limit=len(RECOMPUTED)),
        )
    return frozenset(recompute.modules or ("core_attn",))


def _of_operators(item: LayerItem) -> float:
    """Returns the part of an item that stays where every other matrix keeps what it gave."""
    if item.name == "norm inputs" or item.name.endswith("fc1 output"):
        return 0.5
    return 1.0 if item.name in ("q, k, v", "row sums", "attended") else 0.0


def _frozen(items: tuple[LayerItem, ...], lora: LowRank) -> tuple[LayerItem, ...]:
    """Returns what stays where weights are frozen: no linear layer keeps what it reads.

    But for those with adapters, whose own weights have gradients. What attention and activations
    keep stays, as gradients still pass through them.
    """
    inputs = {
        "attention's input": {"qkv"},
        "feed-forward's input": {"fc1"},
        "activated": {"fc2"},
        "expert_activated": {"fc2"},
        "shared_activated": {"fc2"},
    }
    return tuple(
        each
        for each in items
        if each.name not in inputs or inputs[each.name].intersection(lora.targets)
    )


def _worked(model: ModelShape, is_moe: bool, split: LayerPlan, built: Implementation) -> float:
    """Returns the largest of three moments of backward: feed-forward, experts, and attention.

    feed-forward   the gradients of what fc1 gave and of what fc2 read, which is gone by then;
                   with the sequence split, the whole stream's gradient beside the latter
    experts        routed tokens on their way: sorted, sent, received, sorted
    attention      the gradients of scores and softmax, where scores are kept; the
                   feed-forward's items are gone by then
    """
    number = activation_bytes(split.compute)
    linears = {
        each.name: each for each in layer_linears(model, is_moe, split.tp, split.ep, split.etp)
    }
    moments: list[float] = []
    if "fc1" in linears:
        columns, own = linears["fc1"].outputs, linears["fc2"].inputs
        whole = model.hidden if split.sp > 1 else 0
        moments.append(number * max(columns, own + whole))
    if "expert_fc1" in linears:
        expert = linears["expert_fc1"]
        routed = expert.share * split.imbalance * number * expert.inputs
        moments.append(built.dispatch_copies * routed)
    if not split.has_flash_attention:
        scores = 2 * number * model.heads / split.tp * split.sequence
        moments.append(scores - sum(moments[:1]))
    return max(moments)


def _between(model: ModelShape, is_moe: bool, split: LayerPlan) -> float:
    """Returns what linear layers read, and the gradients of what they gave.

    Of a layer with f = 4h it is 32 s b h in 16 bits, the zero-bubble paper's M_W (arXiv
    2401.10241, section 3).
    """
    number, narrow, found = activation_bytes(split.compute), saved_input_bytes(split.compute), 0.0
    for each in layer_linears(model, is_moe, split.tp, split.ep, split.etp):
        share = each.share * split.imbalance if each.is_expert else 1.0
        # The stream is split along the sequence; what is as wide as it is one rank's part of it.
        parts = 1 if each.is_expert else split.sp
        reads = each.inputs / (parts if each.inputs == model.hidden else 1)
        gives = each.outputs / (parts if each.outputs == model.hidden else 1)
        found += share * (narrow * reads + number * gives)
    return found
