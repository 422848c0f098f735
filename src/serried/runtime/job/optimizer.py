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
from serried.runtime.job.option import (
    check_bounds,
    require_above_zero,
    require_at_least_zero,
    require_positive,
    setting,
)


@dataclass(frozen=True)
class OptimizerSettings:
    """Describes how a run learns.

    Raises InputError for rates and norms that cannot be.
    """

    lr: float = setting(
        3e-3,
        en="Highest learning rate of AdamW.",
        zh="AdamW 的最高学习率。",
        bound=require_above_zero,
    )
    """The highest learning rate."""
    lr_schedule: Literal["cosine", "constant"] = setting(
        "cosine",
        en="How the learning rate changes after the warm-up.",
        zh="预热之后学习率怎样变化。",
    )
    warmup: int = setting(
        0,
        en="Updates over which the learning rate rises from 0.",
        zh="学习率从 0 升上来用多少次更新。",
        bound=require_at_least_zero,
    )
    """Updates over which the rate rises to ``lr``."""
    min_lr: float = setting(
        0.0,
        en="Learning rate at which cosine ends.",
        zh="cosine 结束时的学习率。",
        bound=require_at_least_zero,
    )
    """The learning rate that cosine ends in."""
    weight_decay: float = setting(
        0.01, en="Weight decay of AdamW.", zh="AdamW 的权重衰减。", bound=require_at_least_zero
    )
    clip: float = setting(
        1.0,
        en="Norm that gradients are clipped to; 0 clips nothing.",
        zh="梯度裁剪到的范数；0 表示不裁剪。",
        bound=require_at_least_zero,
    )
    """The gradient's norm that clipping leaves; 0 clips nothing."""
    loss_scale: float = setting(
        65536.0,
        en="Loss scale that float16 begins with.",
        zh="float16 一开始的 loss 缩放倍数。",
        bound=require_above_zero,
    )
    """Where float16's loss scale begins; it halves when gradients overflow."""
    loss_scale_window: int = setting(
        2000,
        en="Updates without overflow after which the loss scale doubles.",
        zh="连续多少次更新没有溢出，loss 缩放倍数就翻倍。",
        bound=require_positive,
    )
    """Updates without an overflow after which the loss scale doubles."""

    def __post_init__(self) -> None:
        check_bounds(self)
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
