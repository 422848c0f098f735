"""The layouts that a job could have on so many ranks: degrees, schedules, microbatches.

    8 ranks, 16 layers, 32 sequences a step
      pp 1, 2, 4, 8  x  tp 1, 2, … where heads allow  x  schedules  x  microbatches
      └── what the settings of a run refuse is no candidate

The model, the global batch and all other settings stay. Emulated compute stands for a model: the
times that were typed are those of a stage of the layout that was typed, and a stage of another
layout takes what falls to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from serried.errors import InputError
from serried.frameworks.framework import divisors
from serried.pipeline.registry import known
from serried.runtime.job.settings import Emulated, TrainSettings

SCHEDULES = ("1f1b", "interleaved-1f1b", "gpipe", "zb-h1", "zb-h2", "zbv", "dualpipev")
"""The schedules that are tried where none is asked for."""
MOST_MICROBATCHES = 32


@dataclass(frozen=True)
class Candidate:
    """Holds the settings of one layout, under a name that a table can show."""

    settings: TrainSettings

    @property
    def name(self) -> str:
        """What tells it from the others.

        >>> Candidate(TrainSettings(4, pp=2, microbatches=8)).name
        'tp 1, pp 2, dp 2, 1f1b, 8 microbatches'
        """
        its = self.settings
        schedule = f"{its.pipeline.name}, " if its.pp > 1 else ""
        count = f"{its.microbatches} microbatch{'' if its.microbatches == 1 else 'es'}"
        return f"tp {its.tp}, pp {its.pp}, dp {its.dp}, {schedule}{count}"


def candidates(
    base: TrainSettings, schedules: tuple[str, ...] = SCHEDULES
) -> tuple[Candidate, ...]:
    """Returns every layout of the base's ranks that its model and batch allow.

    Raises InputError where there is none, and for a schedule that is not known.
    """
    for name in schedules:
        known(name)
    found = tuple(
        Candidate(settings)
        for tp in divisors(base.world_size)
        for pp in divisors(base.world_size // tp)
        for settings in _of_degrees(base, tp, pp, schedules)
    )
    if not found:
        raise InputError(
            "no layout of {world} ranks fits {layers} layers, {heads} heads and a global batch of "
            "{batch}; give other sizes",
            world=base.world_size,
            layers=base.model.layers,
            heads=base.model.heads,
            batch=base.global_batch_size,
        )
    return found


def _of_degrees(
    base: TrainSettings, tp: int, pp: int, schedules: tuple[str, ...]
) -> Iterator[TrainSettings]:
    if base.world_size % (tp * pp * base.cp):
        return
    dp = base.world_size // (tp * pp * base.cp)
    if base.global_batch_size % dp:
        return
    counts = [n for n in divisors(base.global_batch_size // dp) if n <= MOST_MICROBATCHES]
    for schedule in schedules if pp > 1 else ("1f1b",):
        for microbatches in counts:
            # Fewer microbatches than stages leave most of a pipeline idle in every schedule.
            if microbatches < pp:
                continue
            try:
                made = replace(
                    base,
                    tp=tp,
                    pp=pp,
                    schedule=schedule,
                    microbatches=microbatches,
                    chunks=None,
                    group=None,
                )
                yield replace(made, emulated=_emulated(base, made))
            except InputError:  # a size that this schedule or model does not have
                continue


def _emulated(base: TrainSettings, made: TrainSettings) -> Emulated | None:
    """Returns the fixed times of a stage of ``made``: its share of the base's model."""
    if base.emulated is None:
        return None
    held = base.num_stages * base.tp / (made.num_stages * made.tp)
    factor = held * made.microbatch_size / base.microbatch_size
    return Emulated(base.emulated.forward_ms * factor, base.emulated.backward_ms * factor)
