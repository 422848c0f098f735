"""One step of a recorded run's job as it would be otherwise: other stages, schedule, microbatches.

    observed run ──> seconds of a layer and sequence, of a hop, of what surrounds a pipeline
    target       ──> layers of each stage, sequences of a microbatch, the schedule's lists
                     └── simulated, message by message ──> step = pipeline + sums + around
                         on the cores that ranks share, where they compute for real on CPUs

The model and the global batch stay as they were: with twice the replicas or twice the microbatches
a microbatch has half the sequences. What one run cannot show is assumed, and each such assumption
is told beside the answer. Trace-driven re-timing of this kind is Lumos' (arXiv 2504.09307), which
reports a mean error of 3.3 % for it on up to 512 H100.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.mesh.layers import evenly
from serried.pipeline.costs import Costs, Links
from serried.pipeline.registry import Request, generate
from serried.pipeline.schedule import Schedule
from serried.pipeline.shared_cores import SharedCores
from serried.pipeline.simulate import Simulation, simulate
from serried.plan.retime.observed import WORK, ObservedRun, StageWork

EMULATED_ERROR, REAL_ERROR = 0.05, 0.25
"""How far 90 % of re-timed steps lie from measured ones at most, with emulated and real compute.

Measured by ``benchmarks/retimed_steps.py`` on two cores: emulated 2.1 and 2.4 % in the mean, 37 of
40 in their interval; real from four runs 6, 9 and 14 % in three series over layouts of 2 and 4
ranks, 51 of 53 within 25 %: the same run took up to 13 % longer another time.
"""
SHARED_ERROR = 0.6
"""The same for another number of ranks on shared cores, where the run does not say how many."""
_HALVES = [int(ActionKind.I), int(ActionKind.W)]
UNKNOWN_ERROR, UNKNOWN_OF_REAL = 0.05, 0.15
"""What each assumption adds to it. With real compute halves of a backward, and small microbatches,
took up to a third more than from a run without them."""


@dataclass(frozen=True)
class Target:
    """Holds what the step is asked to be like; None keeps what the run had.

    >>> Target(pp=4, schedule="zbv").pp
    4
    """

    pp: int | None = None
    dp: int | None = None
    tp: int | None = None
    schedule: str | None = None
    microbatches: int | None = None
    chunks: int | None = None
    group: int | None = None
    compute_speed: float = 1.0
    """How many times as fast computations are: another GPU's efficient FLOP/s over this one's."""
    hop_s: float | None = None
    """Seconds that a message takes from rank to rank, over another network."""

    def __post_init__(self) -> None:
        for name in ("pp", "dp", "tp", "microbatches", "chunks", "group"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise InputError("{axis}={size}; a size is at least 1", axis=name, size=size)
        if not 0 < self.compute_speed < 1e6:
            raise InputError(
                "computations {speed} times as fast cannot be; give a factor such as 1.5",
                speed=self.compute_speed,
            )
        if self.hop_s is not None and not 0 <= self.hop_s < 1e6:
            raise InputError(
                "a message of {hop} us cannot be; give a time of at least 0 us, such as 15",
                hop=self.hop_s * 1e6,
            )


@dataclass(frozen=True, eq=False)
class RetimedStep:
    """Holds the step as it would be, in seconds, and what that rests on."""

    observed: ObservedRun
    schedule: Schedule
    sizes: dict[str, int]
    """The degrees that change: pp, dp and tp."""
    num_microbatches: int
    sequences: int
    """Sequences of one microbatch."""
    layers: tuple[int, ...]
    """Layers of each stage."""
    simulation: Simulation
    sums: float
    assumptions: tuple[Sentence, ...]
    compute_speed: float = 1.0
    hop_s: float | None = None
    """As they were asked for; None is the run's own."""

    @property
    def pipeline(self) -> float:
        """From the first computation to the last."""
        return float(self.simulation.makespan)

    @property
    def around(self) -> float:
        """What lies around the pipeline, as the run had it."""
        return self.observed.around

    @property
    def period(self) -> float:
        """The step: pipeline, exposed sums, and what lies around."""
        return self.pipeline + self.sums + self.around

    @cached_property
    def computing(self) -> float:
        """What a rank computes of it, the mean of all."""
        taken = self.simulation.end - self.simulation.start
        ticks = self.simulation.ticks.per_unit or 1
        return float(taken.sum() / self.schedule.num_ranks) / float(ticks)

    @property
    def waiting(self) -> float:
        """What a rank waits for others within the pipeline, the mean of all."""
        return max(0.0, self.pipeline - self.computing)

    @property
    def error(self) -> float:
        """The share by which 90 % of such answers are off at most."""
        observed = self.observed
        if observed.compute == "emulated":
            return EMULATED_ERROR + UNKNOWN_ERROR * len(self.assumptions)
        if _changes_sharing(observed, self.sizes):
            return SHARED_ERROR + UNKNOWN_ERROR * len(self.assumptions)
        each = UNKNOWN_OF_REAL if observed.shares_cores else UNKNOWN_ERROR
        return REAL_ERROR + each * len(self.assumptions)

    @property
    def interval(self) -> tuple[float, float]:
        """The seconds between which the step lies in nine of ten such answers."""
        return self.period * (1 - self.error), self.period * (1 + self.error)

    @property
    def stage_ms(self) -> tuple[float, float]:
        """A stage's forward and backward in ms, exchanges apart, as emulated compute takes them."""
        observed, layers = self.observed, self.observed.num_layers / len(self.layers)
        row = layers * (_row(observed.layer) * self.sequences + _row(observed.fixed))
        row = row * _share_of_tp(observed, self.sizes["tp"]) / self.sizes["tp"]
        row = (row + _row(observed.stage)) / self.compute_speed
        return float(row[0] * 1e3), float((row[1] + row[2]) * 1e3)


