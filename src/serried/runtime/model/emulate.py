"""Emulated compute: fixed times stand for a stage's arithmetic; everything between ranks is real.

    forward    per layer 2 all-reduces of real activations over tp, then sleep until
               forward_ms have passed since the start      -> an output of the real shape
    backward   the same with backward_ms                   -> gradients of the real shapes
    halves     each takes half of backward_ms; the input half runs the all-reduces

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

from serried.action import ActionKind
from serried.runtime.job.settings import VOCABULARY, Emulated, ModelSizes
from serried.runtime.model.model import Stage

ALL_REDUCES_PER_LAYER = 2
"""One after attention, one after feed-forward; as many backward (Megatron-LM, arXiv 1909.08053)."""


class EmulatedStage(Stage):
    """Holds the parameters of a Stage but takes fixed times instead of computing."""

    def __init__(
        self,
        sizes: ModelSizes,
        times: Emulated,
        *,
        stage: int,
        num_stages: int,
        vocabulary: int = VOCABULARY,
    ) -> None:
        super().__init__(sizes, stage=stage, num_stages=num_stages, vocabulary=vocabulary)
        self.tp_group: dist.ProcessGroup | None = None
        self._activations = torch.zeros(0)
        half = times.backward_ms / 2
        self._times_ms = {
            ActionKind.F: times.forward_ms,
            ActionKind.B: times.backward_ms,
            ActionKind.I: half,
            ActionKind.W: half,
        }

    def forward(self, x: Tensor) -> Tensor:
        """Returns zeros shaped as the Stage's output."""
        self._activations = torch.zeros(
            *x.shape[:2], self.sizes.hidden, device=x.device, dtype=self.angles.dtype
        )
        out: Tensor = _Nothing.apply(x, self, *self.parameters())  # type: ignore[no-untyped-call]
        return out

    def loss(self, output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
        """Returns a zero that backward can start from: emulated scores mean nothing."""
        return output.sum()

    def take(self, kind: ActionKind, start_ns: int) -> None:
        """Takes the time of work that began at ``start_ns`` of CLOCK_MONOTONIC, all-reduces in it.

        Not autograd but who runs the work calls this: torch leaves the first stage's input
        half empty, and runs parts of a graph again for weight halves.
        """
        end_ns = start_ns + round(self._times_ms[kind] * 1e6)
        if kind is not ActionKind.W and self.tp_group is not None:
            for _ in range(ALL_REDUCES_PER_LAYER * len(self.layers)):
                dist.all_reduce(self._activations, group=self.tp_group)
        time.sleep(max(0, end_ns - time.monotonic_ns()) / 1e9)


class _Nothing(torch.autograd.Function):
    """Maps anything to zeros, with zeros for gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stage: EmulatedStage, *parameters: Tensor) -> Tensor:
        ctx.x, ctx.parameters = x, parameters
        width = stage.vocabulary if stage.is_last else stage.sizes.hidden
        return torch.zeros(*x.shape[:2], width, device=x.device, dtype=stage.angles.dtype)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        of_input = torch.zeros_like(ctx.x) if ctx.x.is_floating_point() else None
        return of_input, None, *map(torch.zeros_like, ctx.parameters)
