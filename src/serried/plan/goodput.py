"""Goodput: what part of a job's time becomes training that lasts, when its GPUs fail.

    ├── work ──┤save├── work ──┤save├── work ─ ✕ ├─ restart ─┤── work ──┤save├
                                    └── redone ──┘            └ the same work again

Failures strike at random and independently of what was before (a Poisson process), in work, in
saving and in restarting alike. With M the mean time between failures of the job, a segment of work
t and its checkpoint c takes on average, everything counted, with restarts of r (Daly 2006, "A
higher order estimate of the optimum checkpoint interval for restart dumps", equation 13)

    E = M e^(r/M) (e^((t + c)/M) - 1)

    useful        t / E
    saving        c / E
    redone        (M (e^((t + c)/M) - 1) - t - c) / E      and w for each failure, see ``write_s``
    restarting    what is left

and t / E is greatest at t = M (1 + W(-e^(-c/M - 1))), with W the principal branch of Lambert's
function: close to Young's sqrt(2 c M) while c is far below M.

Where a failed node goes to repair and s nodes stand by, the job waits only while more than s are
out. With a the nodes in repair on average, that is Erlang's loss formula of s + 1 places, whatever
the distribution of the repair's time:

    waiting       B(s + 1, a),    B(0, a) = 1,    B(n, a) = a B(n-1, a) / (n + a B(n-1, a))

A job of steps (``JobGoodput``) saves after a whole number of them:

    step 8.2 s, best interval 792 s  ──> a checkpoint every 97 steps ──> shares of time, by cause
    20,000 steps                     ──> 1.9 days without failures, 1.94 with them
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, exp, expm1, inf, log, sqrt

from serried.errors import InputError

MOST_SPARES = 4096
"""Spare nodes that are tried at most."""
LEAST_GOODPUT = 1e-6
"""Below this share of useful time a job is said not to end."""


@dataclass(frozen=True)
class FailingJob:
    """Holds what is known of a job's failures and of what they cost; times are in seconds.

    >>> job = FailingJob(16384, gpu_mtbf_s=50_000 * 3600, checkpoint_s=30, restart_s=600)
    >>> round(job.mtbf_s / 3600, 2), round(best_interval(job))
    (3.05, 792)

    Raises InputError for times below 0 and for what never fails or cannot be saved.
    """

    num_gpus: int
    gpu_mtbf_s: float
    """Mean time between failures of the job that one GPU with its part of host and network has."""
    checkpoint_s: float
    """How long training stands still for a checkpoint."""
    restart_s: float
    """From a failure to the first step of new work: noticing, replacing, loading."""
    write_s: float = 0.0
    """How long a checkpoint is written on while training goes on; it counts when it is over."""
    gpus_per_node: int = 8
    spare_nodes: int = 0
    repair_s: float = 0.0
    """How long each failure's node is away; 0 where nodes can be used again at once."""

    def __post_init__(self) -> None:
        for name in ("num_gpus", "gpu_mtbf_s", "gpus_per_node"):
            if not getattr(self, name) > 0:
                raise InputError("{name}={value}; it is above 0", name=name, value=_of(self, name))
        for name in ("checkpoint_s", "restart_s", "write_s", "repair_s", "spare_nodes"):
            if not 0 <= getattr(self, name) < inf:
                raise InputError(
                    "{name}={value}; it is at least 0", name=name, value=_of(self, name)
                )

    @property
    def mtbf_s(self) -> float:
        """The mean time between failures of the whole job: any GPU's failure stops it.

        On RSC-1 6.5 of 1,000 nodes of 8 GPUs failed a day, which makes 1.8 h on 16,384 GPUs and
        0.23 h on 131,072 (arXiv 2410.21680, section III).

        >>> gpu_mtbf_s = 8 * 1000 / 6.5 * 86400
        >>> jobs = [FailingJob(n, gpu_mtbf_s, 60, 600) for n in (16384, 131072)]
        >>> [round(job.mtbf_s / 3600, 2) for job in jobs]
        [1.8, 0.23]
        """
        return self.gpu_mtbf_s / self.num_gpus


@dataclass(frozen=True)
class Goodput:
    """Holds into what parts the time of a job goes; they sum to 1.

    >>> told = goodput(FailingJob(1024, 50_000 * 3600, checkpoint_s=30, restart_s=600), 3600)
    >>> round(told.useful, 4), round(told.saving + told.redone + told.restarting, 4)
    (0.9782, 0.0218)
    """

    interval_s: float
    """Work between two checkpoints."""
    useful: float
    saving: float
    """Training stands still for checkpoints."""
    redone: float
    """Work that a failure took back, and checkpoints that it cut short."""
    restarting: float
    waiting: float
    """No node is left to run on."""
    failures_per_day: float

    @property
    def lost(self) -> float:
        """All that is not useful."""
        return 1 - self.useful

    def wall_s(self, work_s: float) -> float:
        """Returns how long so much work takes with failures; infinity where it never ends."""
        return work_s / self.useful if self.useful > LEAST_GOODPUT else inf


@dataclass(frozen=True)
class SpareNodes:
    """Holds how many spare nodes are worth having, and what useful share of all GPUs they leave."""

    count: int
    goodput: Goodput
    of_booked: float
    """Useful GPU-time of the GPU-time that is booked, spares counted."""


