"""What the planner is told of a run: its memory, and a step's gathers and reductions by ZeRO."""

from __future__ import annotations

from dataclasses import replace

from serried.action import ActionKind
from serried.finding import Sentence, said
from serried.mesh.sharding import WHOLE, Cut, StateCuts
from serried.plan.precision import RECIPES, Precision
from serried.plan.reference.states import groups_of
from serried.plan.reference.training import BYTES, Gpt, Sharing, Training, kernels_of
from serried.plan.sharded_step import ShardedStep, pipelined_step
from serried.plan.step_plan import StagePlan, StepPlan
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.settings import TrainSettings, stage_layers


def unplanned(settings: TrainSettings) -> Sentence | None:
    """Says why the memory of a run is not planned; None where it is."""
    if isinstance(settings.model, ConfigModel):
        return said("what layers of transformers keep for backward follows their own code")
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


def planned_step(settings: TrainSettings, stage: int = 0) -> ShardedStep:
    """Returns what a rank that holds ``stage`` gathers and reduces of its weights in one step.

    Groups are ``shard``, the ranks of one copy, and ``replicate``, those that hold the same part
    (``weight_groups``). Each layer is a unit of FSDP2, and what is no layer's is the root; rows of
    each weight are cut as a whole, so a unit may be padded.
    """
    training = training_of(settings, "cpu")
    ranks = training.shard if settings.zero else 1
    *layers, ends = (
        sum(weight.shard(ranks) * ranks for weight in group) for group in groups_of(training, stage)
    )
    units = [ends, *layers] if settings.zero else [ends + sum(layers)]
    return pipelined_step(
        _cuts(settings, ranks), units, _precision(settings), microbatches=settings.microbatches
    )


def step_plan(settings: TrainSettings) -> StepPlan | None:
    """Returns what every rank gathers and reduces of its weights in one step of a run.

    None where no plan of that was held against real ranks: emulated compute, experts, several
    stages on a rank, gradients in buffers, and weights let go under a pipeline, whose order of
    gathers follows its schedule. Raises InputError for a step too long to plan.
    """
    is_known = not (
        settings.emulated
        or isinstance(settings.model, ConfigModel)
        or settings.model.experts
        or settings.num_stages != settings.pp
        or settings.dp_style == "buffer"
        or (settings.pp > 1 and settings.zero == 3)
    )
    if not is_known:
        return None
    layout = settings.layout
    ranks: list[list[int]] = [[] for _ in range(settings.pp)]
    groups: dict[str, dict[tuple[int, ...], None]] = {}
    for rank in range(settings.world_size):
        ranks[layout.coordinates(rank).get("pp", 0)].append(rank)
        for kind, members in weight_groups(settings, rank).items():
            groups.setdefault(kind, {})[members] = None
    return StepPlan(
        zero=settings.zero,
        groups={kind: tuple(found) for kind, found in groups.items()},
        stages=tuple(
            StagePlan(tuple(each), planned_step(settings, stage).moves)
            for stage, each in enumerate(ranks)
        ),
    )


def weight_groups(settings: TrainSettings, rank: int) -> dict[str, tuple[int, ...]]:
    """Returns the ranks of a rank's groups ``data``, ``shard`` and ``replicate``.

    >>> weight_groups(TrainSettings(world_size=8, tp=2, zero=3, zero_shard=2), 2)
    {'data': (0, 2, 4, 6), 'shard': (0, 2), 'replicate': (2, 6)}
    """
    layout = settings.layout
    kind = layout.kind_of("dp", with_cp=True)
    data = tuple(next(ranks for ranks in layout.groups(kind).lists() if rank in ranks))
    size = settings.zero_shard or len(data)
    place = data.index(rank)
    first = place // size * size
    shard = data[first : first + size]
    return {"data": data, "shard": shard, "replicate": data[place % size :: size]}


def _cuts(settings: TrainSettings, ranks: int) -> StateCuts:
    data = Cut(("data",), settings.dp * settings.cp)
    if not settings.zero:
        return StateCuts("dense", data)
    cut = Cut(("shard",), ranks) if ranks > 1 else WHOLE
    return StateCuts("dense", data, cut, cut, cut, across="replicate", is_kept=settings.zero < 3)


def _precision(settings: TrainSettings) -> Precision:
    """Returns what a run keeps: wide weights of its own, computed with in ``dtype``."""
    number = BYTES[settings.dtype]
    wide = max(4, number)
    return replace(
        RECIPES["fp32"],
        name=settings.dtype,
        parameter_bytes=wide,
        gradient_bytes=wide,
        moment_bytes=2 * wide,
        computed_bytes=number,
        reduced_bytes=wide,
    )
