"""Tuning: a few short runs show what the work takes, the rest is planned, the best are run.

    candidates ──> 2 to 5 calibrating runs ──> constants ──> every candidate's step, planned
                                                              └─> the best few, run for real
                                                                  planned beside measured

NeMo's and DeepSpeed's tuners run every candidate; here a run is spent only where planning says that
it may be the best. Runs are those of ``serried train``: real groups, real messages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from serried.action import ActionKind
from serried.errors import InputError
from serried.plan.retime.observed import ObservedRun, observe
from serried.plan.retime.retimed import RetimedStep, Target, retime
from serried.plan.retime.several import together
from serried.runtime.job.settings import TrainSettings
from serried.runtime.run.launch import train
from serried.runtime.tune.candidates import Candidate
from serried.trace.merge.in_memory import merge

LEAST_STEPS = 4
"""The first step and the last are left out, and two more are needed."""


@dataclass(frozen=True)
class RunBegun:
    """Tells that a run begins: which of how many, and whether it only calibrates."""

    candidate: Candidate
    number: int
    total: int
    is_calibrating: bool


@dataclass(frozen=True)
class TunedLayout:
    """Holds one candidate: its planned step and, where it was run, the measured one."""

    candidate: Candidate
    planned: RetimedStep
    measured: ObservedRun | None = None
    is_calibrating: bool = False
    """Whether its run is one that the plan was made from."""

    @property
    def error(self) -> float | None:
        """The planned step over the measured one, less 1; None where it was not run."""
        return self.planned.period / self.measured.period - 1 if self.measured else None


@dataclass(frozen=True)
class Tuning:
    """Holds every candidate, the quickest planned step first, and what the plan rests on."""

    layouts: tuple[TunedLayout, ...]
    constants: ObservedRun

    @property
    def run(self) -> tuple[TunedLayout, ...]:
        """Those that were run and not calibrated from, the quickest measured step first."""
        found = [each for each in self.layouts if each.measured and not each.is_calibrating]
        return tuple(sorted(found, key=lambda each: each.measured.period if each.measured else 0))

    @property
    def best(self) -> TunedLayout:
        """The quickest of all that were run."""
        measured = [each for each in self.layouts if each.measured]
        return min(measured, key=lambda each: each.measured.period if each.measured else 0)

    @property
    def mean_error(self) -> float:
        """The mean of how far planned steps are from measured ones, calibrating runs left out."""
        errors = [abs(each.error) for each in self.run if each.error is not None]
        return sum(errors) / len(errors) if errors else 0.0


def tune(
    found: Sequence[Candidate],
    *,
    most_runs: int = 5,
    steps: int = 8,
    folder: Path | None = None,
    tell: Callable[[RunBegun], None] = lambda begun: None,
) -> Tuning:
    """Plans all candidates from calibrating runs and runs the best of them.

    Recordings are kept in ``folder``, where one is given. Raises InputError for fewer steps or
    runs than tell anything, and SerriedError where a run fails.
    """
    if steps < LEAST_STEPS or most_runs < 1:
        raise InputError(
            "{steps} steps of {runs} runs tell too little; give at least {least} steps and 1 run",
            steps=steps,
            runs=most_runs,
            least=LEAST_STEPS,
        )
    with tempfile.TemporaryDirectory(prefix="serried-tune-") as own:
        kept = folder or Path(own)
        chosen = calibrating(found)
        total = len(chosen) + min(most_runs, len(found) - len(chosen))
        seen: dict[str, ObservedRun] = {}
        for number, candidate in enumerate(chosen, 1):
            tell(RunBegun(candidate, number, total, is_calibrating=True))
            seen[candidate.name] = _measured(candidate.settings, steps, kept / f"run-{number}")
        constants = together(list(seen.values()))
        planned = sorted(
            (TunedLayout(each, _planned(constants, each.settings)) for each in found),
            key=lambda each: each.planned.period,
        )
        rest = [each for each in planned if each.candidate.name not in seen][:most_runs]
        for number, each in enumerate(rest, 1 + len(chosen)):
            tell(RunBegun(each.candidate, number, total, is_calibrating=False))
            run = _measured(each.candidate.settings, steps, kept / f"run-{number}")
            seen[each.candidate.name] = run
    names = {each.name for each in chosen}
    layouts = (
        replace(
            each,
            measured=seen.get(each.candidate.name),
            is_calibrating=each.candidate.name in names,
        )
        for each in planned
    )
    return Tuning(tuple(layouts), constants)


def calibrating(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Returns the few candidates whose runs together show every constant.

    One with stages and, where ranks allow it, replicas; one with another size of microbatch; one
    with tensor-parallel ranks; one with replicas where the first has none; one with backwards in
    halves, which take more than a whole one where stages really compute.
    """
    plain = [each for each in found if each.settings.tp == 1] or list(found)
    staged = [each for each in plain if each.settings.pp > 1 and each.settings.dp > 1] or [
        each for each in plain if each.settings.pp > 1
    ]
    chosen = [_middle(staged or plain)]
    size = chosen[0].settings.microbatch_size
    others = [each for each in staged or plain if each.settings.microbatch_size != size]
    split = [each for each in found if each.settings.tp > 1]
    has_replicas = any(each.settings.dp > 1 for each in chosen)
    copied = [] if has_replicas else [each for each in plain if each.settings.dp > 1]
    halved = [] if chosen[0].settings.emulated else [each for each in plain if _has_halves(each)]
    chosen += [_middle(each) for each in (others, split, copied, halved) if each]
    return tuple({each.name: each for each in chosen}.values())


def _has_halves(candidate: Candidate) -> bool:
    """Tells whether its schedule computes the halves of a backward apart."""
    return bool((candidate.settings.pipeline.kind == ActionKind.W).any())


def _middle(found: Sequence[Candidate]) -> Candidate:
    """Returns one of the plainest schedule whose number of microbatches is a middle one."""
    plain = [each for each in found if each.settings.pipeline.name == "1f1b"] or list(found)
    ordered = sorted(plain, key=lambda each: each.settings.microbatches)
    return ordered[len(ordered) // 2]


def _planned(constants: ObservedRun, settings: TrainSettings) -> RetimedStep:
    target = Target(
        pp=settings.pp,
        dp=settings.dp,
        tp=settings.tp,
        schedule=settings.pipeline.name,
        microbatches=settings.microbatches,
    )
    return retime(constants, target)


def _measured(settings: TrainSettings, steps: int, folder: Path) -> ObservedRun:
    train(replace(settings, steps=steps, trace_dir=folder))
    return observe(merge([folder]))
