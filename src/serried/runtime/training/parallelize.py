"""Cuts a stage for tensor parallelism and shares it out for data parallelism.

    tensor parallel, per layer          all-reduces forward     backward
    wq wk wv  columns ─ heads ─ wo rows         1                  1
    w1 w3     columns ─ ffn ─── w2 rows         1                  1
    embed rows (vocabulary), output columns (scores gathered); norms are whole on every rank

    with sequence_parallel   the stream between matrices is cut along the sequence: each
                             all-reduce becomes a reduce-scatter and an all-gather
    with loss_parallel       scores stay cut along the vocabulary

    data parallel            dense layers            experts
    zero 0, replicate        replicate over dp_cp    replicate over edp
    zero 0, buffer           buffers                 buffers
    zero 1, 2                fully_shard, kept whole once gathered until the step ends
    zero 3                   fully_shard, each layer let go after use

All of these sum gradients; the loss is divided beforehand by all that it is a mean over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model import context
from serried.runtime.model.experts import Experts
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.model import FeedForward, Parts, Stage, attend_causally
from serried.runtime.model.precision import policy_of
from serried.runtime.pretrained.stage import PretrainedStage
from serried.runtime.recorder.torch_private import replicate
from serried.runtime.training.mesh import TrainMesh


def parts_of(settings: TrainSettings, mesh: TrainMesh) -> Parts:
    """Returns how this rank attends, and what its feed-forward layers are."""
    if settings.cp == 1:
        return Parts(attend_causally, _feed_forward(mesh), None, settings.recompute)
    return Parts(
        context.attention(settings.cp_form, mesh.group("cp")),
        _feed_forward(mesh),
        places_of(settings, mesh),
        settings.recompute,
    )


def places_of(settings: TrainSettings, mesh: TrainMesh) -> Any:
    """Returns the places of a sequence that this rank holds, in order."""
    form, length = settings.cp_form, settings.model.seq_len
    return context.positions(form, length, mesh.coordinate("cp"), settings.cp)


def _feed_forward(mesh: TrainMesh) -> Callable[[ModelSizes], nn.Module]:
    def made(sizes: ModelSizes) -> nn.Module:
        if not sizes.experts:
            return FeedForward(sizes)
        return Experts(
            sizes.hidden,
            sizes.ffn,
            sizes.experts,
            sizes.top_k,
            mesh.group("ep"),
            balance=sizes.balance,
            balance_over=mesh.group("stage"),
        )

    return made


def parallelize(stage: HeldStage, settings: TrainSettings, mesh: TrainMesh) -> None:
    """Cuts ``stage`` over its tp group and shares it out over its data parallel ranks, in place."""
    if settings.tp > 1 and isinstance(stage, Stage):
        # Every rank drew the whole weight itself: no source rank, so nothing is sent.
        tp = mesh.mesh["tp"]
        parallelize_module(stage, tp, _plan(stage, settings), src_data_rank=None)
        stage.tie()
        stage.score_mesh = tp if settings.loss_parallel else None
    elif settings.tp > 1:
        assert isinstance(stage, PretrainedStage)
        stage.cut_over(mesh.mesh["tp"])
    if is_wrapped(settings):
        _share_out(stage, settings, mesh)


def is_wrapped(settings: TrainSettings) -> bool:
    """Tells whether torch reduces gradients: where any are to be, or computation is in 16 bits."""
    if settings.dp_style == "buffer":
        return False
    shares_experts = settings.model.experts > 0 and settings.edp > 1
    return settings.dp * settings.cp > 1 or policy_of(settings) is not None or shares_experts


def _share_out(stage: HeldStage, settings: TrainSettings, mesh: TrainMesh) -> None:
    """Wraps experts over edp, then layers (where sharded), then the stage."""
    if settings.zero == 0:
        wrap: Callable[..., Any] = replicate
        dense = mesh.mesh["replicate"]
    else:
        # Stages 1 and 2 keep gathered weights from forward to backward, stage 3 gathers them again.
        wrap = partial(fully_shard, reshard_after_forward=settings.zero == 3)
        has_copies = settings.zero_shard is not None and mesh.size("replicate") > 1
        dense = mesh.mesh["replicate", "shard"] if has_copies else mesh.mesh["shard"]
    policy = policy_of(settings)
    options = {} if policy is None else {"mp_policy": policy}
    for layer in stage.units():
        for module in list(layer.modules()):
            if isinstance(module, Experts):
                for expert in module.experts.values():
                    wrap(expert, mesh=mesh.experts, **options)
        if settings.zero:
            wrap(layer, mesh=dense, **options)
    wrap(stage, mesh=dense, **options)
    for module in stage.modules():
        # Each rank's loss is its part of the mean over the batch, so gradients are summed over
        # ranks, where torch would average them.
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def parameter_bytes(stage: nn.Module) -> int:
    """Returns the bytes of parameters this rank holds, its own shards only, each once."""
    local = [p.to_local() if isinstance(p, DTensor) else p for p in stage.parameters()]
    return sum(tensor.numel() * tensor.element_size() for tensor in local)


def _plan(stage: Stage, settings: TrainSettings) -> dict[str, ParallelStyle]:
    """Returns how each module is cut, and how its inputs and outputs lie."""
    whole = Replicate()
    # Between layers activations are [batch, sequence, hidden]: sequence parallelism cuts dim 1.
    stream = Shard(1) if settings.sequence_parallel else whole
    plan: dict[str, ParallelStyle] = {}
    if hasattr(stage, "embed"):
        plan["embed"] = RowwiseParallel(input_layouts=whole, output_layouts=stream)
    for number in stage.layers:
        plan |= _layer_plan(f"layers.{number}", stream, is_plain=not stage.sizes.experts)
    if stage.is_last:
        scores = Shard(-1) if settings.loss_parallel else whole
        plan["output"] = ColwiseParallel(input_layouts=stream, output_layouts=scores)
        if settings.sequence_parallel:
            plan["norm"] = SequenceParallel()
    return plan


def _layer_plan(
    layer: str, stream: Replicate | Shard, *, is_plain: bool
) -> dict[str, ParallelStyle]:
    # One conversion for wq, wk and wv together: their input gradients are summed before
    # the all-reduce, which is then one instead of three.
    whole = Replicate()
    plan: dict[str, ParallelStyle] = {
        f"{layer}.attention": PrepareModuleInput(
            input_layouts=(stream, None), desired_input_layouts=(whole, None)
        ),
        f"{layer}.attention.wo": RowwiseParallel(output_layouts=stream),
    }
    for name in ("wq", "wk", "wv"):
        plan[f"{layer}.attention.{name}"] = ColwiseParallel()
    if stream != whole:
        plan[f"{layer}.attention_norm"] = SequenceParallel()
        plan[f"{layer}.ffn_norm"] = SequenceParallel(use_local_output=not is_plain)
    if is_plain:
        plan[f"{layer}.feed_forward"] = PrepareModuleInput(
            input_layouts=(stream,), desired_input_layouts=(whole,)
        )
        plan[f"{layer}.feed_forward.w1"] = ColwiseParallel()
        plan[f"{layer}.feed_forward.w3"] = ColwiseParallel()
        plan[f"{layer}.feed_forward.w2"] = RowwiseParallel(output_layouts=stream)
    return plan
