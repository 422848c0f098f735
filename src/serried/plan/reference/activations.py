"""What one microbatch leaves in a stage for its backward, and what that backward works with.

A layer keeps, of T places of the sequence (T' of the stream: T, or T / tp where it is cut), with
h hidden, f feed-forward, s keys or values of all KV heads, a heads, e bytes a number, w wide:

    stream ──┬─> norm ──> n1 ─┬─> q k v ─> turned ─> attention ─> o ─> wo ──> + ──┬─> norm ──> n2 …
             │   T'h          │ T h/tp                T h/tp, a row's sum w T a/tp │
             └────────────────┴──────────────────────────────────────> +           └─> …
    … n2 ─┬─> w1 ─> silu ─> x ─> w2 ──> +          T f/tp each: w1's output, silu's, w3's and
          └─> w3 ──────────/                       their product

Nothing that follows from what is kept here is kept by backward as well, but: a fused norm keeps
its input, which is the stream itself; norms that are not fused, or are wider than the stream,
keep a copy. Attention's output is copied where the kernel does not write it as wo reads it.

    recompute none        all of it
    recompute selective   without what attention keeps for itself: with flash only the sums
                          and one of the output's two copies
    recompute full        the stream before each layer; one layer's all comes back in backward

But for kernels of attention other than flash, these are the formulas of any job, ``memory.layer``,
told what the reference's code keeps besides.

Torch's tensor parallelism keeps n1 and n2 whole under sequence parallelism too, where Megatron
gathers them again (arXiv 2205.05198, section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from serried.plan.memory.implementation import Implementation
from serried.plan.memory.layer import LayerPlan, layer_items
from serried.plan.model.shape import ModelShape
from serried.plan.reference.training import Training

COMPUTE = {"float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
"""What the planner of any job calls the types that a run computes in."""
MASK_ROWS = 32
"""The memory-efficient kernel rounds a sequence up to this for its sums of rows."""


@dataclass(frozen=True)
class LayerBytes:
    """Holds what one layer keeps of a microbatch."""

    stream: int
    """The layer's input and the stream between its two halves, or wide copies of these."""
    norms: int
    """What norms keep besides, and what they gave."""
    attention: int
    feed_forward: int
    masks: int
    """The masks of dropout."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.stream + self.norms + self.attention + self.feed_forward + self.masks


def layer_bytes(training: Training) -> LayerBytes:
    """Returns what a layer keeps with ``recompute`` none or selective."""
    items = _items(training)
    attend = _attention_again if training.recompute == "selective" else _attention
    inputs = items["attention's input"] + items["feed-forward's input"]
    return LayerBytes(
        stream=items["norm inputs"],
        norms=items["norms besides"] + inputs,
        attention=attend(training),
        feed_forward=items["fc1 output"] + items["activated"],
        masks=items.get("masks", 0),
    )


@lru_cache(maxsize=64)
def _items(training: Training) -> Mapping[str, int]:
    """Returns what a layer keeps by the formulas of any job, for the reference's own code.

    Attention's are those of flash attention; other kernels' stand below.
    """
    model, wide = training.model, training.wide_bytes
    shape = ModelShape(
        "reference",
        1,
        model.hidden,
        model.heads,
        model.kv_heads,
        model.hidden // model.heads,
        model.ffn,
        model.vocabulary,
    )
    plan = LayerPlan(
        tp=training.tp,
        has_sequence_parallel=training.sequence_parallel,
        sequence=model.seq_len,
        compute=COMPUTE[training.dtype],
        has_hidden_dropout=model.has_dropout,
    )
    built = Implementation(
        "reference",
        "serried.runtime.model",
        norm_root_bytes=wide,
        norm_input_bytes=_norm_number(training),
        norm_copy_bytes=0 if training.kernels.fuses_norm else wide,
        is_norm_output_whole=True,
        activation_copies=1,
        attention_output_copies=1,
        mask_bytes=training.kernels.mask_bytes,
    )
    items = layer_items(shape, False, plan, built)
    return {each.name: round(each.token_bytes * training.tokens) for each in items}


def kept_by_layer(training: Training) -> int:
    """Returns what a layer keeps until its backward."""
    if training.recompute == "full":
        return stream_itself(training)
    return layer_bytes(training).total


def kept_by_end(training: Training) -> int:
    """Returns what the last norm, the output and the loss keep, but for the scores."""
    model = training.model
    norm = stream_bytes(training) + norm_bytes(training)
    normed = training.tokens * model.hidden * training.element_bytes
    return norm + normed + _scores(training) * training.wide_bytes


def held_output(training: Training, *, is_last: bool) -> int:
    """Returns a stage's output, which the pipeline holds until backward: scores, or the stream."""
    return _scores(training) * training.element_bytes if is_last else stream_itself(training)