def best_interval(job: FailingJob) -> float:
    """Returns the seconds of work between checkpoints with which most time is useful.

    A checkpoint that costs nothing is best taken without end, so it is written on at least.

    >>> round(best_interval(FailingJob(1, 6000, checkpoint_s=10, restart_s=600)))
    340
    """
    least = max(job.write_s, 1e-3)
    if job.checkpoint_s == 0:
        return least
    mean = job.mtbf_s
    return max(least, mean * (1 + _lambert(-exp(-job.checkpoint_s / mean - 1))))


def goodput(job: FailingJob, interval_s: float | None = None) -> Goodput:
    """Returns into what the job's time goes with so much work between checkpoints; None: the best.

    Raises InputError for an interval in which no checkpoint can be written.
    """
    work = best_interval(job) if interval_s is None else interval_s
    if not max(job.write_s, 0) <= work or work <= 0:
        raise InputError(
            "{interval} s between checkpoints are too few; one is written for {write} s",
            interval=work,
            write=job.write_s,
        )
    mean, saved = job.mtbf_s, job.checkpoint_s
    days = 86400 / mean
    if (work + saved + job.restart_s) / mean > 500:  # nothing gets through; exp would overflow
        return Goodput(work, 0.0, 0.0, 1.0, 0.0, 0.0, days)
    failures = expm1((work + saved) / mean)  # of each segment, before it is through
    redone = mean * failures - work - saved + failures * job.write_s
    restarting = mean * failures * expm1(job.restart_s / mean)
    whole = work + saved + redone + restarting
    waiting = _blocked(job.spare_nodes + 1, job.repair_s / mean)
    running = (1 - waiting) / whole
    useful, saving, lost, restarted = (part * running for part in (work, saved, redone, restarting))
    return Goodput(work, useful, saving, lost, restarted, waiting, days * (1 - waiting))


def best_spares(job: FailingJob) -> SpareNodes:
    """Returns the spare nodes with which most of the booked GPU-time is useful.

    >>> job = FailingJob(16384, 50_000 * 3600, 30, 600, repair_s=2 * 86400)
    >>> best_spares(job).count
    28
    """
    told: list[SpareNodes] = []
    for count in range(MOST_SPARES + 1):
        found = goodput(replace(job, spare_nodes=count))
        booked = job.num_gpus + count * job.gpus_per_node
        told.append(SpareNodes(count, found, found.useful * job.num_gpus / booked))
        # The share waited for falls ever more slowly: once more nodes cost more, they always do.
        if count and told[-1].of_booked < told[-2].of_booked:
            break
    return max(told, key=lambda each: each.of_booked)


def _blocked(places: int, load: float) -> float:
    """Returns Erlang's B: how often all of so many places are taken."""
    share = 1.0
    for place in range(1, places + 1):
        share = load * share / (place + load * share)
    return share


def _lambert(value: float) -> float:
    """Returns the principal branch of Lambert's function for -1/e <= value < 0, by Halley's steps.

    >>> round(_lambert(-0.2), 6)
    -0.259171
    """
    # Near the branch point the series in sqrt(2 (e x + 1)) starts well, elsewhere logarithms do.
    root = sqrt(max(0.0, 2 * (exp(1) * value + 1)))
    guess = -1 + root - root**2 / 3 if value < -0.1 else log(1 + value)
    for _ in range(60):
        grown = guess * exp(guess)
        error = grown - value
        slope = exp(guess) * (guess + 1)
        if slope == 0:
            break
        step = error / (slope - (guess + 2) * error / (2 * guess + 2))
        guess -= step
        if abs(step) < 1e-15:
            break
    return guess


def _of(job: FailingJob, name: str) -> object:
    return getattr(job, name)


@dataclass(frozen=True)
class JobGoodput:
    """Holds what failures do to a job of so many steps; times are in seconds.

    >>> told = JobGoodput(FailingJob(16384, 50_000 * 3600, 30, 600), step_s=8.2, steps=20_000)
    >>> told.interval_steps, round(told.goodput.useful, 3), round(told.wall_s / told.work_s, 3)
    (97, 0.879, 1.138)
    """

    job: FailingJob
    step_s: float
    steps: int | None = None
    """Steps of the whole job; None where nobody says."""

    @cached_property
    def interval_steps(self) -> int:
        """Steps between checkpoints: the better of the two whole numbers beside the best."""
        best = best_interval(self.job) / self.step_s
        least = max(1, ceil(self.job.write_s / self.step_s))
        tried = {max(least, int(best)), max(least, ceil(best))}
        return max(tried, key=lambda steps: goodput(self.job, steps * self.step_s).useful)

    @cached_property
    def goodput(self) -> Goodput:
        """Into what the job's time goes, with a checkpoint after each ``interval_steps``."""
        return goodput(self.job, self.interval_steps * self.step_s)

    @property
    def work_s(self) -> float | None:
        """How long the job takes where nothing fails and nothing is saved."""
        return None if self.steps is None else self.steps * self.step_s

    @property
    def wall_s(self) -> float | None:
        """How long it takes with failures; infinity where it never ends."""
        return None if self.work_s is None else self.goodput.wall_s(self.work_s)

    @cached_property
    def spares(self) -> SpareNodes | None:
        """Spare nodes worth having; None where failed nodes are used again at once."""
        return best_spares(self.job) if self.job.repair_s > 0 else None
