"""One training step of one rank under a sharding: what is gathered, used, freed, reduced, and when.

    stage 3, two layers, one microbatch                        what the rank holds
    gather 0   all-gather        parameters of layer 0 whole   parts + layer 0
    forward 0  ·  free 0                                       parts
    gather 1  ·  forward 1  ·  free 1
    gather 1  ·  backward 1                                    parts + layer 1, its gradient whole
    reduce 1   reduce-scatter    its gradient, a part stays    parts + layer 1
    free 1
    gather 0  ·  backward 0  ·  reduce 0  ·  free 0            parts of all states
    step       the rank's own part                             parts, no gradients

    stage 0    gradients are all-reduced after the last microbatch, weights stay
    stage 1    gradients are reduce-scattered after the last microbatch; the step changes the
    stage 2    rank's part, and an all-gather hands new parameters out; stage 2 reduce-scatters
               in every microbatch, since its gradients are parts
    kept       a gather for forward serves backward too (SHARD_GRAD_OP, reshard_after_forward off)
    hybrid     parts of gradients are all-reduced across copies after the last microbatch
    hpZ        backward gathers over the near ranks alone

With P bytes of parameters over d ranks and one microbatch one rank sends, whatever the algorithm,
2 (d-1)/d P at stages 0 to 2 and 3 (d-1)/d P at stage 3 (ZeRO, arXiv 1910.02054, section 7); hpZ
replaces one of these by (h-1)/h P within a node (ZeRO++, arXiv 2306.10209), and hybrid shards over
s of d ranks send 3 (s-1)/s P + 2 (d/s-1)/(d/s) P/s (MiCS, arXiv 2205.00119).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from serried.errors import InputError
from serried.limits import STEP_EVENTS
from serried.mesh import Layout
from serried.mesh.sharding import Cut, StateCuts
from serried.plan.model_states import HeldStates, model_states
from serried.plan.precision import Precision

What = Literal["gather", "forward", "backward", "free", "reduce", "join", "step"]

ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE = "all-gather", "reduce-scatter", "all-reduce"


@dataclass(frozen=True)
class Moved:
    """Describes a collective over one group, whose buffer is counted as nccl-tests counts it.

    >>> Moved("all-gather", ("dp",), 4, 1000).sent_bytes
    Fraction(750, 1)
    """

    collective: str
    over: tuple[str, ...]
    """The group kinds of its ranks; several where a group is a product of them."""
    ranks: int
    size_bytes: int
    """What all ranks have in the end, or put in: the whole tensor."""

    @property
    def sent_bytes(self) -> Fraction:
        """The least that one rank must send: (n-1)/n of the tensor, twice for an all-reduce."""
        ways = 2 if self.collective == ALL_REDUCE else 1
        return Fraction(ways * (self.ranks - 1) * self.size_bytes, self.ranks)


@dataclass(frozen=True)
class StepEvent:
    """Names one thing that happens, with what it moves and what the rank holds after it."""

    what: What
    layer: int
    """The layer it is about; -1 for the step, and for what all layers take part in."""
    microbatch: int
    """-1 for what is done once in a step."""
    held: HeldStates
    moved: Moved | None = None


@dataclass(frozen=True)
class ShardedStep:
    """Holds the events of one step in order; ``begin`` is what the rank holds before them."""

    cuts: StateCuts
    begin: HeldStates
    events: tuple[StepEvent, ...]

    @property
    def moves(self) -> tuple[Moved, ...]:
        """The collectives of the step, in order."""
        return tuple(event.moved for event in self.events if event.moved)

    @property
    def sent_bytes(self) -> Fraction:
        """What one rank sends in the step."""
        return sum((moved.sent_bytes for moved in self.moves), Fraction(0))

    @property
    def peak(self) -> StepEvent:
        """The first event after which the rank holds most."""
        return max(self.events, key=lambda event: event.held.total)


def sharded_step(
    cuts: StateCuts,
    layers: Sequence[int],
    precision: Precision,
    *,
    microbatches: int = 1,
    levels: Sequence[Cut] = (),
    prefetches: bool = False,
) -> ShardedStep:
    """Returns one step over ``layers``, each with its number of parameters.

    ``levels`` are the groups that a gather goes through one after the other (MiCS), inner ones
    last; ``prefetches`` gathers the next layer before the one before it is computed, as FSDP2
    does. Raises InputError for no layers, no microbatches, or more events than can be shown.

    >>> from serried.plan.precision import RECIPES
    >>> cuts = StateCuts("dense", *[Cut(("dp",), 4)] * 4)
    >>> step = sharded_step(cuts, [100, 100], RECIPES["fp16-adam"])
    >>> [event.what for event in step.events][:3], step.sent_bytes
    (['gather', 'forward', 'free'], Fraction(900, 1))
    """
    _check(layers, microbatches)
    walk = _Walk(cuts, tuple(layers), precision, tuple(levels), prefetches)
    events = tuple(walk.events(microbatches))
    return ShardedStep(cuts, walk.begin, events)


def _check(layers: Sequence[int], microbatches: int) -> None:
    if not layers or min(layers) < 1 or microbatches < 1:
        raise InputError(
            "a step has at least one layer of at least one parameter and one microbatch; it got "
            "{layers} layers and {microbatches} microbatches",
            layers=len(layers),
            microbatches=microbatches,
        )
    if len(layers) * microbatches > STEP_EVENTS.most:
        raise InputError(
            "a step of {layers} layers and {microbatches} microbatches is too long to show event "
            "by event; layers x microbatches is at most {most}",
            layers=len(layers),
            microbatches=microbatches,
            most=STEP_EVENTS.most,
        )


def pipelined_step(
    cuts: StateCuts, units: Sequence[int], precision: Precision, *, microbatches: int = 1
) -> ShardedStep:
    """Returns one step as torch's pipelining runs FSDP2's ``units``, the root first of them.

        gather every unit │ F0 │ B0 │ F1 │ B1 │ … │ reduce every unit │ step
                            └ free    └ free         a forward lets go where weights are not kept,
                                                     and its backward gathers again

    All gradients are reduced after the last backward; between a backward and the next forward
    weights stay. Source: torch 2.13.0, distributed/pipelining/schedules.py (UNSHARD, REDUCE_GRAD)
    and stage.py (set_reshard_after_backward). Raises InputError as ``sharded_step`` does.
    """
    _check(units, microbatches)
    walk = _Walk(cuts, tuple(units), precision, (), prefetches=False)
    events = tuple(walk.pipelined(microbatches))
    return ShardedStep(cuts, walk.begin, events)


def step_of(
    layout: Layout,
    parameters: int,
    precision: Precision,
    *,
    layers: int,
    microbatches: int,
) -> tuple[ShardedStep, tuple[int, ...]]:
    """Returns a step over a rank's dense weights, cut into equal layers, and these layers.

    ``layers`` are those of the whole model, of which a pipeline's stage has its part. Raises
    InputError as ``model_states`` and ``sharded_step`` do.

    >>> from serried.frameworks import Sizes, layout
    >>> from serried.plan.precision import RECIPES
    >>> megatron = layout("megatron", Sizes(16, pp=2, zero=3))
    >>> step_of(megatron, 1000, RECIPES["fp16-adam"], layers=6, microbatches=1)[1]
    (167, 167, 166)
    """
    states = model_states(layout, parameters, precision)
    own, sharding = states.each[0].num_parameters, states.sharding
    count = max(1, layers // layout.sizes.get("pp", 1))
    sizes = tuple(own // count + (layer < own % count) for layer in range(count))
    levels = tuple(_level(layout, kind) for kind in sharding.levels)
    found = sharded_step(sharding.dense, sizes, precision, microbatches=microbatches, levels=levels)
    return found, sizes


def _level(layout: Layout, kind: str) -> Cut:
    groups = layout.kind(kind).of(0, layout.meshes)
    return Cut((kind,), len(groups[0]) if groups else 1)


class _Walk:
    """Walks through a step and keeps count of what the rank holds."""

    def __init__(
        self,
        cuts: StateCuts,
        layers: tuple[int, ...],
        precision: Precision,
        levels: tuple[Cut, ...],
        prefetches: bool,
    ) -> None:
        self.cuts, self.layers, self.precision = cuts, layers, precision
        self.levels, self.prefetches = levels, prefetches
        self.is_cut = not cuts.parameters.is_whole
        self.gathered: set[int] = set()
        self.gradients = [0] * len(layers)
        """Bytes of each layer's gradient that the rank holds."""
        self.own = HeldStates(
            parameters=self._parts(cuts.parameters, precision.parameter_bytes),
            optimizer=self._parts(cuts.optimizer, precision.optimizer_bytes),
            near=0 if cuts.near.is_whole else self._parts(cuts.near, precision.computed_bytes),
        )
        self.begin = self.held()

    def _parts(self, cut: Cut, size: int) -> int:
        return sum(size * -(-count // cut.ranks) for count in self.layers)

    def held(self) -> HeldStates:
        """Returns what the rank holds now."""
        whole = sum(self.precision.computed_bytes * self.layers[layer] for layer in self.gathered)
        return replace(self.own, gathered=whole, gradients=sum(self.gradients))

    def events(self, microbatches: int) -> Iterator[StepEvent]:
        """Yields every event of the step."""
        last = microbatches - 1
        order = range(len(self.layers))
        for microbatch in range(microbatches):
            yield from self._pass("forward", order, microbatch, is_last=False)
            backward = [*reversed(order)]
            yield from self._pass("backward", backward, microbatch, is_last=microbatch == last)
        self.gradients = [0] * len(self.layers)
        yield StepEvent("step", -1, -1, self.held())
        yield from self._hand_out()

    def pipelined(self, microbatches: int) -> Iterator[StepEvent]:
        """Yields every event of a step that torch's pipelining runs."""
        units = range(len(self.layers))
        for unit in units:
            yield from self._gather(unit, -1, "forward")
        for microbatch in range(microbatches):
            yield StepEvent("forward", -1, microbatch, self.held())
            if not self.cuts.is_kept:
                yield from self._free(microbatch)
            # A backward begins with what the root holds, then comes to the last layer.
            for unit in (0, *reversed(units[1:])):
                yield from self._gather(unit, microbatch, "backward")
            for unit in units:
                self.gradients[unit] = self.precision.gradient_bytes * self.layers[unit]
            yield StepEvent("backward", -1, microbatch, self.held())
        for unit in units:
            yield from self._reduce(unit, -1, is_last=True)
        yield from self._free(-1)
        self.gradients = [0] * len(self.layers)
        yield StepEvent("step", -1, -1, self.held())

    def _free(self, microbatch: int) -> Iterator[StepEvent]:
        for unit in sorted(self.gathered):
            self.gathered.discard(unit)
            yield StepEvent("free", unit, microbatch, self.held())

    def _pass(
        self,
        what: Literal["forward", "backward"],
        order: Sequence[int],
        microbatch: int,
        *,
        is_last: bool,
    ) -> Iterator[StepEvent]:
        for place, layer in enumerate(order):
            yield from self._gather(layer, microbatch, what)
            if self.prefetches and place + 1 < len(order):
                yield from self._gather(order[place + 1], microbatch, what)
            if what == "backward":
                self._whole_gradient(layer)
            yield StepEvent(what, layer, microbatch, self.held())
            if what == "backward":
                yield from self._reduce(layer, microbatch, is_last)
            if layer in self.gathered and (what == "backward" or not self.cuts.is_kept):
                self.gathered.discard(layer)
                yield StepEvent("free", layer, microbatch, self.held())

    def _gather(self, layer: int, microbatch: int, what: str) -> Iterator[StepEvent]:
        """Yields the all-gather of a layer's parameters, level by level, where it is not there."""
        if not self.is_cut or layer in self.gathered:
            return
        size = self.precision.computed_bytes * self.layers[layer]
        is_near = what == "backward" and not self.cuts.near.is_whole
        cut = self.cuts.near if is_near else self.cuts.parameters
        levels = () if is_near else self.levels
        self.gathered.add(layer)
        below = 1
        # Each level leaves a rank with as many parts more as its group has ranks: with nodes of 8
        # and shards over two nodes, an eighth is gathered across nodes, and all within the node.
        for level in levels or (cut,):
            below *= level.ranks
            moved = Moved(ALL_GATHER, level.over, level.ranks, size * below // cut.ranks)
            yield StepEvent("gather", layer, microbatch, self.held(), moved)

    def _whole_gradient(self, layer: int) -> None:
        """Counts the gradient that a backward makes, beside the part that is there already."""
        whole = self.precision.gradient_bytes * self.layers[layer]
        part = self.gradients[layer] if not self.cuts.gradients.is_whole else 0
        self.gradients[layer] = whole + part

    def _reduce(self, layer: int, microbatch: int, is_last: bool) -> Iterator[StepEvent]:
        """Yields how a layer's gradient is summed: in every microbatch where parts are kept."""
        cuts, data = self.cuts, self.cuts.data
        size = self.precision.reduced_bytes * self.layers[layer]
        cut = cuts.gradients if not cuts.gradients.is_whole else cuts.optimizer
        if not cuts.gradients.is_whole:
            part = -(-self.layers[layer] // cuts.gradients.ranks)
            self.gradients[layer] = self.precision.gradient_bytes * part
        elif not is_last:
            return  # whole gradients of microbatches add up on the rank itself
        if cut.is_whole:
            if data.ranks > 1:
                moved = Moved(ALL_REDUCE, data.over, data.ranks, size)
                yield StepEvent("reduce", layer, microbatch, self.held(), moved)
            return
        moved = Moved(REDUCE_SCATTER, cut.over, cut.ranks, size)
        yield StepEvent("reduce", layer, microbatch, self.held(), moved)
        copies = data.ranks // cut.ranks
        if is_last and copies > 1:
            over = (cuts.across,) if cuts.across else ()
            moved = Moved(ALL_REDUCE, over, copies, -(-size // cut.ranks))
            yield StepEvent("join", layer, microbatch, self.held(), moved)

    def _hand_out(self) -> Iterator[StepEvent]:
        """Yields the all-gather of new parameters where each rank changed a part of what it has."""
        cuts = self.cuts
        ranks = cuts.optimizer.ranks // cuts.parameters.ranks
        if ranks == 1:
            return
        over = tuple(kind for kind in cuts.optimizer.over if kind not in cuts.parameters.over)
        size = self._parts(cuts.parameters, self.precision.computed_bytes)
        moved = Moved(ALL_GATHER, over or cuts.optimizer.over, ranks, size)
        yield StepEvent("gather", -1, -1, self.held(), moved)
