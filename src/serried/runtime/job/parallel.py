"""What the axes of a run ask of its model, batch and each other: a sentence for each misfit."""

from __future__ import annotations

import math
from typing import Protocol

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors
from serried.mesh import Layout
from serried.pipeline import Schedule
from serried.runtime.job.checkpoints import CheckpointSettings, Validation
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.model import ModelSizes
from serried.runtime.job.shards import ContextSizes

AXES = ("pp", "dp", "cp", "tp")
"""What dense layers split along, slowest first; where ranks sit on these is the Layout's word."""


class _Run(Protocol):
    """Names what the checks read of TrainSettings, whose module is above this one."""

    @property
    def world_size(self) -> int: ...
    @property
    def tp(self) -> int: ...
    @property
    def pp(self) -> int: ...
    @property
    def cp(self) -> int: ...
    @property
    def ep(self) -> int: ...
    @property
    def dp(self) -> int: ...
    @property
    def edp(self) -> int: ...
    @property
    def cp_form(self) -> str: ...
    @property
    def sequence_parallel(self) -> bool: ...
    @property
    def loss_parallel(self) -> bool: ...
    @property
    def zero(self) -> int: ...
    @property
    def zero_shard(self) -> int | None: ...
    @property
    def dp_style(self) -> str: ...
    @property
    def framework(self) -> str: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def pipeline(self) -> Schedule: ...
    @property
    def num_stages(self) -> int: ...
    @property
    def model(self) -> ModelSizes: ...
    @property
    def recompute(self) -> str: ...
    @property
    def emulated(self) -> object | None: ...
    @property
    def microbatches(self) -> int: ...
    @property
    def global_batch_size(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def validation(self) -> Validation: ...
    @property
    def checkpoints(self) -> CheckpointSettings: ...


def check_parallel(settings: _Run) -> None:
    """Raises InputError where an axis does not fit the model or another axis."""
    require_known_axes(settings.layout)
    _check_config_model(settings)
    _check_layers(settings)
    _check_tensor(settings.model, settings.tp)
    _check_context(settings)
    _check_sequence(settings)
    _check_experts(settings)
    _check_zero(settings)
    _check_emulated(settings)
    _check_batch(settings)


def require_known_axes(layout: Layout) -> None:
    """Refuses a framework that places ranks along more than pp, dp, cp and tp."""
    sizes = layout.mesh.sizes
    if math.prod(sizes.get(axis, 1) for axis in AXES) != layout.world_size:
        raise InputError(
            "{framework} places ranks along {axes} here; training runs along {known} only, "
            "as megatron and internlm place them",
            framework=layout.framework,
            axes=listed(f"{axis}={size}" for axis, size in sizes.items()),
            known=listed(AXES),
        )


def _check_layers(settings: _Run) -> None:
    if settings.model.layers < settings.num_stages == settings.pp:
        raise InputError(
            "layers={layers} cannot fill pp={pp} stages; take at least {pp} layers, "
            "or pp up to {layers}",
            layers=settings.model.layers,
            pp=settings.pp,
        )
    if settings.model.layers < settings.num_stages:
        raise InputError(
            "layers={layers} cannot fill the {stages} stages that {schedule} has on pp={pp}; "
            "take at least {stages} layers",
            layers=settings.model.layers,
            stages=settings.num_stages,
            schedule=settings.pipeline.name,
            pp=settings.pp,
        )


def _check_config_model(settings: _Run) -> None:
    """Refuses what would have to reach into the code of a model of transformers."""
    model = settings.model
    if not isinstance(model, ConfigModel):
        return
    out_of_reach = {
        "cp": settings.cp > 1,
        "ep": settings.ep > 1,
        "sequence_parallel": settings.sequence_parallel,
        "loss_parallel": settings.loss_parallel,
        "recompute selective": settings.recompute == "selective",
        "compute emulated": settings.emulated is not None,
        "dp_style buffer": settings.dp_style == "buffer",
    }
    for name, is_asked in out_of_reach.items():
        if is_asked:
            raise InputError(
                "{architecture} brings its own attention, layers and loss, which {name} would have "
                "to change; leave it out: tp, pp, dp, ZeRO and recompute full work",
                architecture=model.architecture,
                name=name,
            )
    if model.heads % settings.tp:
        raise InputError(
            "tp={tp} does not divide the {heads} heads of {path}; tp can be {fits}",
            tp=settings.tp,
            heads=model.heads,
            path=model.source,
            fits=listed(divisors(math.gcd(model.heads, model.num_kv_heads))),
        )


def _check_tensor(model: ModelSizes, tp: int) -> None:
    if model.heads % tp:
        heads = -(-model.heads // tp) * tp
        raise InputError(
            "tp={tp} does not divide {heads} heads; tp can be {fits}, or take heads={more} with "
            "hidden={hidden}",
            tp=tp,
            heads=model.heads,
            fits=listed(divisors(model.heads)),
            more=heads,
            hidden=-(-model.hidden // (2 * heads)) * 2 * heads,
        )
    if model.num_kv_heads % tp:
        raise InputError(
            "tp={tp} does not divide {kv_heads} KV heads, so that ranks would hold parts of one; "
            "tp can be {fits}, or KV heads a multiple of {tp} that divides {heads}",
            tp=tp,
            kv_heads=model.num_kv_heads,
            fits=listed(divisors(model.num_kv_heads)),
            heads=model.heads,
        )


def _check_context(settings: _Run) -> None:
    model, tp = settings.model, settings.tp
    ContextSizes(
        settings.cp_form,
        settings.cp,
        model.seq_len,
        heads=model.heads // tp,
        kv_heads=model.num_kv_heads // tp,
    )


def _check_sequence(settings: _Run) -> None:
    for name in ("sequence_parallel", "loss_parallel"):
        if getattr(settings, name) and settings.tp == 1:
            raise InputError(
                "{name} splits work among tensor parallel ranks, and tp=1; "
                "take tp of 2 or more or leave it out",
                name=name,
            )
    unit = settings.cp * settings.tp
    if settings.sequence_parallel and settings.model.seq_len % unit:
        raise InputError(
            "sequence_parallel cuts a sequence of {seq_len} into cp x tp = {cp} x {tp} equal "
            "parts, which it cannot be; lengths that can: {fits}",
            seq_len=settings.model.seq_len,
            cp=settings.cp,
            tp=settings.tp,
            fits=listed(unit * n for n in range(1, 5)) + ", …",
        )


def _check_experts(settings: _Run) -> None:
    experts, ep = settings.model.experts, settings.ep
    if not experts:
        if ep > 1:
            raise InputError(
                "ep={ep} shares out experts, and the model has none; add experts=8", ep=ep
            )
        return
    mesh = settings.layout.meshes.get("expert")
    # Frameworks call the data axis of experts edp or dp; the one that is missing counts as 1.
    if mesh is None or settings.pp * ep * settings.edp != math.prod(
        mesh.sizes.get(axis, 1) for axis in ("pp", "ep", "edp", "dp")
    ):
        raise InputError(
            "{framework} places no experts; take megatron, which does, or experts=0",
            framework=settings.framework,
        )
    if experts % ep:
        raise InputError(
            "ep={ep} does not divide {experts} experts; sizes that do: {fits}",
            ep=ep,
            experts=experts,
            fits=listed(divisors(experts)),
        )
    if settings.tp > 1 and not settings.sequence_parallel:
        raise InputError(
            "experts with tp={tp} need sequence_parallel: without it all tensor parallel ranks "
            "send the same bytes to experts; add it or take tp=1",
            tp=settings.tp,
        )


def _check_zero(settings: _Run) -> None:
    zero, shard, ranks = settings.zero, settings.zero_shard, settings.dp * settings.cp
    if zero not in range(4):
        raise InputError("ZeRO stage {stage} is not known; stages are 0 to 3", stage=zero)
    if zero and settings.dp_style == "buffer":
        raise InputError(
            "zero={zero} shards what dp_style=buffer keeps whole; take zero=0, or "
            "dp_style=replicate",
            zero=zero,
        )
    if shard is None:
        return
    if not zero:
        raise InputError(
            "zero_shard={shard} says how many ranks share one copy, and zero=0 shares nothing; "
            "take zero 1, 2 or 3",
            shard=shard,
        )
    if shard < 1 or ranks % shard:
        raise InputError(
            "zero_shard={shard} does not divide dp x cp = {ranks} ranks; sizes that do: {fits}",
            shard=shard,
            ranks=ranks,
            fits=listed(divisors(ranks)),
        )


def _check_emulated(settings: _Run) -> None:
    if settings.emulated is None:
        return
    real_only = {
        "cp": settings.cp > 1,
        "zero": settings.zero > 0,
        "experts": settings.model.experts > 0,
        "sequence_parallel": settings.sequence_parallel,
        "loss_parallel": settings.loss_parallel,
        "recompute": settings.recompute != "none",
        "dtype": settings.dtype not in ("float32", "float64"),
        "validate_every": settings.validation.every > 0,
        "save_dir": settings.checkpoints.folder is not None,
        "load": settings.checkpoints.begin_from is not None,
    }
    for name, asked in real_only.items():
        if asked:
            raise InputError(
                "emulated compute does no arithmetic, so {name} would show nothing; "
                "leave it out or compute for real",
                name=name,
            )


def _check_batch(settings: _Run) -> None:
    require_even_batch(
        settings.global_batch_size, dp=settings.dp, microbatches=settings.microbatches
    )


def require_even_batch(batch: int, *, dp: int, microbatches: int) -> None:
    """Raises InputError unless a global batch falls into equal microbatches on each dp rank."""
    unit = dp * microbatches
    if batch % unit or batch < 1:
        raise InputError(
            "global batch size {batch} is not a multiple of dp={dp} x {m} microbatches; "
            "sizes that are: {fits}",
            batch=batch,
            dp=dp,
            m=microbatches,
            fits=listed([unit * n for n in range(1, 5)]) + ", …",
        )
