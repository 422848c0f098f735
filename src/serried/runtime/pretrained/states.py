"""What the weights of a model of transformers take on a rank: counted by their shapes, not run.

    a weight      rows   -> over tp, as its style says  -> over the ranks of a shard (ZeRO)
    parameters    float32 at least, each copy of a tied weight
    gradients     as many bytes
    optimizer     AdamW's two moments: twice as many

What layers keep for backward, and what ZeRO gathers meanwhile, is no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.settings import TrainSettings
from serried.runtime.model.precision import loss_dtype
from serried.runtime.pretrained.plan import PACKED
from serried.runtime.pretrained.stage import PretrainedStage

MOMENTS = 2
"""What AdamW keeps of each weight."""


@dataclass(frozen=True)
class PlannedStates:
    """Holds the bytes that a place in the pipeline keeps from step to step."""

    pp_rank: int
    stages: tuple[int, ...]
    parameters: int

    @property
    def gradients(self) -> int:
        """Bytes of gradients, of which each rank keeps those of its own weights."""
        return self.parameters

    @property
    def optimizer(self) -> int:
        """Bytes of AdamW's moments."""
        return MOMENTS * self.parameters


def planned_states(settings: TrainSettings) -> Iterator[PlannedStates]:
    """Yields what the first rank of each place in the pipeline keeps, which has most of it."""
    assert isinstance(settings.model, ConfigModel)
    for pp_rank in range(settings.pp):
        numbers = tuple(stage for _, stage in settings.pipeline.placement.stages_of(pp_rank))
        stages = [
            PretrainedStage(settings.model, stage=stage, num_stages=settings.num_stages)
            for stage in numbers
        ]
        count = sum(_elements(stage, settings) for stage in stages)
        yield PlannedStates(pp_rank, numbers, count * loss_dtype(settings).itemsize)


def _elements(stage: PretrainedStage, settings: TrainSettings) -> int:
    """Returns how many numbers of a stage's weights its first rank keeps."""
    ranks = settings.zero_shard or settings.dp if settings.zero else 1
    styles = stage.tensor_cuts() if settings.tp > 1 else {}
    return sum(
        _kept(weight, styles.get(name, ""), settings.tp, ranks)
        for name, weight in stage.inside.named_parameters()
    )


def _kept(weight: Tensor, style: str, tp: int, ranks: int) -> int:
    """Returns the first rank's part of one weight: its rows are cut last, over a shard's ranks."""
    shape = list(weight.shape)
    dim = _cut_dim(len(shape), style)
    if dim is not None:
        parts = 2 if style in PACKED else 1
        shape[dim] = parts * math.ceil(shape[dim] // parts / tp)
    shape[0] = math.ceil(shape[0] / ranks)
    return math.prod(shape)


def _cut_dim(dims: int, style: str) -> int | None:
    """Returns the dimension that tp ranks cut, as transformers' style has it; None for none."""
    if style.startswith("rowwise") or style == "packed_rowwise":
        return dims - 1 if dims > 1 else None  # a bias is added after the sum, on every rank
    if style.startswith(("colwise", "packed_colwise")):
        return max(0, dims - 2)
    return 0 if style == "embedding_rowwise" else None
