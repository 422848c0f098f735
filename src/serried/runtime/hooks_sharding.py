"""Hooks around what data parallel ranks exchange: DDP's buckets, FSDP2's shards, collectives.

    DDP         a communication hook that does what its own does      REDUCE_GRAD    per bucket
    FSDP2       unshard and the wait for it; reduce-scatter           ALL_GATHER, REDUCE_SCATTER
    DeepSpeed   torch.distributed's blocking collectives              the same, ALL_TO_ALL

A span of FSDP2 or of a collective is the time for which the caller was held up, on a GPU the
one its stream was; a bucket's is from its launch to its end, mostly behind the backward.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from serried.runtime.hooks_private import fsdp_collectives, fsdp_group
from serried.runtime.patches import Patch, Work, Wrap
from serried.span import ActionKind

if TYPE_CHECKING:
    from serried.runtime.recorder import StepRecorder

COLLECTIVES = {
    "all_reduce": ActionKind.REDUCE_GRAD,
    "all_gather": ActionKind.ALL_GATHER,
    "all_gather_into_tensor": ActionKind.ALL_GATHER,
    "reduce_scatter": ActionKind.REDUCE_SCATTER,
    "reduce_scatter_tensor": ActionKind.REDUCE_SCATTER,
    "all_to_all": ActionKind.ALL_TO_ALL,
    "all_to_all_single": ActionKind.ALL_TO_ALL,
}
"""What a collective is recorded as inside a backward; outside, an all-reduce is named instead."""

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
        setattr(module, _HOOKED, state)


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
        recorder.later(ActionKind.REDUCE_GRAD, start, recorder.mark(), 0)
        return future.value()

    return allreduce_hook(state.group, bucket).then(done)


# DDP looks at the types of its hook, which stand above as text.
_reduced.__annotations__ = {
    "bucket": dist.GradBucket,  # type: ignore[attr-defined]
    "return": torch.futures.Future[torch.Tensor],
}


def exchange_patches(recorder: StepRecorder, work: Work) -> list[Patch]:
    """Returns the patches of collectives, and of FSDP2 where this torch has it as expected."""

    def timed(kind: ActionKind, needs: Callable[..., bool] | None = None) -> Wrap:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                if work.is_exchange or (needs and not needs(*args, **options)):
                    return original(*args, **options)
                start = recorder.mark()
                work.is_exchange = True
                try:
                    return original(*args, **options)
                finally:
                    work.is_exchange = False
                    if kind == ActionKind.REDUCE_GRAD and not work.is_backward:
                        recorder.add(ActionKind.SPAN, start, name="all_reduce")
                    elif kind == ActionKind.REDUCE_GRAD:
                        recorder.add(kind, start, stage=0)
                    else:
                        recorder.add(kind, start, stage=0, microbatch=work.microbatch)

            return call

        return wrap

    patches = [Patch(dist, name, timed(kind, _blocks)) for name, kind in COLLECTIVES.items()]
    if fsdp_group is not None and fsdp_collectives is not None:
        patches += [
            Patch(fsdp_group, "unshard", timed(ActionKind.ALL_GATHER, _is_to_gather)),
            Patch(fsdp_group, "wait_for_unshard", timed(ActionKind.ALL_GATHER, _is_gathering)),
            Patch(fsdp_collectives, "foreach_reduce", timed(ActionKind.REDUCE_SCATTER)),
        ]
    return patches


def _blocks(*args: Any, **options: Any) -> bool:
    """Tells of a collective whether it returns when it is done; others only begin."""
    return not options.get("async_op") and not (args and args[-1] is True)


def _is_to_gather(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is None and not group.is_unsharded


def _is_gathering(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is not None
