"""Which device a rank computes on, and the most memory that torch's allocator held there."""

from __future__ import annotations

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
