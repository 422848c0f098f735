"""Which device a rank computes on, by which backend, and the most memory that was held there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from serried.errors import EnvironmentProblem
from serried.runtime.job.report import MemoryPeaks, Place


def device_of(asked: str, place: Place) -> torch.device:
    """Returns a GPU of its own for each local rank where there are as many, else the CPU.

    ``asked`` is ``auto``, ``cpu`` or ``cuda``; raises EnvironmentProblem where ``cuda`` is
    asked for and a local rank would go without.
    """
    gpus = torch.cuda.device_count() if asked != "cpu" else 0
    if gpus < place.local_world_size:
        if asked == "cuda":
            raise EnvironmentProblem(
                "device cuda needs a GPU for each of the {ranks} local ranks; {gpus} were found; "
                "take fewer ranks or device cpu",
                ranks=place.local_world_size,
                gpus=gpus,
            )
        return torch.device("cpu")
    device = torch.device("cuda", place.local_rank)
    torch.cuda.set_device(device)
    return device


def join_world(
    device: torch.device, place: Place, timeout: timedelta, rendezvous: Mapping[str, Any]
) -> str:
    """Joins the group of all ranks, by NCCL on GPUs and gloo on CPUs; returns which of them.

    ``rendezvous`` is how torch.distributed finds the others: a store, or nothing for env://.
    """
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(
        backend,
        rank=place.rank,
        world_size=place.world_size,
        timeout=timeout,
        device_id=device if device.type == "cuda" else None,
        **rendezvous,
    )
    return backend


def begin_counting(device: torch.device) -> None:
    """Forgets what ``device`` held at most until now; of a CPU nothing is counted."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def gathered_peaks(device: torch.device, step: int) -> MemoryPeaks | None:
    """Returns every rank's peak after ``step`` steps, None on CPUs; all ranks call it together."""
    if device.type != "cuda":
        return None
    peak = torch.tensor([torch.cuda.max_memory_allocated(device)], device=device)
    peaks = [torch.empty_like(peak) for _ in range(dist.get_world_size())]
    dist.all_gather(peaks, peak)
    return MemoryPeaks(step, tuple(int(each) for each in peaks))
