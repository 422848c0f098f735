"""What the ends of the model keep: the embedding's masks, the last norm, the output and the loss.

first stage    token ids, 8 bytes each; a mask of h a token, where there is dropout
               its backward makes the embedding's gradient, 2 V h / tp, when all else is gone
last stage     norm's input and output, 2 x 2 h / sp; scores, k V / tp a token
               k of the loss: ``implementation.LOSSES``; MTP has scores of its own for each
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.plan.memory.implementation import LOSSES, Implementation
from serried.plan.memory.layer import LayerPlan
from serried.plan.memory.numbers import activation_bytes
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import ModelStage

ID_BYTES = 8


@dataclass(frozen=True)
class EndUse:
    """Holds what the ends on one stage take, in bytes for each token of a microbatch."""

    kept: float = 0.0
    """The embedding's mask and the ids; the last norm's input and output."""
    scores: float = 0.0
    """What the loss keeps, from its forward to its backward."""
    scores_worked: float = 0.0
    """What the backward of loss and output works with."""


def end_use(
    model: ModelShape, stage: ModelStage, split: LayerPlan, built: Implementation, vocab: int
) -> EndUse:
    """Returns what the ends take that a stage has; ``vocab`` is padded, and of all ranks.

    >>> from serried.plan.memory.implementation import IMPLEMENTATIONS
    >>> model = ModelShape("gpt", 2, 16, 2, 2, 8, 64, 1000)
    >>> last = ModelStage(1, range(1, 2), has_output=True)
    >>> end_use(model, last, LayerPlan(), IMPLEMENTATIONS["megatron"], 1000)
    EndUse(kept=64.0, scores=4000.0, scores_worked=2032.0)
    """
    number, hidden = activation_bytes(split.compute), model.hidden
    kept = scores = worked = 0.0
    if stage.has_embedding:
        kept += 2 * ID_BYTES / split.sp
        kept += hidden * built.mask_bytes / split.sp if split.has_hidden_dropout else 0
    if stage.has_output:
        whole = 1 if built.is_norm_output_whole else split.sp
        kept += number * hidden * (1 / split.sp + 1 / whole)
        loss = LOSSES[built.cross_entropy]
        each = vocab / split.tp
        scores = loss.kept * each * (1 + stage.mtp_layers)
        gradient = number * hidden * (1 + (1 / split.sp if split.sp > 1 else 0))
        worked = loss.worked * each + gradient
    if stage.mtp_layers:  # the join's two inputs, and what it gives to its own layer
        kept += stage.mtp_layers * 3 * number * hidden / split.sp
    return EndUse(kept, scores, worked)