def retime(observed: ObservedRun, target: Target) -> RetimedStep:
    """Returns the step that ``target`` asks for; raises InputError for one that cannot be."""
    had = observed.sizes
    sizes = {axis: getattr(target, axis) or had.get(axis, 1) for axis in ("pp", "dp", "tp")}
    microbatches = target.microbatches or observed.num_microbatches
    sequences = _sequences(observed, sizes["dp"], microbatches)
    name = target.schedule or observed.schedule
    if target.schedule is None and sizes["pp"] == 1:
        name = "1f1b"  # what has several stages a rank needs several ranks
    chunks = target.chunks
    if chunks is None and name == observed.schedule and observed.chunks > 1:
        chunks = observed.chunks
    asked = Request(sizes["pp"], microbatches, chunks, target.group)
    schedule = generate(name, asked)
    num_stages = schedule.placement.num_stages
    if observed.says_layers and num_stages > observed.num_layers:
        raise InputError(
            "{layers} layers cannot fill the {stages} stages that {schedule} has on pp={pp}; take "
            "at most {layers} stages",
            layers=observed.num_layers,
            stages=num_stages,
            schedule=name,
            pp=sizes["pp"],
        )
    costs, layers = _costs(observed, target, sizes, sequences, num_stages)
    return RetimedStep(
        observed,
        schedule,
        sizes,
        microbatches,
        sequences,
        layers,
        simulate(schedule, costs, _cores(observed, sizes)),
        exposed_sums(observed, sizes),
        tuple(_assumptions(observed, sizes, schedule, target, sequences)),
        target.compute_speed,
        target.hop_s,
    )


