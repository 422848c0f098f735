"""What one recorded run shows of its work: seconds of a layer, of messages, of a step's ends.

    step │ fetch │ F F F B F B … one pipeline, by messages … B │ sums, optimizer │ next step
         └ around ┘└──────────────── pipeline ────────────────┘└───── around ────┘

    forward    of one layer and one sequence: the median over microbatches and replicas of a stage
               over what it holds; what the first and last stage take beyond it is kept apart
    backward   likewise; where the run has halves, the input's and the weights' each
    hop        from the end of what a computation waited for on another rank to its start
    gap        from the end of a rank's computation to the start of its next, where nothing is
               waited for
    cores      where ranks share CPU cores all of these are told as on cores of their own, by how
               many computed at once (``own_cores``)
    exchange   what a layer's microbatch waits inside its computations for tensor-parallel ranks
    sums       the sum of gradients over replicas that no computation hides, for the whole model
    around     the step's period less pipeline and sums: data, optimizer, Python

Warm-up is left out: the first complete step always, and those of the first tenth of the run
(``warm_up_steps``). Everything is a median over what remains, so that a pause of one step, or a
slow replica in one, does not move it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.errors import InputError
from serried.mesh.layers import evenly
from serried.plan.retime.own_cores import cores_of, on_own_cores, share_of_cores
from serried.trace.measure.measured_step import MeasuredStep, measured_step
from serried.trace.measure.moments import without_waits
from serried.trace.model.pairs import whole_computations
from serried.trace.model.trace import Trace

MOST_STEPS = 64
"""Steps that are looked into: medians move no more after so many."""
NO_GRADIENT = 0.1
"""A first stage's half for its input that takes less than this of the others' computes none."""
KINDS = (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)

WORK = ("forward", "input_grad", "weight_grad")
"""The fields of StageWork."""

Stages = NDArray[np.float64]
"""Seconds of each stage's microbatch; NaN where the run has no such work."""


@dataclass(frozen=True)
class StageWork:
    """Holds what a part of the model takes of a microbatch, in seconds."""

    forward: float = 0.0
    input_grad: float = 0.0
    weight_grad: float = 0.0

    def times(self, factor: float) -> StageWork:
        """Returns that of so much more of the same."""
        return StageWork(self.forward * factor, self.input_grad * factor, self.weight_grad * factor)

    def plus(self, other: StageWork) -> StageWork:
        """Returns both."""
        return StageWork(
            self.forward + other.forward,
            self.input_grad + other.input_grad,
            self.weight_grad + other.weight_grad,
        )

    @property
    def backward(self) -> float:
        """Both halves of backward."""
        return self.input_grad + self.weight_grad

    @property
    def total(self) -> float:
        """Forward and both halves of backward."""
        return self.forward + self.input_grad + self.weight_grad


@dataclass(frozen=True)
class SplitBackward:
    """Says what the halves of a backward take of a whole one, where runs showed both.

    Together they may take more than 1: the halves of torch's autograd each walk the graph. The
    first stage's input needs no gradient.
    """

    input_grad: float
    weight_grad: float
    first_input_grad: float
    first_weight_grad: float


@dataclass(frozen=True)
class ObservedRun:
    """Holds the constants of one run, all in seconds; of a rank of one replica.

    ``several`` makes one of these of several runs.
    """

    run: str
    framework: str
    compute: str
    sizes: Mapping[str, int]
    schedule: str
    chunks: int
    """Stages on each rank."""
    num_microbatches: int
    num_layers: int
    """Layers of the model; where the run does not say them, its stages."""
    sequences: int
    """Sequences of one microbatch; 1 where the run does not say them."""
    layer: StageWork
    """What one layer takes of one sequence where tp = 1."""
    fixed: StageWork
    """What a layer takes of a microbatch whatever its sequences; a single run tells none of it."""
    stage: StageWork
    """What a stage takes of a microbatch whatever it holds; a single run tells none of it."""
    first: StageWork
    """What the first stage takes of a sequence beyond its layers."""
    last: StageWork
    exchange: StageWork | None
    """What a layer waits in a microbatch for each further rank of tp, as a ring does; None where
    the run has a single one."""
    hop: float
    gap: float
    sums: float | None
    """The sum of all gradients over endlessly many replicas; None where the run has only one."""
    around: float
    """All of the step outside its pipeline, less ``sums``."""
    period: float
    """From the beginning of a step to that of the next."""
    num_steps: int
    has_halves: bool
    """Whether the run computes the two halves of backward apart."""
    says_layers: bool
    shares_cores: bool = False
    """Whether its ranks compute for real on CPUs, whose cores they share."""
    cores: float = 0.0
    """Ranks of a host that its cores let compute at once; work is then told as on a core of its
    own. 0 where ranks share no cores, or the run does not say how many there are."""
    ranks_per_host: int = 0
    halves: SplitBackward | None = None
    """The halves of a backward, where only some of several runs have them; the work of ``layer``
    and ends is then that of the whole ones."""
    share_of_tp: StageWork | None = None
    """How often its even share a layer's work takes that tensor-parallel ranks cut, where several
    runs told it: matrices are smaller, and ranks that share cores wait for one another."""

    @property
    def num_ranks(self) -> int:
        """Ranks of the run."""
        return math.prod(self.sizes.get(axis, 1) for axis in ("tp", "cp", "pp", "dp"))


