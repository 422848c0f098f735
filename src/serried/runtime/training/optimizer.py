"""The optimizer of one rank: gradients made whole, measured, clipped, and learned from.

    gradients, summed over data parallel ranks        stage: REDUCE_GRAD
    + over tp, where tp ranks saw parts of the rows   routers under sequence_parallel
    + of a weight that two stages share               embd
    norm over the whole model  ──> not finite: skip   (float16: and halve the loss scale)
    x min(1, clip / norm) / loss scale  ──> torch's optimizer at this update's rate

torch's optimizer works on the part of a weight that this rank holds, as a plain tensor: AdamW and
its like learn element by element, so that is the same, and each of its operations on a DTensor
would cost ten times as much. 16-bit parameters have a copy in float32, which it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from serried.errors import InputError, SerriedError
from serried.runtime.job.report import Learned
from serried.runtime.training.buffers import GradientBuffer, copy_part, local_of
from serried.runtime.training.gradients import GradientNorm, gradient_of, place_as
from serried.runtime.training.loop_state import LoopState
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.tied import TiedWeight

MakeOptimizer = Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]
"""Makes torch's optimizer of the weights that this rank holds."""


class Optimizer:
    """Learns from the gradients of a rank's stages; all ranks call it together."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        mesh: TrainMesh,
        state: LoopState,
        make: MakeOptimizer,
        *,
        rate: Callable[[int], float] | None = None,
        clip: float = 0.0,
        dtype: str = "float32",
        buffers: Sequence[GradientBuffer] = (),
        experts: Collection[nn.Parameter] = (),
        in_parts: Sequence[Tensor] = (),
        tied: Sequence[TiedWeight] = (),
    ) -> None:
        """Prepares it for a rank's ``parameters``.

        ``rate`` gives the learning rate of an update, from 0; without it ``make``'s stays.
        ``clip`` is the norm that is left, 0 clips nothing; ``dtype`` is what is computed in.
        Gradients of ``in_parts`` are summed over tp, those of ``tied`` weights by who runs steps.
        """
        self.mesh, self.state, self.make, self.rate = mesh, state, make, rate
        self.clip, self.dtype = clip, dtype
        self.buffers, self.tied = buffers, tied
        self.weights = {
            parameter: nn.Parameter(
                local_of(parameter.detach()).to(torch.promote_types(parameter.dtype, torch.float32))
            )
            for parameter in parameters
        }
        self.inner = make(list(self.weights.values()))
        copies = [weight.last for weight in tied if weight.last is not None]
        self._norm = GradientNorm(self.weights, mesh, experts=experts, copies=copies)
        self._in_parts = in_parts

    def step(self) -> Learned:
        """Learns from the gradients, or skips the step; then there are none any more.

        Raises SerriedError when they are not finite and no loss scale could help.
        """
        state = self.state
        # The learning rate follows the updates made: a skipped step takes nothing of the warm-up.
        rate = self.rate(state.updates) if self.rate else float(self.inner.param_groups[0]["lr"])
        scale = state.loss_scale
        norm = self.gather_gradients() / scale
        is_finite = math.isfinite(norm)
        if is_finite:
            self._learn(rate, self._factor(norm) / scale)
            state.updates += 1
        elif state.scale is None:
            raise SerriedError(
                "step {step}: the gradient is not finite in {dtype}; take a smaller lr, a longer "
                "warm-up or a wider dtype",
                step=state.step,
                dtype=self.dtype,
            )
        if state.scale:
            state.scale.update(is_finite=is_finite, step=state.step)
        self.zero_grad()
        return Learned(norm, rate, scale if state.scale else None, not is_finite)

    def rehearse(self) -> None:
        """Runs what a step runs, without learning: a first run is slow, and belongs to no step."""
        self.gather_gradients()
        for parameter, weight in self.weights.items():
            if parameter.grad is not None:
                weight.grad = torch.zeros_like(weight)
        _step_without_learning(self.make(list(self.weights.values())))
        self.zero_grad()

    def state_of(self, weight: nn.Parameter) -> dict[str, Tensor]:
        """Returns what torch's optimizer keeps of a weight, zeros where no step has made it yet.

        Raises InputError where it keeps anything but tensors, which no checkpoint holds.
        """
        if not self.inner.state[weight]:
            self._make_state()
        state: dict[str, Any] = self.inner.state[weight]
        for key, value in list(state.items()):
            if value is None:  # such as SGD's momentum without one
                del state[key]
            elif not isinstance(value, Tensor):
                raise InputError(
                    "{optimizer} keeps a {kind} as {key} of each weight, and a checkpoint holds "
                    "tensors only; take AdamW, SGD or another that keeps tensors",
                    optimizer=type(self.inner).__name__,
                    kind=type(value).__name__,
                    key=key,
                )
        return state

    def _make_state(self) -> None:
        """Lets torch's optimizer make what it keeps of weights that no step has changed: zeros."""
        new = [weight for weight in self.weights.values() if not self.inner.state[weight]]
        for weight in new:
            weight.grad = torch.zeros_like(weight)
        _step_without_learning(self.inner)
        for weight in new:
            weight.grad = None
            for value in self.inner.state[weight].values():
                if isinstance(value, Tensor):
                    value.zero_()

    def zero_grad(self) -> None:
        """Drops all gradients, those in buffers by setting them to zero."""
        in_buffers = {id(p) for buffer in self.buffers for p in buffer.parameters.values()}
        for buffer in self.buffers:
            buffer.zero()
        for parameter, weight in self.weights.items():
            # Gradients in a buffer are views of it and stay: else backward would not add to the
            # buffer.
            if id(parameter) not in in_buffers:
                parameter.grad = None
            weight.grad = None

    @torch.no_grad()
    def gather_gradients(self) -> float:
        """Makes gradients whole over tp; returns their norm over the model, a tied weight once."""
        for parameter in self.weights:
            place_as(parameter)
        for weight in self._in_parts:
            dist.all_reduce(gradient_of(weight), group=self.mesh.group("tp"))
        return self._norm.measure()

    def _factor(self, norm: float) -> float:
        """Returns what clipping multiplies gradients by, as torch's clip_grad_norm_ does."""
        return min(1.0, self.clip / (norm + 1e-6)) if self.clip else 1.0

    @torch.no_grad()
    def _learn(self, rate: float, factor: float) -> None:
        if self.rate:
            for group in self.inner.param_groups:
                group["lr"] = rate
        for parameter, weight in self.weights.items():
            if parameter.grad is not None:  # widened first: the scale may be too small for float16
                weight.grad = gradient_of(parameter).to(weight.dtype).mul_(factor)
        self.inner.step()
        for parameter, weight in self.weights.items():
            copy_part(weight, parameter)


def _step_without_learning(optimizer: torch.optim.Optimizer) -> None:
    """Runs a step at a rate of 0, which decays nothing either; the rates are as before then."""
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
