"""Private names of torch that the recorder's hooks use, read from torch 2.13.0.

Apart from ``torch_private``, since training refuses a torch that lacks a name it needs, while a
recorder only records less: what is missing here is None, and its hooks are left off.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

__all__ = [
    "AsyncTensor",
    "PipelineStageBase",
    "current_stream_number",
    "default_store",
    "fsdp_collectives",
    "fsdp_group",
    "functional",
    "schedules",
    "set_reducer_group",
    "when_backward_is_done",
]

schedules: ModuleType | None
PipelineStageBase: Any
try:
    from torch.distributed.pipelining import schedules
    from torch.distributed.pipelining.stage import _PipelineStageBase as PipelineStageBase

    if not hasattr(schedules, "_batch_p2p") or not hasattr(schedules, "_wait_batch_p2p"):
        schedules, PipelineStageBase = None, None
except ImportError:
    schedules, PipelineStageBase = None, None

fsdp_group: Any
"""Owner of FSDP2's methods that gather and let go the parameters of one wrapped module."""
fsdp_collectives: Any
"""Module in which they look up the function that reduces gradients."""
try:
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group as fsdp_collectives

    fsdp_group = fsdp_collectives.FSDPParamGroup
    if not hasattr(fsdp_collectives, "foreach_reduce") or not hasattr(fsdp_group, "unshard"):
        fsdp_collectives, fsdp_group = None, None
except (ImportError, AttributeError):
    fsdp_collectives, fsdp_group = None, None

functional: ModuleType | None
"""Functional collectives, which DTensor calls."""
AsyncTensor: Any
"""What they return before they are done; ``elem`` is what ``wait_tensor`` gets."""
try:
    from torch.distributed import _functional_collectives as functional
    from torch.distributed._functional_collectives import AsyncCollectiveTensor as AsyncTensor
except ImportError:
    functional, AsyncTensor = None, None

current_stream_number: Callable[[int], int] | None
"""Tells a device's current stream by its number, in 0.2 us; to get the stream takes 5."""
current_stream_number = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def default_store() -> Any:
    """Returns the store by which the job's ranks met, None where it cannot be had."""
    try:
        return dist.distributed_c10d._get_default_store()
    except (AttributeError, ValueError, RuntimeError):
        return None


def set_reducer_group(model: Any, group: dist.ProcessGroup) -> None:
    """Lets the reducer of a DDP reduce over ``group`` from now on; nothing where it cannot."""
    if hasattr(model.reducer, "_update_process_group"):
        model.reducer._update_process_group(group)


def when_backward_is_done(call: Callable[[], None]) -> bool:
    """Lets the backward that runs call ``call`` when its last gradient is there.

    What a library put off until then, DDP its waiting for all buckets, comes after ``call`` if it
    asks later. Returns False where no backward runs, or this torch has no such callbacks.
    """
    try:
        torch.autograd.Variable._execution_engine.queue_callback(call)
    except (AttributeError, RuntimeError):
        return False
    return True
