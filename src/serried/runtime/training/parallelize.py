"""How the reference model's stages are cut over tp ranks, and which parts a layout gives them.

    tensor parallel, per layer          all-reduces forward     backward
    wq wk wv  columns ─ heads ─ wo rows         1                  1
    w1 w3     columns ─ ffn ─── w2 rows         1                  1
    embed rows (vocabulary), output columns (scores gathered); norms are whole on every rank

    with sequence_parallel   the stream between matrices is cut along the sequence: each
                             all-reduce becomes a reduce-scatter and an all-gather
    with loss_parallel       scores stay cut along the vocabulary

Data parallel: sharing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
)

from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model import context
from serried.runtime.model.experts import Experts
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.model import FeedForward, Parts, Stage, attend_causally
from serried.runtime.model.precision import policy_of
from serried.runtime.pretrained.stage import PretrainedStage
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.sharing import share_out
from serried.runtime.training.tensor_plan import TensorPlan, cut_over_tp


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
        tp = mesh.mesh["tp"]
        cut_over_tp(stage, tp, _plan(stage, settings))
        stage.score_mesh = tp if settings.loss_parallel else None
    elif settings.tp > 1:
        assert isinstance(stage, PretrainedStage)
        stage.cut_over(mesh.mesh["tp"])
    if is_wrapped(settings):
        experts = [each for each in stage.modules() if isinstance(each, Experts)]
        share_out(
            stage,
            mesh,
            zero=settings.zero,
            units=stage.units(),
            experts=[expert for each in experts for expert in each.experts.values()],
            policy=policy_of(settings),
        )


def is_wrapped(settings: TrainSettings) -> bool:
    """Tells whether torch reduces gradients: where any are to be, or computation is in 16 bits."""
    if settings.dp_style == "buffer":
        return False
    shares_experts = settings.model.experts > 0 and settings.edp > 1
    return settings.dp * settings.cp > 1 or policy_of(settings) is not None or shares_experts


def parameter_bytes(stage: nn.Module) -> int:
    """Returns the bytes of parameters this rank holds, its own shards only, each once."""
    local = [p.to_local() if isinstance(p, DTensor) else p for p in stage.parameters()]
    return sum(tensor.numel() * tensor.element_size() for tensor in local)


def _plan(stage: Stage, settings: TrainSettings) -> TensorPlan:
    """Returns how each module is cut, and how its inputs and outputs lie."""
    whole = Replicate()
    # Between layers activations are [batch, sequence, hidden]: sequence parallelism cuts dim 1.
    stream = Shard(1) if settings.sequence_parallel else whole
    plan = _layer_plan(stream, is_plain=not stage.sizes.experts)
    if hasattr(stage, "embed"):
        plan["embed"] = RowwiseParallel(input_layouts=whole, output_layouts=stream)
    if stage.is_last:
        scores = Shard(-1) if settings.loss_parallel else whole
        plan["output"] = ColwiseParallel(input_layouts=stream, output_layouts=scores)
        if settings.sequence_parallel:
            plan["norm"] = SequenceParallel()
    return plan


def _layer_plan(stream: Replicate | Shard, *, is_plain: bool) -> dict[str, str | ParallelStyle]:
    # One conversion for wq, wk and wv together: their input gradients are summed before
    # the all-reduce, which is then one instead of three.
    whole = Replicate()
    plan: dict[str, str | ParallelStyle] = {
        "layers.*.attention": PrepareModuleInput(
            input_layouts=(stream, None), desired_input_layouts=(whole, None)
        ),
        "layers.*.attention.w[qkv]": "column",
        "layers.*.attention.wo": RowwiseParallel(output_layouts=stream),
    }
    if stream != whole:
        plan["layers.*.attention_norm"] = SequenceParallel()
        plan["layers.*.ffn_norm"] = SequenceParallel(use_local_output=not is_plain)
    if is_plain:
        plan["layers.*.feed_forward"] = PrepareModuleInput(
            input_layouts=(stream,), desired_input_layouts=(whole,)
        )
        plan["layers.*.feed_forward.w[13]"] = "column"
        plan["layers.*.feed_forward.w2"] = RowwiseParallel(output_layouts=stream)
    return plan
