"""Shares a stage out over its data parallel ranks, so that torch sums its gradients.

    data parallel            dense layers            experts
    zero 0, replicate        replicate over dp_cp    replicate over edp
    zero 0, buffer           buffers                 buffers
    zero 1, 2                fully_shard, kept whole once gathered until the step ends
    zero 3                   fully_shard, each layer let go after use

All of these sum gradients; the loss is divided beforehand by all that it is a mean over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from serried.runtime.recorder.torch_private import replicate
from serried.runtime.training.mesh import TrainMesh


def share_out(
    stage: nn.Module,
    mesh: TrainMesh,
    *,
    zero: int = 0,
    units: Iterable[nn.Module] = (),
    experts: Iterable[nn.Module] = (),
    policy: MixedPrecisionPolicy | None = None,
) -> None:
    """Wraps ``experts`` over edp, then ``units`` (where sharded), then ``stage``, in place.

    ``units`` are what ZeRO gathers one by one: a model's layers. ``policy`` says in which types
    torch computes and sums.
    """
    if zero == 0:
        wrap: Callable[..., Any] = replicate
        dense = mesh.mesh["replicate"]
    else:
        # Stages 1 and 2 keep gathered weights from forward to backward, stage 3 gathers them again.
        wrap = partial(fully_shard, reshard_after_forward=zero == 3)
        has_copies = mesh.size("replicate") > 1
        dense = mesh.mesh["replicate", "shard"] if has_copies else mesh.mesh["shard"]
    options = {} if policy is None else {"mp_policy": policy}
    for expert in experts:
        wrap(expert, mesh=mesh.experts, **options)
    if zero:
        for unit in units:
            wrap(unit, mesh=dense, **options)
    wrap(stage, mesh=dense, **options)
    for module in stage.modules():
        # Each rank's loss is its part of the mean over the batch, so gradients are summed over
        # ranks, where torch would average them.
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
