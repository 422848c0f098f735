"""How a run computes: in which type, with which weights kept, and float16's loss scale.

    dtype               computes in    sums gradients in    optimizer's weights
    float32, float64    itself         itself               the parameters
    bfloat16, float16   itself         float32              float32: FSDP's own parameters
      with buffers      itself, norms  float32 for          float32 copies
                        in float32     bfloat16, float16
                                       for float16

With buffers the types are Megatron's: it reduces gradients in float32 for bfloat16
(megatron/training/arguments.py: accumulate_allreduce_grads_in_fp32) and in float16 for float16.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy

from serried.errors import SerriedError
from serried.runtime.job.settings import OptimizerSettings, TrainSettings

HALVES = ("bfloat16", "float16")
"""Types of 16 bits, too coarse for the optimizer's own weights."""

LEAST_SCALE = 1.0
"""A loss scale below this would mean that gradients overflow unscaled."""


def compute_dtype(settings: TrainSettings) -> torch.dtype:
    """Returns the type of activations."""
    dtype: torch.dtype = getattr(torch, settings.dtype)
    return dtype


def loss_dtype(settings: TrainSettings) -> torch.dtype:
    """Returns the type of the loss: float32 at least."""
    return torch.promote_types(compute_dtype(settings), torch.float32)


def policy_of(settings: TrainSettings) -> MixedPrecisionPolicy | None:
    """Returns how FSDP computes in 16 bits on float32 parameters; None where it need not."""
    if settings.dtype not in HALVES or settings.dp_style == "buffer":
        return None
    # Rotary angles come in as inputs and stay exact; the stream is in 16 bits by itself.
    return MixedPrecisionPolicy(
        param_dtype=compute_dtype(settings),
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,
    )


@torch.no_grad()
def set_dtypes(model: nn.Module, settings: TrainSettings) -> None:
    """Turns parameters into the types in which the optimizer, or with buffers the model, has them.

    Buffers, such as rotary angles, follow float64 and else stay float32.
    """
    wide = loss_dtype(settings)
    # With buffers the model itself is in 16 bits, all but its norms. Else its parameters stay wide,
    # and FSDP computes with copies in 16 bits (policy_of).
    narrow = compute_dtype(settings) if settings.dp_style == "buffer" else wide
    for name, parameter in model.named_parameters():
        parameter.data = parameter.data.to(wide if "norm" in name else narrow)
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point():
                setattr(module, name, buffer.to(wide))


@dataclass
class LossScale:
    """Keeps float16's loss scale: halves it on an overflow, doubles it after a good while.

    >>> scale = LossScale(1024.0, window=2)
    >>> for is_finite in (False, True, True, True):
    ...     scale.update(is_finite=is_finite, step=0)
    >>> scale.value
    1024.0
    """

    value: float
    window: int
    good: int = 0
    """Updates since the scale last changed."""

    @classmethod
    def of(cls, settings: TrainSettings) -> LossScale | None:
        """Returns the scale that a run begins with; only float16 needs one."""
        learning: OptimizerSettings = settings.optimizer
        if settings.dtype != "float16":
            return None
        return cls(learning.loss_scale, learning.loss_scale_window)

    def update(self, *, is_finite: bool, step: int) -> None:
        """Takes note of whether the step's gradients were finite.

        Raises SerriedError when they overflow even unscaled.
        """
        if is_finite:
            self.good += 1
            if self.good == self.window:
                self.value, self.good = self.value * 2, 0
            return
        self.value, self.good = self.value / 2, 0
        if self.value < LEAST_SCALE:
            raise SerriedError(
                "step {step}: float16 gradients overflow even at a loss scale of 1; the model "
                "diverges or is too much for float16: take a smaller lr, or dtype bfloat16",
                step=step,
            )
