"""Hooks around what data parallel ranks exchange: DDP's buckets and FSDP2's shards.

    DDP         a communication hook that does what its own does      REDUCE_GRAD    per bucket
    FSDP2       unshard and the wait for it; reduce-scatter           ALL_GATHER, REDUCE_SCATTER

A span of FSDP2 is the time for which the caller was held up, on a GPU the one its stream was; a
bucket's is from its launch to its end, on the stream of the messages, mostly behind the backward.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from serried.runtime.hooks_exchange import Exchanges
from serried.runtime.hooks_private import fsdp_collectives, fsdp_group
from serried.runtime.patches import Patch
from serried.span import ActionKind

if TYPE_CHECKING:
    from serried.runtime.recorder import StepRecorder

_log = logging.getLogger("serried")
_HOOKED = "_serried_recorder"


def is_sharded(root: nn.Module) -> bool:
    """Tells whether FSDP2 shards a module of ``root``."""
    return any(isinstance(each, dist.fsdp.FSDPModule) for each in root.modules())


def hook_ddp(root: nn.Module, recorder: StepRecorder) -> None:
    """Times the buckets of every DDP in ``root``, but for those with a hook of their own.

    A hook cannot be taken out of DDP again; after the recording it only passes buckets on.
    """
    for module in root.modules():
        if not isinstance(module, DistributedDataParallel) or hasattr(module, _HOOKED):
            continue
        state = _Buckets(module.process_group, recorder)
        try:
            module.register_comm_hook(state, _reduced)
        except RuntimeError as error:
            _log.info("DDP's buckets are not recorded: %s", error)
        setattr(module, _HOOKED, True)


class _Buckets:
    """Is what DDP's hook gets with each bucket."""

    def __init__(self, group: dist.ProcessGroup, recorder: StepRecorder) -> None:
        self.group, self.recorder = group, recorder


def _reduced(state: _Buckets, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket as DDP does without a hook, and keeps how long that took."""
    recorder = state.recorder
    if not recorder.is_on:
        return allreduce_hook(state.group, bucket)
    start = recorder.mark()

    def done(future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        recorder.sink.later(ActionKind.REDUCE_GRAD, start, recorder.mark(), 0)
        return future.value()

    return allreduce_hook(state.group, bucket).then(done)


# DDP looks at the types of its hook, which stand above as text.
_reduced.__annotations__ = {
    "bucket": dist.GradBucket,  # type: ignore[attr-defined]
    "return": torch.futures.Future[torch.Tensor],
}


def fsdp_patches(exchanges: Exchanges) -> list[Patch]:
    """Returns the patches of FSDP2, where this torch has it as expected."""
    if fsdp_group is None or fsdp_collectives is None:
        return []
    gathers = ActionKind.ALL_GATHER
    return [
        Patch(fsdp_group, "unshard", exchanges.timed(gathers, needs=_is_to_gather)),
        Patch(fsdp_group, "wait_for_unshard", exchanges.timed(gathers, needs=_is_gathering)),
        Patch(fsdp_collectives, "foreach_reduce", exchanges.timed(ActionKind.REDUCE_SCATTER)),
    ]


def _is_to_gather(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is None and not group.is_unsharded


def _is_gathering(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is not None
