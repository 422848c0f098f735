"""Steps timed again from recorded runs, beside real runs of the same layouts.

    python benchmarks/retimed_steps.py [real]

One run (4 ranks, pp 2, 1F1B) is recorded; from it alone serried plans layouts and schedules that
are then run on this machine. Peer: the recorded step scaled by 1F1B's bubble, which is what people
do on paper: step x work of a rank x (1 + (p - 1) / m). With ``real`` stages compute, on the cores
that ranks share, and the constants come from four runs: one does not tell a microbatch's fixed time
from its sequences', nor the halves of a backward from a whole one. Quiet the machine first: on two
cores four ranks leave nothing for others.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from serried.errors import InputError
from serried.plan.retime.observed import ObservedRun, observe
from serried.plan.retime.retimed import Target, retime
from serried.plan.retime.several import together
from serried.runtime.job.settings import Emulated, ModelSizes, TrainSettings
from serried.runtime.run.launch import train
from serried.trace.merge.in_memory import merge

STEPS = 10
BASE = TrainSettings(
    4,
    pp=2,
    microbatches=8,
    global_batch_size=32,
    steps=STEPS,
    model=ModelSizes(layers=16),
    emulated=Emulated(20.0, 40.0),
)
REAL = replace(BASE, emulated=None, model=ModelSizes(layers=8, hidden=128))
TARGETS = (
    *((4, 2, schedule, 8) for schedule in ("gpipe", "zb-h1", "zbv", "interleaved-1f1b")),
    *((4, 4, schedule, 8) for schedule in ("1f1b", "gpipe", "zb-h1", "zb-h2", "zbv")),
    *((4, 4, schedule, 16) for schedule in ("1f1b", "interleaved-1f1b", "zbv", "dualpipev")),
    *((4, 2, "1f1b", microbatches) for microbatches in (2, 4, 16)),
    (2, 2, "1f1b", 4),
    (2, 1, "1f1b", 8),
    (4, 1, "1f1b", 4),
    (2, 2, "zbv", 16),
)
"""Ranks, pp, schedule, microbatches."""


BESIDE = ((4, 2, "1f1b", 2), (4, 4, "1f1b", 8), (4, 4, "zbv", 8))
"""The further runs that constants of real compute come from."""


def recorded(settings: TrainSettings) -> ObservedRun:
    """Runs a training and returns what it shows."""
    with tempfile.TemporaryDirectory() as folder:
        train(replace(settings, trace_dir=Path(folder) / "run"))
        return observe(merge([Path(folder) / "run"]))


def changed(base: TrainSettings, ranks: int, pp: int, schedule: str, count: int) -> TrainSettings:
    """Returns the settings of another layout of the same model and batch."""
    made = replace(
        base, world_size=ranks, pp=pp, schedule=schedule, microbatches=count, chunks=None
    )
    if base.emulated is None:
        return made
    share = base.num_stages / made.num_stages * made.microbatch_size / base.microbatch_size
    times = base.emulated.forward_ms * share, base.emulated.backward_ms * share
    return replace(made, emulated=Emulated(*times))


def by_hand(run: ObservedRun, ranks: int, pp: int, count: int) -> float:
    """Returns the recorded step scaled by the closed form of 1F1B."""
    had, m = run.sizes["pp"], run.num_microbatches
    replicas = run.sizes["dp"] / (ranks // pp)
    work = replicas * had / pp
    return run.period * work * (1 + (pp - 1) / count) / (1 + (had - 1) / m)


def main() -> None:
    """Prints a row for each layout, and the mean errors of both."""
    base = REAL if "real" in sys.argv[1:] else BASE
    seen = [recorded(base)]
    if base.emulated is None:
        seen += [recorded(changed(base, *other)) for other in BESIDE]
    constants, inside, errors, peer = together(seen), 0, list[float](), list[float]()
    print("ranks  pp  schedule          microbatches  planned  measured    off  by hand")
    for ranks, pp, schedule, count in TARGETS:
        if base.emulated is None and (ranks, pp, schedule, count) in BESIDE:
            continue
        try:
            target = Target(pp=pp, dp=ranks // pp, schedule=schedule, microbatches=count)
            planned = retime(constants, target)
            measured = recorded(changed(base, ranks, pp, schedule, count)).period
        except InputError as error:
            print(f"{ranks:5}  {pp:2}  {schedule:16}  {count:12}  {error}")
            continue
        low, high = planned.interval
        inside += low <= measured <= high
        errors.append(planned.period / measured - 1)
        peer.append(by_hand(seen[0], ranks, pp, count) / measured - 1)
        print(
            f"{ranks:5}  {pp:2}  {schedule:16}  {count:12}  {planned.period * 1e3:4.0f} ms  "
            f"{measured * 1e3:5.0f} ms  {errors[-1]:+6.1%}  {peer[-1]:+7.1%}"
        )
    ours, theirs = (statistics.fmean(map(abs, each)) for each in (errors, peer))
    print(
        f"{len(errors)} layouts: off by {ours:.1%} on average, {max(map(abs, errors)):.1%} at "
        f"most; {inside} inside their interval; by hand {theirs:.1%}, {theirs / ours:.1f} times "
        "as much"
    )


if __name__ == "__main__":
    main()
