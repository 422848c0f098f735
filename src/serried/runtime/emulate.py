"""Emulated compute: fixed times stand for a stage's arithmetic; everything between ranks is real.

    forward    per layer 2 all-reduces of real activations over tp, then sleep until
               forward_ms have passed since the start      -> an output of the real shape
    backward   the same with backward_ms                    -> gradients of the real shapes

Messages between stages, gradient averaging over dp and the optimizer run as ever. On few
cores, where real arithmetic of many ranks would only queue up, the timeline is then that
of a pipeline whose ranks each have a processor of their own.
"""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from serried.runtime.model import Stage
from serried.runtime.settings import VOCABULARY, Emulated, ModelSizes

ALL_REDUCES_PER_LAYER = 2
"""One after attention, one after feed-forward; as many backward (Megatron-LM, arXiv 1909.08053)."""


class EmulatedStage(Stage):
    """Holds the parameters of a Stage but takes fixed times instead of computing."""

    def __init__(self, sizes: ModelSizes, times: Emulated, *, stage: int, pp: int) -> None:
        super().__init__(sizes, stage=stage, pp=pp)
        self.times = times
        self.tp_group: dist.ProcessGroup | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Takes ``forward_ms``; returns zeros shaped as the Stage's output."""
        out: Tensor = _FixedTime.apply(x, self, *self.parameters())  # type: ignore[no-untyped-call]
        return out

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Returns a zero that backward can start from: emulated scores mean nothing."""
        return output.sum()

    def exchange(self, shape: tuple[int, ...]) -> None:
        """Runs the tensor parallel all-reduces of this stage's layers once."""
        if self.tp_group is not None:
            activations = torch.zeros(*shape, self.sizes.hidden, device=self.angles.device)
            for _ in range(ALL_REDUCES_PER_LAYER * len(self.layers)):
                dist.all_reduce(activations, group=self.tp_group)


class _FixedTime(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, stage: EmulatedStage, *parameters: Tensor) -> Tensor:
        end = time.monotonic() + stage.times.forward_ms / 1e3
        ctx.stage, ctx.x, ctx.parameters = stage, x, parameters
        stage.exchange(tuple(x.shape[:2]))
        width = VOCABULARY if stage.is_last else stage.sizes.hidden
        output = torch.zeros(*x.shape[:2], width, device=x.device)
        _sleep_until(end)
        return output

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        end = time.monotonic() + ctx.stage.times.backward_ms / 1e3
        ctx.stage.exchange(tuple(ctx.x.shape[:2]))
        of_input = torch.zeros_like(ctx.x) if ctx.x.is_floating_point() else None
        # Adding up gradients is computation too: only the first of a step is there to reduce.
        of_parameters = [torch.zeros_like(p) if p.grad is None else None for p in ctx.parameters]
        _sleep_until(end)
        return of_input, None, *of_parameters


def _sleep_until(end_s: float) -> None:
    time.sleep(max(0.0, end_s - time.monotonic()))
