"""Constants fitted to a few recorded runs, and the steps of other runs that they then predict.

    python benchmarks/calibrated_runs.py

Ten trainings of one and two ranks with real compute are recorded on this machine: widths, layers,
sequences, microbatches and layouts differ. Constants are fitted to five of them, as ``serried plan
--calibrate`` does, and predict the other five. Peers: the constants that serried ships for GPUs,
scaled by one factor to the same five runs, and FLOPs at the one rate that meets these. Quiet the
machine first.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path

import numpy as np

from serried.plan.calibration.calibrate import calibrate, with_strange
from serried.plan.model.flops import model_flops
from serried.plan.recorded_job import RecordedJob, recorded_job
from serried.plan.time.constants import Constants, shipped
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.run.launch import train
from serried.trace.merge.in_memory import merge

STEPS = 10
RUNS = (
    (1, 1, 128, 4, 8, 2),
    (1, 1, 128, 8, 8, 4),
    (2, 1, 128, 8, 16, 2),
    (2, 2, 128, 8, 8, 4),
    (1, 1, 256, 4, 16, 4),
    (1, 1, 256, 8, 8, 2),
    (2, 2, 256, 8, 16, 8),
    (2, 1, 256, 4, 32, 4),
    (2, 2, 192, 12, 16, 4),
    (2, 2, 128, 8, 32, 4),
)
"""Ranks, pp, hidden, layers, batch, microbatches; every second one is predicted."""


def recorded(run: Sequence[int]) -> RecordedJob:
    """Runs a training and returns it as a job with its step."""
    ranks, pp, hidden, layers, batch, microbatches = run
    settings = TrainSettings(
        ranks,
        pp=pp,
        microbatches=microbatches,
        global_batch_size=batch,
        steps=STEPS,
        model=ModelSizes(layers=layers, hidden=hidden),
    )
    with tempfile.TemporaryDirectory() as folder:
        train(replace(settings, trace_dir=Path(folder) / "run"))
        return recorded_job(merge([Path(folder) / "run"]))


def predicted(jobs: Sequence[RecordedJob], constants: Constants) -> list[float]:
    """Returns the planned seconds of each job's step."""
    columns = Jobs.of([job.request for job in jobs])
    return [float(each) for each in np.broadcast_to(step_times(columns, constants).step, len(jobs))]


def scaled(known: Sequence[float], seen: Sequence[RecordedJob]) -> float:
    """Returns the one factor that brings what is known nearest to what was seen."""
    return exp(
        statistics.fmean(log(job.step_s / each) for job, each in zip(seen, known, strict=True))
    )


def flops(job: RecordedJob) -> float:
    """Returns the FLOPs of a rank's step."""
    asked = job.request
    tokens = asked.global_batch * asked.sequence
    return model_flops(asked.model, asked.sequence, "causal") * tokens / asked.degrees.world_size


def main() -> None:
    """Prints a row for each run that is predicted, and the mean errors of all three."""
    jobs = [recorded(run) for run in RUNS]
    seen, others = jobs[::2], jobs[1::2]
    requests = [job.request for job in seen]
    found = calibrate([str(run) for run in RUNS[::2]], requests, [job.step_s for job in seen])
    plain = with_strange(shipped(), requests)
    ours = predicted(others, found.constants)
    factor = scaled(predicted(seen, plain), seen)
    gpus = [factor * each for each in predicted(others, plain)]
    rate = scaled([flops(job) for job in seen], seen)
    by_flops = [rate * flops(job) for job in others]
    print("ranks  pp  hidden  layers  batch  microbatches  measured  planned     off")
    for run, job, step in zip(RUNS[1::2], others, ours, strict=True):
        ranks, pp, hidden, layers, batch, microbatches = run
        print(
            f"{ranks:5}  {pp:2}  {hidden:6}  {layers:6}  {batch:5}  {microbatches:12}  "
            f"{job.step_s * 1e3:5.0f} ms  {step * 1e3:4.0f} ms  {step / job.step_s - 1:+6.1%}"
        )
    for name, steps in (
        ("constants of five runs", ours),
        ("those of GPUs, scaled", gpus),
        ("FLOPs at one rate", by_flops),
    ):
        off = [abs(step / job.step_s - 1) for step, job in zip(steps, others, strict=True)]
        print(f"{name:24} {statistics.fmean(off):6.1%} on average, {max(off):6.1%} at most")


if __name__ == "__main__":
    main()
