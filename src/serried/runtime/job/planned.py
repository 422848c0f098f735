"""What the planner is told of a run, and why it cannot plan the memory of some."""

from __future__ import annotations

from serried.action import ActionKind
from serried.finding import Sentence, said
from serried.plan.training import Gpt, Sharing, Training, kernels_of
from serried.runtime.job.settings import TrainSettings, stage_layers


def unplanned(settings: TrainSettings) -> Sentence | None:
    """Says why the memory of a run is not planned; None where it is."""
    if settings.emulated:
        return said("emulated compute keeps no activations")
    if settings.model.experts:
        return said("how much an expert keeps follows from the text, which sends bytes to it")
    if settings.cp > 1 and settings.cp_form == "all-gather":
        return said("all-gather attention is not in the plan yet")
    if settings.recompute != "none" and (settings.pipeline.kind == ActionKind.I).any():
        return said("torch computes a layer again for each weight of a split backward")
    return None


def training_of(settings: TrainSettings, device: str) -> Training:
    """Returns a run as the planner takes it; ``device`` is such as ``cpu`` or ``cuda:0``."""
    model = settings.model
    shares_heads = model.num_kv_heads != model.heads
    return Training(
        model=Gpt(
            hidden=model.hidden,
            ffn=model.ffn,
            heads=model.heads,
            kv_heads=model.num_kv_heads,
            seq_len=model.seq_len,
            vocabulary=settings.vocabulary,
            tie=model.tie,
            has_dropout=model.dropout > 0,
        ),
        layers=tuple(map(len, stage_layers(model.layers, settings.num_stages))),
        schedule=settings.pipeline,
        microbatch_size=settings.microbatch_size,
        dtype=settings.dtype,
        tp=settings.tp,
        cp=settings.cp,
        cp_form=settings.cp_form,
        sequence_parallel=settings.sequence_parallel,
        loss_parallel=settings.loss_parallel,
        sharing=_sharing(settings),
        zero=settings.zero,
        shard=settings.zero_shard or settings.dp * settings.cp,
        recompute=settings.recompute,
        kernels=kernels_of(device.partition(":")[0], settings.dtype, shares_heads=shares_heads),
    )


def _sharing(settings: TrainSettings) -> Sharing:
    """Returns how weights are held: as ``parallelize.is_wrapped`` decides, without torch."""
    if settings.dp_style == "buffer":
        return "buffer"
    is_half = settings.dtype in ("bfloat16", "float16")
    if settings.dp * settings.cp == 1 and not is_half:
        return "plain"
    return "zero" if settings.zero else "replicate"
