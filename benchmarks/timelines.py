"""Emulated runs beside the simulator: how long a step really takes, and torch's own classes.

    python benchmarks/timelines.py [milliseconds of a forward]

Four gloo ranks, eight microbatches, every schedule whose microbatches flow one way. Processes,
groups and messages are real; a forward takes a fixed time, each half of a backward as long.
Beside each stands the makespan that the simulator says, with messages that cost nothing, and,
where torch has a class for the schedule, what that class reaches with the same stages.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from serried.pipeline import Costs, simulate
from serried.runtime.job.pipeline import RUNNABLE
from serried.runtime.job.report import Place
from serried.runtime.job.settings import Emulated, ModelSizes, TrainSettings
from serried.runtime.run.local_ranks import run_locally
from serried.runtime.run.worker import Rendezvous
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge

RANKS, MICROBATCHES, STEPS = 4, 8, 6
GOAL = 0.15
TORCH = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "interleaved-1f1b": "ScheduleInterleaved1F1B",
    "looped-bfs": "ScheduleLoopedBFS",
    "interleaved-zb": "ScheduleInterleavedZeroBubble",
    "zbv": "ScheduleZBVZeroBubble",
    "dualpipev": "ScheduleDualPipeV",
}


@dataclass(frozen=True)
class Timeline:
    """Is one rank's run: by our runtime, or by torch's class of that name."""

    settings: TrainSettings
    torch_class: str = ""

    @property
    def world_size(self) -> int:
        return self.settings.world_size

    @property
    def timeout_s(self) -> float:
        return self.settings.timeout_s

    def run_rank(self, place: Place, rendezvous: Rendezvous, tell: Callable[[Any], None]) -> None:
        from datetime import timedelta

        import torch
        import torch.distributed as dist

        from serried.runtime.recording.training import TrainingRecorder
        from serried.runtime.run.loop import RankTrainer
        from serried.runtime.training.mesh import make_train_mesh

        timeout = timedelta(seconds=self.settings.timeout_s)
        dist.init_process_group(
            "gloo",
            rank=place.rank,
            world_size=place.world_size,
            timeout=timeout,
            **rendezvous,
        )
        mesh = make_train_mesh(self.settings, torch.device("cpu"), timeout)
        recorder = TrainingRecorder.of(self.settings, run="bench", rank=place.rank, backend="gloo")
        trainer = RankTrainer(self.settings, mesh, recorder)
        if self.torch_class:
            trainer.runtime = stock(self.torch_class, trainer)
        trainer.run("bench", lambda told: None)
        recorder.close()
        dist.barrier()


def stock(name: str, trainer: Any) -> Any:
    """Returns torch's own schedule over the trainer's stages."""
    from torch.distributed.pipelining import schedules

    made = getattr(schedules, name)
    single = issubclass(made, schedules.PipelineScheduleSingle)
    stages = trainer.stages[0] if single else trainer.stages
    loss = trainer.stages[-1].loss
    return made(stages, MICROBATCHES, loss_fn=loss, scale_grads=False)


def step_ms(settings: TrainSettings, torch_class: str = "") -> float:
    """Returns how long a recorded step's window is, the median in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = replace(settings, trace_dir=Path(folder))
        list(run_locally(Timeline(recorded, torch_class)))
        stats = measure(merge([Path(folder)]))
    return median(step.window_ns for step in stats.steps) / 1e6


def main() -> None:
    forward_ms = float(sys.argv[1]) if len(sys.argv) > 1 else 12.0
    costs = Costs(forward_ms, forward_ms, forward_ms)
    print(f"{RANKS} gloo ranks, {MICROBATCHES} microbatches, F = I = W = {forward_ms:g} ms a chunk")
    print(f"{'schedule':<18}{'simulated':>10}{'measured':>10}{'over':>7}{'torch':>10}{'over':>7}")
    worst = 0.0
    for name in RUNNABLE:
        settings = TrainSettings(
            world_size=RANKS,
            pp=RANKS,
            schedule=name,
            microbatches=MICROBATCHES,
            global_batch_size=MICROBATCHES,
            model=ModelSizes(layers=16, hidden=16, heads=2, seq_len=8),
            emulated=Emulated(forward_ms, 2 * forward_ms),
            steps=STEPS,
            device="cpu",
            timeout_s=120,
        )
        planned = float(simulate(settings.pipeline, costs).makespan)
        measured = step_ms(settings)
        worst = max(worst, measured / planned - 1)
        line = f"{name:<18}{planned:>8.0f}ms{measured:>8.0f}ms{measured / planned - 1:>7.1%}"
        if name in TORCH:
            peer = step_ms(settings, TORCH[name])
            line += f"{peer:>8.0f}ms{peer / planned - 1:>7.1%}"
        print(line, flush=True)
    print(f"largest excess {worst:.1%}; the goal is {GOAL:.0%} on two quiet cores")


if __name__ == "__main__":
    main()