def loss_work(training: Training) -> int:
    """Returns what the loss's backward holds at once: gradients of the chosen and of all scores.

    Loss parallelism has one more, as torch writes it out (tensor/parallel/loss.py).
    """
    return (3 if training.loss_parallel else 2) * _scores(training) * training.wide_bytes


def layer_work(training: Training, *, weight_gradient: int) -> int:
    """Returns what the backward of a stage's last layer adds to all that is kept.

    It is largest in the feed-forward layer: of T f/tp each, the gradient of the product stands
    beside those of silu's and w3's output, when the product itself is let go; or, before that,
    beside the product and the ``weight_gradient`` of w2, 0 where that stays. Where attention
    goes by scores it may be larger there, when the feed-forward layer has let go of its own.
    """
    inner = _inner(training)
    work = inner + max(inner, weight_gradient, _scores_work(training) - inner)
    if training.model.has_dropout:
        work += stream_itself(training)
    if training.sequence_parallel:  # w2's gradient needs the stream's whole
        work += training.tokens * training.model.hidden * training.element_bytes
    if training.recompute == "full":
        again = layer_bytes(training).total
        work += again - stream_itself(training) if keeps_stream(training) else again
    return work


def _scores_work(training: Training) -> int:
    """Returns what attention's backward holds of scores and the like, less what is gone by then.

    Mathematics has gradients of weights and of scores; a ring, of one block: scores, weights,
    their gradients and two steps between (``runtime.block``); in two passes gradients of weights
    as they are used, and of scores.
    """
    form = training.cp_form if training.cp > 1 else training.kernels.attention
    # Ulysses exchanges places for heads and then attends with the device's own kernel.
    if training.cp > 1 and form == "ulysses":
        form = training.kernels.attention
    row = _rows(training) * training.model.seq_len
    held = {
        "math": 2 * row * training.element_bytes,
        "ring": 5 * row // training.cp * training.wide_bytes,
        "ring-two-pass": row * (training.wide_bytes + training.element_bytes),
    }
    gone = 4 * _inner(training) + training.tokens * training.model.hidden * training.element_bytes
    return held.get(form, 0) - gone


def kept_between_halves(training: Training, layers: int, *, is_last: bool) -> int:
    """Returns what an input half leaves for its weight half, beside what the forward kept.

    These are the gradients of what weights gave: of w2, wo and both norms, w1 and w3, q, k and
    v, and of the scores. The last w2's is a message; what the loss kept is let go.
    """
    of_norms = 2 * stream_bytes(training)
    of_layer = of_norms + 2 * stream_itself(training) + 2 * _inner(training)
    of_layer += _queries(training) + 2 * _keys(training)
    if not is_last:
        return layers * of_layer - stream_itself(training)
    of_loss = _scores(training) * (training.element_bytes - training.wide_bytes)
    return layers * of_layer + stream_bytes(training) + of_loss


def input_half_work(training: Training, *, is_last: bool) -> int:
    """Returns what an input half holds besides when it ends: queries turned back, and the loss."""
    of_loss = _scores(training) * training.wide_bytes if is_last else 0
    return 2 * (_queries(training) + _keys(training)) + of_loss


def stream_itself(training: Training) -> int:
    """Returns the stream between two layers."""
    return training.stream_tokens * training.model.hidden * training.element_bytes


def stream_bytes(training: Training) -> int:
    """Returns what a norm keeps of the stream: itself, or a copy as wide as it computes."""
    return training.stream_tokens * training.model.hidden * _norm_number(training)


