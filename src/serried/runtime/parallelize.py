"""Cuts a stage for tensor parallelism and replicates it for data parallelism.

    tensor parallel, per layer          all-reduces forward     backward
    wq wk wv  columns ─ heads ─ wo rows         1                  1
    w1 w3     columns ─ ffn ─── w2 rows         1                  1
    embed rows (vocabulary), output columns (scores gathered); norms are whole on every rank

Data parallelism keeps whole copies and averages gradients once, after the last backward.
"""

from __future__ import annotations

from torch import nn
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

from serried.runtime.groups import RankGroups
from serried.runtime.model import Stage
from serried.runtime.torch_private import replicate


def parallelize(stage: Stage, groups: RankGroups) -> None:
    """Shards ``stage`` over its tp group and replicates it over its dp group, in place."""
    if groups.size("tp") > 1:
        # Every rank drew the whole weight itself: no source rank, so nothing is sent.
        parallelize_module(stage, groups.mesh["tp"], _plan(stage), src_data_rank=None)
    if groups.size("dp") > 1:
        replicate(stage, mesh=groups.mesh["dp"])


def parameter_bytes(stage: nn.Module) -> int:
    """Returns the bytes of parameters this rank holds, its own shards only."""
    local = [p.to_local() if isinstance(p, DTensor) else p for p in stage.parameters()]
    return sum(tensor.numel() * tensor.element_size() for tensor in local)


def _plan(stage: Stage) -> dict[str, ParallelStyle]:
    whole = Replicate()
    plan: dict[str, ParallelStyle] = {}
    if hasattr(stage, "embed"):
        plan["embed"] = RowwiseParallel(input_layouts=whole)
    for number in stage.layers:
        layer = f"layers.{number}"
        # One conversion for wq, wk and wv together: their input gradients are summed before
        # the all-reduce, which is then one instead of three.
        plan[f"{layer}.attention"] = PrepareModuleInput(
            input_layouts=(whole, None), desired_input_layouts=(whole, None)
        )
        plan[f"{layer}.feed_forward"] = PrepareModuleInput(
            input_layouts=(whole,), desired_input_layouts=(whole,)
        )
        for name in ("attention.wq", "attention.wk", "attention.wv"):
            plan[f"{layer}.{name}"] = ColwiseParallel()
        for name in ("feed_forward.w1", "feed_forward.w3"):
            plan[f"{layer}.{name}"] = ColwiseParallel()
        for name in ("attention.wo", "feed_forward.w2"):
            plan[f"{layer}.{name}"] = RowwiseParallel()
    if stage.is_last:
        plan["output"] = ColwiseParallel(output_layouts=whole)
    return plan