def _sequences(observed: ObservedRun, dp: int, microbatches: int) -> int:
    """Returns the sequences of a microbatch that leave the global batch as it was."""
    batch = observed.sequences * observed.num_microbatches * observed.sizes.get("dp", 1)
    if batch % (dp * microbatches):
        fitting = [n for n in range(1, batch // dp + 1) if batch % (dp * n) == 0]
        raise InputError(
            "dp={dp} x {microbatches} microbatches do not divide the run's global batch of {batch} "
            "sequences; numbers of microbatches that do: {known}",
            dp=dp,
            microbatches=microbatches,
            batch=batch,
            known=listed(fitting),
        )
    return batch // (dp * microbatches)


def _costs(
    observed: ObservedRun, target: Target, sizes: dict[str, int], sequences: int, num_stages: int
) -> tuple[Costs, tuple[int, ...]]:
    """Returns the seconds of each stage's work, and how many layers each has."""
    shared = 1 / sizes["tp"] / target.compute_speed
    if observed.says_layers:
        layers = evenly(observed.num_layers, pp=num_stages).counts
        held = np.array(layers, dtype=np.float64)
    else:  # without their number layers are cut as finely as stages need it
        layers = ()
        held = np.full(num_stages, observed.num_layers / num_stages)
    rows = np.outer(held, _row(observed.layer) * sequences + _row(observed.fixed))
    rows *= _share_of_tp(observed, sizes["tp"])
    rows += _row(observed.stage) * sizes["tp"]  # which tp does not cut
    rows[0] += _row(observed.first) * sequences
    rows[-1] += _row(observed.last) * sequences
    # A first stage that computes no half for its input has less than its layers, never below 0.
    rows = np.maximum(rows * shared, 0.0)
    if observed.exchange is not None:
        exchanged = np.outer(held, _row(observed.exchange)) * (sizes["tp"] - 1)
        # Emulated compute exchanges within its fixed time; what is real exchanges besides.
        is_emulated = observed.compute == "emulated"
        rows = np.maximum(rows, exchanged) if is_emulated else rows + exchanged
    whole = rows[:, 1] + rows[:, 2] + observed.gap
    if observed.halves is not None:
        rows[:, 1:] = _halves(observed, rows[:, 1] + rows[:, 2])
    # A rank's gap follows each of its computations; a hop has it in it once already.
    rows += observed.gap
    hop = target.hop_s if target.hop_s is not None else max(0.0, observed.hop - observed.gap)
    costs = Costs(
        forward=rows[:, 0].tolist(),
        input_grad=rows[:, 1].tolist(),
        weight_grad=rows[:, 2].tolist(),
        backward=whole.tolist(),
        links=Links(latency=float(hop)),
    )
    return costs, layers or tuple([0] * num_stages)


def _share_of_tp(observed: ObservedRun, tp: int) -> NDArray[np.float64]:
    """Returns how often its even share each kind of work takes, shape (3,)."""
    return np.ones(len(WORK)) if tp == 1 or not observed.share_of_tp else _row(observed.share_of_tp)


def _halves(observed: ObservedRun, whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the halves of each stage's whole backward, shape (stages, 2)."""
    halves = observed.halves
    if halves is None:
        raise ValueError(observed)
    shares = np.tile([halves.input_grad, halves.weight_grad], (len(whole), 1))
    shares[0] = halves.first_input_grad, halves.first_weight_grad
    return np.asarray(whole[:, None] * shares)


def _cores(observed: ObservedRun, sizes: dict[str, int]) -> SharedCores | None:
    """Returns the cores that the ranks share, on as many hosts as they then fill.

    Each rank of a pipeline stands for all its replicas and tensor-parallel ranks, which compute at
    the same time as it. Hosts are taken together: stages are spread over them as evenly as ranks.
    """
    if not observed.cores:
        return None
    ranks = _num_ranks(observed, sizes)
    hosts = -(-ranks // max(1, observed.ranks_per_host))
    return SharedCores(observed.cores * hosts, ranks // sizes["pp"])


def _row(work: StageWork) -> NDArray[np.float64]:
    return np.array([getattr(work, name) for name in WORK], dtype=np.float64)


def exposed_sums(observed: ObservedRun, sizes: dict[str, int]) -> float:
    """Returns the exposed sums: a ring's share of bytes, of the weights that a rank then has."""
    replicas = sizes["dp"]
    if observed.sums is None:
        return 0.0
    return observed.sums / (sizes["pp"] * sizes["tp"]) * (replicas - 1) / replicas


def _assumptions(
    observed: ObservedRun,
    sizes: dict[str, int],
    schedule: Schedule,
    target: Target,
    sequences: int,
) -> list[Sentence]:
    """Returns what the run does not show and the answer takes for granted."""
    told = []
    is_split = bool(np.isin(schedule.kind, _HALVES).any())
    if is_split and not observed.has_halves:
        told.append(said("the run has whole backwards; each half is taken to be half of one"))
    if observed.shares_cores:
        told += _of_real_compute(observed, sequences, is_split=is_split)
    if sizes["dp"] > 1 and observed.sums is None:
        told.append(said("the run has no replicas; the sum of gradients over them is left out"))
    if sizes["tp"] > 1 and observed.exchange is None:
        told.append(
            said(
                "the run has no tensor-parallel ranks; what tp={tp} exchange is left out",
                tp=sizes["tp"],
            )
        )
    if not observed.says_layers:
        told.append(
            said("the run does not say its layers; its stages are taken to be cut anywhere")
        )
    if sizes["pp"] > 1 and observed.hop == 0 and target.hop_s is None:
        told.append(said("the run has no messages between stages; they are taken to take no time"))
    if _changes_sharing(observed, sizes):
        told.append(
            said(
                "each of {ranks} ranks is taken to compute as fast as one of {had}; ranks that "
                "share cores do not",
                ranks=_num_ranks(observed, sizes),
                had=observed.num_ranks,
            )
        )
    if target.compute_speed != 1.0:
        told.append(
            said(
                "all computations are taken to be {speed} times as fast", speed=target.compute_speed
            )
        )
    return told


def _of_real_compute(
    observed: ObservedRun, sequences: int, *, is_split: bool
) -> Iterator[Sentence]:
    """Yields what one run with real compute does not show, and several do."""
    if observed.has_halves and not is_split and observed.halves is None:
        yield said("the run has backwards in halves; a whole one is taken to be both")
    tells_parts = observed.fixed.total + observed.stage.total > 0
    if sequences != observed.sequences and not tells_parts:
        yield said(
            "a microbatch is taken to take as long as it has sequences; a run with another number "
            "of microbatches tells what it takes besides"
        )


def _num_ranks(observed: ObservedRun, sizes: dict[str, int]) -> int:
    return math.prod(sizes.values()) * observed.sizes.get("cp", 1)


def _changes_sharing(observed: ObservedRun, sizes: dict[str, int]) -> bool:
    """Tells whether other ranks would share cores, of which the run does not say how many."""
    is_told = observed.cores > 0
    return (
        observed.shares_cores and not is_told and _num_ranks(observed, sizes) != observed.num_ranks
    )
