"""What a run of one's own model says of itself: in its checkpoints, and in its recording."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path

import torch.distributed as dist
from torch import nn

from serried.pipeline import Schedule
from serried.runtime.checkpoint.checkpoint import Description
from serried.runtime.recording.training import TrainingRecorder, run_before
from serried.runtime.training.data import SampleOrder
from serried.runtime.training.mesh import TrainMesh
from serried.trace.model.record import TracedJob


def described(
    model: nn.Module, order: SampleOrder | None, groups: TrainMesh, schedule: Schedule
) -> Description:
    """Returns what checkpoints say of the run: one of another model or text does not fit it."""
    shapes = [(name, tuple(each.shape)) for name, each in model.named_parameters()]
    text = {} if order is None else {"length": order.length, "seq_len": order.seq_len}
    layout = groups.layout
    return Description(
        step=0,
        updates=0,
        samples=0,
        loss_scale=None,
        model={
            "parameters": sum(each.numel() for each in model.parameters()),
            "weights": hashlib.blake2b(repr(shapes).encode(), digest_size=8).hexdigest(),
        },
        text=text | ({} if order is None else {"seed": order.seed}),
        layout={
            "world_size": layout.world_size,
            "order": layout.order,
            **layout.sizes,
            "schedule": schedule.name,
        },
        files={},
    )


def recorder_into(
    trace_dir: str | Path | None,
    steps: tuple[int, int] | None,
    groups: TrainMesh,
    schedule: Schedule,
    work: Mapping[str, int],
) -> TrainingRecorder:
    """Returns what records the run into ``trace_dir``; None records nothing.

    ``work`` is what a microbatch is, as the recording's header says it.

    A run that goes on records into a folder in it, ``restart-1`` and so on, as under torchrun.
    """
    if trace_dir is None:
        return TrainingRecorder()
    first, layout = Path(trace_dir), groups.layout
    chosen = [run_before(first) or secrets.token_hex(4), str(_free_folder(first))]
    dist.broadcast_object_list(chosen, src=0)
    run, folder = chosen
    job = TracedJob(
        framework=layout.framework,
        world_size=layout.world_size,
        sizes=dict(layout.sizes),
        order=layout.order,
        schedule=schedule.name,
        num_microbatches=schedule.num_microbatches,
        backend=dist.get_backend(),
        work=work,
    )
    return TrainingRecorder.into(Path(folder), job, run=run, rank=groups.rank, steps=steps)


def _free_folder(first: Path) -> Path:
    """Returns ``first``, or the next folder in it that holds no recording yet."""
    later = (first / f"restart-{number}" for number in count(1))
    return next(
        each for each in chain([first], later) if next(each.glob("rank-*.spans"), None) is None
    )
