"""Every private name of torch that serried uses, checked against torch 2.13.0.

A recorder does without what a torch has moved: such a name is None here, and its hooks are left
off. Training needs its names, and is refused where one is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from serried.errors import EnvironmentProblem

CHECKED_VERSION = "2.13.0"

__all__ = [
    "CHECKED_VERSION",
    "FORWARD_ONLY",
    "RESHARD",
    "UNSHARD",
    "AsyncTensor",
    "PipelineStageBase",
    "TorchAction",
    "TorchRuntime",
    "current_stream_number",
    "default_store",
    "fsdp_collectives",
    "fsdp_group",
    "functional",
    "group_by_name",
    "groups_here",
    "loader_iterator",
    "replicate",
    "schedules",
    "set_reducer_group",
    "storage_of",
    "when_backward_is_done",
]

# ------------------------------------------------------------------------------- training

_moved: ImportError | None = None
try:
    # Data parallelism on the FSDP2 machinery (DDP refuses DTensors).
    from torch.distributed._composable.replicate_with_fsdp import replicate
    from torch.distributed.pipelining.schedules import FORWARD, RECV_F, RESHARD, SEND_F, UNSHARD
    from torch.distributed.pipelining.schedules import _Action as TorchAction
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime as TorchRuntime

    FORWARD_ONLY = (FORWARD, SEND_F, RECV_F)
except ImportError as error:
    _moved = error

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Raises EnvironmentProblem for a name of training that this torch does not have."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise EnvironmentProblem(
            "torch {found} moved parts that training needs; install the version serried was "
            "checked with: pip install 'torch=={checked}'",
            found=torch.__version__,
            checked=CHECKED_VERSION,
        ) from _moved


# ------------------------------------------------------------------------------- recording

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

loader_iterator: Any
"""The class of what goes over a DataLoader, whose ``__next__`` gives every batch."""
loader_iterator = getattr(torch.utils.data.dataloader, "_BaseDataLoaderIter", None)

current_stream_number: Callable[[int], int] | None
"""Tells a device's current stream by its number, in 0.2 us; to get the stream takes 5."""
current_stream_number = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def default_store() -> Any:
    """Returns the store by which the job's ranks met, None where it cannot be had."""
    try:
        return dist.distributed_c10d._get_default_store()
    except (AttributeError, ValueError, RuntimeError):
        return None


def groups_here() -> list[Any]:
    """Returns the process groups that this process is a member of; none where torch hides them."""
    try:
        return list(dist.distributed_c10d._world.pg_map) if dist.is_initialized() else []
    except (AttributeError, RuntimeError):  # changed while it was gone through
        return []


def group_by_name(name: str) -> Any:
    """Returns the process group of a name, by which functional collectives know it; or None."""
    resolve = getattr(dist.distributed_c10d, "_resolve_process_group", None)
    try:
        return resolve(name) if resolve else None
    except (KeyError, ValueError, RuntimeError):
        return None


def storage_of(tensor: Any) -> int:
    """Returns what tells one storage from another, of the tensor or of what it stands for."""
    place: int = getattr(tensor, "elem", tensor).untyped_storage()._cdata
    return place


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
