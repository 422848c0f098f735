"""How a run learns: AdamW, its learning rate over time, clipping, loss scaling.

rate  lr ┤    ╭──╮                   warm-up: lr x (update + 1) / warmup
         │   ╱    ╲                  cosine:  min_lr + (lr - min_lr) (1 + cos(pi t)) / 2,
         │  ╱      ╲                          t = (update - warmup) / (steps - warmup)
  min_lr ┤ ╱        ╰──
         └─┴──────────┴── update
          warmup    steps
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from serried.errors import InputError
from serried.runtime.job.limits import require_above_zero, require_at_least_zero, require_positive


@dataclass(frozen=True)
class OptimizerSettings:
    """Describes how a run learns.

    Raises InputError for rates and norms that cannot be.
    """

    lr: float = 3e-3
    """The highest learning rate."""
    min_lr: float = 0.0
    """The learning rate that cosine ends in."""
    warmup: int = 0
    """Updates over which the rate rises to ``lr``."""
    lr_schedule: Literal["cosine", "constant"] = "cosine"
    weight_decay: float = 0.01
    clip: float = 1.0
    """The gradient's norm that clipping leaves; 0 clips nothing."""
    loss_scale: float = 65536.0
    """Where float16's loss scale begins; it halves when gradients overflow."""
    loss_scale_window: int = 2000
    """Updates without an overflow after which the loss scale doubles."""

    def __post_init__(self) -> None:
        for name in ("lr", "loss_scale"):
            require_above_zero(name, getattr(self, name))
        for name in ("min_lr", "warmup", "weight_decay", "clip"):
            require_at_least_zero(name, getattr(self, name))
        require_positive("loss_scale_window", self.loss_scale_window)
        if self.min_lr > self.lr:
            raise InputError(
                "min_lr={min_lr} is above lr={lr}, where the rate comes down from; "
                "take at most {lr}",
                min_lr=self.min_lr,
                lr=self.lr,
            )

    def rate(self, update: int, steps: int) -> float:
        """Returns the learning rate of ``update``, from 0, in a run of ``steps``.

        >>> learning = OptimizerSettings(lr=1.0, warmup=2)
        >>> [round(learning.rate(update, 6), 2) for update in range(6)]
        [0.5, 1.0, 1.0, 0.85, 0.5, 0.15]
        """
        if update < self.warmup:
            return self.lr * (update + 1) / self.warmup
        if self.lr_schedule == "constant":
            return self.lr
        progress = min(1.0, (update - self.warmup) / max(1, steps - self.warmup))
        return self.min_lr + (self.lr - self.min_lr) * (1 + math.cos(math.pi * progress)) / 2
