"""What a stage's weights take on one rank: parameters, gathered copies, gradients, optimizer.

    N numbers on this rank after tp, S = N / shard of them its own, e bytes of the computation's
    type, w bytes of the optimizer's (4 at least), g bytes of a gradient buffer

    sharing     parameters    gathered    gradients    optimizer
    plain       w N           –           w N          2 w N      AdamW's two moments
    replicate   w N           e N         w N          2 w N
    zero        w S           e N         w N          2 w S      gradients are whole until the
                                                                  step's end, for every stage
    buffer      e N           –           g N          2 w N + w N (the wide copy, for 16 bits)

With buffers norms are wide, and are their own wide copy; g is 4 for bfloat16, else e. Torch
gathers a whole copy of the weights in the computation's type also where nothing is sharded
(replicate), and sums a step's gradients unsharded, as microbatches do not reduce: that ZeRO 2
holds less than ZeRO 1 shows between steps only. Sources: torch 2.13, fsdp/_fully_shard
(_fsdp_param_group.py, _fsdp_param.py), pipelining/stage.py; runtime ``precision``, ``buffers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from serried.plan.reference.training import Training


@dataclass(frozen=True)
class Weight:
    """Holds the shape of one weight on a rank, cut by tp."""

    shape: tuple[int, ...]

    @property
    def is_norm(self) -> bool:
        """Whether it scales a norm; those are wide where gradients stand in buffers."""
        return len(self.shape) == 1

    @property
    def num_elements(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    def shard(self, ranks: int) -> int:
        """Returns the numbers of one rank's shard, with what pads it: rows are cut as a whole."""
        return -(-self.shape[0] // ranks) * prod(self.shape[1:])


def layer_weights(training: Training) -> tuple[Weight, ...]:
    """Returns the weights of one layer: wq wk wv wo, w1 w3 w2 and two norms."""
    model, tp = training.model, training.tp
    h, ffn, shared = model.hidden, model.ffn // tp, model.shared // tp
    attention = ((h // tp, h), (shared, h), (shared, h), (h, h // tp))
    feed_forward = ((ffn, h), (ffn, h), (h, ffn))
    return tuple(Weight(shape) for shape in (*attention, *feed_forward, (h,), (h,)))


def end_weights(training: Training, stage: int) -> tuple[Weight, ...]:
    """Returns what a stage has besides layers: the embedding, the last norm and the output."""
    model = training.model
    table = Weight((model.vocabulary // training.tp, model.hidden))
    is_last = stage == training.num_stages - 1
    # Tied weights are one table only where one stage has both ends; else each end has its own copy.
    is_shared = model.tie and training.num_stages == 1
    first = (table,) if stage == 0 else ()
    last = (Weight((model.hidden,)), *(() if is_shared else (table,))) if is_last else ()
    return first + last


def groups_of(training: Training, stage: int) -> list[tuple[Weight, ...]]:
    """Returns a stage's weights, each layer's together and then the rest."""
    layer = layer_weights(training)
    return [*([layer] * training.layers[stage]), end_weights(training, stage)]


@dataclass(frozen=True)
class States:
    """Holds bytes of a stage's weights on one rank, at their fullest in a step."""

    parameters: int
    gathered: int
    """Whole copies in the computation's type, while the step computes."""
    gathered_first: int
    """Those that a backward has when it comes to the last layer: with ZeRO 3 not all."""
    gradients: int
    optimizer: int
    fresh: int
    """Gradients of one microbatch before they join the step's, where those are apart."""
    reducing: int
    """Gradients and their copies while data parallel ranks sum them."""
    kept: int
    """Gradients between that and the optimizer's end."""
    learning: int
    """What the optimizer makes besides, and lets go of."""


def states_of(training: Training, stage: int) -> States:
    """Returns what the weights of ``stage`` take on each rank that holds it."""
    groups = groups_of(training, stage)
    weights = [weight for group in groups for weight in group]
    if training.sharing == "buffer":
        return _in_buffers(training, weights)
    wide, number = training.wide_bytes, training.element_bytes
    whole = sum(weight.num_elements for weight in weights)
    is_wrapped = training.sharing != "plain"
    ranks = training.shard if training.sharing == "zero" else 1
    own = sum(weight.shard(ranks) for weight in weights)
    largest = max(sum(weight.num_elements for weight in group) for group in groups)
    largest_own = max(weight.shard(ranks) for weight in weights)
    # A wrapper's gradients join the step's sum when it is through: all of a stage, or a layer's.
    unit = whole if training.sharing == "replicate" else largest
    is_apart = is_wrapped and number < wide
    first = whole if training.zero < 3 else _first_gathered(groups)
    return States(
        parameters=wide * own,
        gathered=number * whole if is_wrapped else 0,
        gathered_first=number * first if is_wrapped else 0,
        gradients=wide * whole,
        optimizer=2 * wide * own,
        fresh=number * unit if is_apart else 0,
        reducing=_reducing(training, whole, largest),
        kept=wide * own,
        learning=_learning(wide, largest_own),
    )


def _first_gathered(groups: list[tuple[Weight, ...]]) -> int:
    """Returns what is no layer's, the last layer, and the one before it, fetched ahead."""
    return sum(weight.num_elements for group in groups[-3:] for weight in group)


def _reducing(training: Training, whole: int, largest: int) -> int:
    wide = training.wide_bytes
    if training.sharing == "plain":
        return wide * whole
    if training.sharing == "replicate":  # what is summed, the sum, and that divided by one
        return 3 * wide * whole
    return wide * (whole + 2 * largest)


def _learning(wide: int, largest: int) -> int:
    """Returns the most that the norm, or AdamW weight by weight, makes of one weight at a time.

    The norm squares each gradient in float64 (a copy where it is not, and the squares); AdamW
    takes the root of its second moment and divides it, while it still has the weight before's.
    """
    return max((1 if wide == 8 else 2) * 8, 3 * wide) * largest


def _in_buffers(training: Training, weights: list[Weight]) -> States:
    wide, number = training.wide_bytes, training.element_bytes
    norms = sum(weight.num_elements for weight in weights if weight.is_norm)
    rest = sum(weight.num_elements for weight in weights if not weight.is_norm)
    of_gradient = 4 if training.dtype == "bfloat16" else number
    gradients = wide * norms + of_gradient * rest
    copies = wide * rest if number < wide else 0
    widened = wide * rest if of_gradient < wide else 0  # float16's, for the optimizer
    largest = max(weight.num_elements for weight in weights)
    return States(
        parameters=wide * norms + number * rest,
        gathered=0,
        gathered_first=0,
        gradients=gradients,
        optimizer=2 * wide * (norms + rest) + copies,
        fresh=0,
        reducing=gradients,
        kept=gradients,
        learning=max(_learning(wide, largest), widened + 3 * wide * largest),
    )
