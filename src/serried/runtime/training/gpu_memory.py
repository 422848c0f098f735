"""The most memory that each rank's GPU held over a run's steps, as torch's allocator counts it."""

from __future__ import annotations

import torch
import torch.distributed as dist

from serried.runtime.job.report import MemoryPeaks


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