def angle_bytes(training: Training) -> int:
    """Returns the cosines and sines of rotary positions, which every stage holds."""
    model = training.model
    return model.seq_len // training.cp * (model.hidden // model.heads) * training.wide_bytes


def keeps_stream(training: Training) -> bool:
    """Tells whether what a norm keeps is the stream itself."""
    return _norm_number(training) == training.element_bytes


def norm_bytes(training: Training) -> int:
    """Returns what a norm keeps besides its input: the roots, and unfused the quotients."""
    roots = training.stream_tokens * training.wide_bytes
    if training.kernels.fuses_norm:
        return roots
    return roots + training.stream_tokens * training.model.hidden * training.wide_bytes


def _norm_number(training: Training) -> int:
    """Returns the bytes of a number that a norm keeps: buffers keep norms wide."""
    is_wide = training.sharing == "buffer" or not training.kernels.fuses_norm
    return training.wide_bytes if is_wide else training.element_bytes


def _inner(training: Training) -> int:
    return training.tokens * training.model.ffn // training.tp * training.element_bytes


def _scores(training: Training) -> int:
    """Returns how many scores a rank has of a microbatch."""
    ranks = training.tp if training.loss_parallel else 1
    return training.tokens * training.model.vocabulary // ranks


def _queries(training: Training) -> int:
    return training.tokens * training.model.hidden // training.tp * training.element_bytes


def _keys(training: Training) -> int:
    return training.tokens * training.model.shared // training.tp * training.element_bytes


def _attention_again(training: Training) -> int:
    """Returns what is kept of attention that is computed again: q, k, v and wo's input."""
    items = _items(training)
    return items["q, k, v"] + items["attended"]


def _attention(training: Training) -> int:
    form = training.cp_form if training.cp > 1 else training.kernels.attention
    return ATTENTION[form](training)


def _rows(training: Training) -> int:
    """Returns how many rows of scores a rank's heads have."""
    return training.tokens * training.model.heads // training.tp


def _flash(training: Training) -> int:
    """Returns bytes of q, k, v, the output and its copy, and each row's sum."""
    items = _items(training)
    return _attention_again(training) + items["attended, as it was given"] + items["row sums"]


def _efficient(training: Training) -> int:
    """Returns bytes of q, k, v and the output, and of each row's sum, with rows rounded up."""
    seq = training.model.seq_len
    rows = _rows(training) // seq * -(-seq // MASK_ROWS) * MASK_ROWS
    return 2 * _queries(training) + 2 * _keys(training) + rows * training.wide_bytes


def _math(training: Training) -> int:
    """Returns bytes of q and k scaled, v, each repeated for all heads, the weights, wo's input."""
    model = training.model
    is_shared = model.shared != model.hidden
    values = _queries(training) if is_shared else _keys(training)
    weights = _rows(training) * model.seq_len * training.element_bytes
    return 3 * _queries(training) + values + weights


def _ring(training: Training) -> int:
    """Returns bytes of q, k, v; the output and each row's sum, wide; the output as wo reads it."""
    wide_output = _queries(training) // training.element_bytes * training.wide_bytes
    return _attention_again(training) + wide_output + _rows(training) * training.wide_bytes


def _ring_two_pass(training: Training) -> int:
    """Returns bytes of q, k, v; a mask of all places; the weights, wide and as used; wo's input."""
    model, number = training.model, training.element_bytes
    places = model.seq_len
    mask = places // training.cp * places
    used = 0 if number == training.wide_bytes else number
    weights = _rows(training) * places * (training.wide_bytes + used)
    return _attention_again(training) + mask + weights


def _ulysses(training: Training) -> int:
    """Returns what the kernel keeps of whole sequences; what comes back is copied for wo."""
    kept = ATTENTION[training.kernels.attention](training)
    return kept + (_queries(training) if training.kernels.attention == "efficient" else 0)


ATTENTION: dict[str, Callable[[Training], int]] = {
    "flash": _flash,
    "efficient": _efficient,
    "math": _math,
    "ring": _ring,
    "ring-two-pass": _ring_two_pass,
    "ulysses": _ulysses,
}
"""What each way to attend keeps."""