def observe(trace: Trace) -> ObservedRun:
    """Returns what a run shows; see the module for how each constant is taken."""
    steps = warm_steps(trace)
    job = trace.job
    spans = trace.spans.where(np.isin(trace.spans.step, steps))
    without = without_waits(spans)
    cores = cores_of(trace)
    own = on_own_cores(trace, without, cores) if cores else without
    share = share_of_cores(without, own)
    alone, whole = (_stage_works(each) for each in (without, spans))
    told = job.work.get("layers", 0)
    num_layers, sequences = told or len(alone), job.work.get("sequences", 0) or 1
    held = np.array(evenly(num_layers, pp=len(alone)).counts, dtype=np.float64)
    tp, dp, pp = (job.sizes.get(axis, 1) for axis in ("tp", "dp", "pp"))
    # Fixed times of emulated compute have the exchanges in them, up to what these take.
    computed = whole if job.compute == "emulated" else _stage_works(own, has_tail=cores > 0)
    layer, first, last = (each.times(tp) for each in _parts(computed, held * sequences))
    window, periods = _windows(spans, steps)
    measured = [measured_step(trace, step) for step in _sample(steps)]
    hop, gap = _delays(measured)
    sums = _exposed_sums(spans, steps)
    period = float(np.median(periods)) / 1e9
    return ObservedRun(
        trace.run,
        job.framework,
        job.compute,
        dict(job.sizes),
        job.schedule,
        max(1, len(alone) // pp),
        job.num_microbatches,
        num_layers,
        sequences,
        layer,
        StageWork(),
        StageWork(),
        first.times(1 / sequences),
        last.times(1 / sequences),
        _exchange(alone, whole, held).times(share / (tp - 1)) if tp > 1 else None,
        hop,
        gap * share,
        sums * pp * tp * dp / (dp - 1) if dp > 1 else None,
        max(0.0, period - float(np.median(window)) / 1e9 - sums),
        period,
        len(steps),
        bool((spans.kind == ActionKind.W).any()),
        bool(told),
        job.compute != "emulated" and job.backend == "gloo",
        cores,
        max(len(host.ranks) for host in trace.hosts),
    )


def step_seconds(trace: Trace) -> float:
    """Returns the median seconds from the beginning of a step to that of the next, after warm-up.

    Raises InputError as ``warm_steps`` does.
    """
    steps = warm_steps(trace)
    _, periods = _windows(trace.spans.where(np.isin(trace.spans.step, steps)), steps)
    return float(np.median(periods)) / 1e9


def warm_steps(trace: Trace) -> NDArray[np.int64]:
    """Returns the steps that are looked into: all but the warm-up and the last one.

    The last has no step after it that tells when it was over. Raises InputError where fewer than
    two are left.
    """
    computed = np.isin(trace.spans.kind, sorted(COMPUTE))
    steps = np.unique(trace.spans.step[computed]).astype(np.int64)
    left = steps[max(1, len(steps) // 10) :]
    if len(left) < 3:
        raise InputError(
            "{run} has {steps} recorded steps; at least 4 are needed, of which the first and the "
            "last are left out",
            run=trace.run,
            steps=len(steps),
        )
    return left


def _sample(steps: NDArray[np.int64]) -> list[int]:
    """Returns so many of the steps, evenly taken."""
    some = steps[:-1]
    places = np.unique(np.linspace(0, len(some) - 1, min(len(some), MOST_STEPS)).astype(int))
    return [int(step) for step in some[places]]


def _usual(spans: Spans, kind: ActionKind, *, has_tail: bool) -> Stages:
    """Returns the usual seconds of each stage's work of a kind: the median, or a trimmed mean.

    Of ranks that share cores computations have a long tail, which makes up a part of each step:
    their mean counts, without the longest twentieth.
    """
    num_stages = int(spans.stage[np.isin(spans.kind, sorted(COMPUTE))].max()) + 1
    found = np.full(num_stages, np.nan)
    mine = spans.kind == kind
    taken = (spans.end_ns - spans.start_ns)[mine] / 1e9
    for stage in range(num_stages):
        here = taken[spans.stage[mine] == stage]
        if len(here):
            kept = np.sort(here)[: max(1, len(here) * 19 // 20)]
            found[stage] = kept.mean() if has_tail else np.median(here)
    return found


def _stage_works(spans: Spans, *, has_tail: bool = False) -> list[StageWork]:
    """Returns each stage's work; a whole backward is taken as two equal halves."""
    computes = whole_computations(spans)
    per_stage = {kind: _usual(computes, kind, has_tail=has_tail) for kind in KINDS}
    works = []
    for forward, whole, half, weight in zip(*(per_stage[kind] for kind in KINDS), strict=True):
        # A first stage may have whole backwards alone, for its input needs no gradient.
        if np.isfinite(half) and np.isfinite(weight):
            works.append(StageWork(float(forward), float(half), float(weight)))
        else:
            both = float(np.nan_to_num(whole)) or float(np.nansum([half, weight]))
            works.append(StageWork(float(forward), both / 2, both / 2))
    return works


def _parts(works: list[StageWork], held: Stages) -> tuple[StageWork, StageWork, StageWork]:
    """Returns the work of a layer and sequence, and what the first and the last stage add to it.

    Of three stages or more the middle ones tell what a layer takes. Of two, or one, nothing
    tells the ends from layers, and they are counted among these.
    """
    rows = np.array([(each.forward, each.input_grad, each.weight_grad) for each in works])
    if len(works) < 3:
        return StageWork(*(rows.sum(axis=0) / held.sum()).tolist()), StageWork(), StageWork()
    layer = np.median(rows[1:-1] / held[1:-1, None], axis=0)
    first, last = (np.maximum(rows[at] - layer * held[at], 0.0) for at in (0, -1))
    if rows[0][1] < NO_GRADIENT * layer[1] * held[0]:
        first[1] = rows[0][1] - layer[1] * held[0]
    return StageWork(*layer.tolist()), StageWork(*first.tolist()), StageWork(*last.tolist())


def _exchange(alone: list[StageWork], whole: list[StageWork], held: Stages) -> StageWork:
    """Returns what a layer's microbatch waits for tensor-parallel ranks, the median of stages."""
    rows = [
        [getattr(long, name) - getattr(short, name) for name in WORK]
        for short, long in zip(alone, whole, strict=True)
    ]
    return StageWork(*np.median(np.array(rows) / held[:, None], axis=0).tolist())


def _windows(spans: Spans, steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns each step's pipeline, from its first computation to its last, and its period."""
    computes = np.isin(spans.kind, sorted(COMPUTE))
    first = np.array([spans.start_ns[computes & (spans.step == step)].min() for step in steps])
    last = np.array([spans.end_ns[computes & (spans.step == step)].max() for step in steps])
    return (last - first)[:-1], np.diff(first)


def _exposed_sums(spans: Spans, steps: NDArray[np.int64]) -> float:
    """Returns the median seconds of gradient sums after a rank's last computation of a step."""
    sums = spans.kind == ActionKind.REDUCE_GRAD
    if not sums.any():
        return 0.0
    computes = np.isin(spans.kind, sorted(COMPUTE))
    taken = []
    for step in steps[:-1]:
        now = spans.step == step
        end = spans.end_ns[computes & now].max()
        late = spans.end_ns[sums & now]
        taken.append(max(0, int(late.max()) - int(end)) if len(late) else 0)
    return float(np.median(taken)) / 1e9


def _delays(measured: list[MeasuredStep]) -> tuple[float, float]:
    """Returns the seconds of a hop between ranks and of the gap between computations of one."""
    hops, gaps = [], []
    for each in measured:
        simulation = each.simulation
        start, end, source = simulation.start, simulation.end, simulation.source
        first = simulation.schedule.first
        own = np.r_[0, end[:-1]]
        own[first[:-1]] = np.iinfo(np.int64).min
        awaited = np.where(source >= 0, end[source], np.iinfo(np.int64).min)
        is_hop, is_gap = awaited > own, (own > awaited) & (own > np.iinfo(np.int64).min)
        hops.append(_middle((start - awaited)[is_hop]))
        gaps.append(_middle((start - own)[is_gap]))
    return _middle(np.array(hops)) / 1e9, _middle(np.array(gaps)) / 1e9


def _middle(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Returns the mean of the middle half: as steady as a median, and it adds up as a mean does."""
    found = np.sort(np.asarray(values, dtype=np.float64))
    found = found[np.isfinite(found)]
    if not len(found):
        return 0.0
    quarter = len(found) // 4
    return max(0.0, float(found[quarter : len(found) - quarter].mean()))
