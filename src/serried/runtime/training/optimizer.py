"""The optimizer of one rank: gradients made whole, measured, clipped, and learned from by AdamW.

    gradients, summed over data parallel ranks        stage: REDUCE_GRAD
    + over tp, where tp ranks saw parts of the rows   routers under sequence_parallel
    + of embedding and output, where they are tied    embd
    norm over the whole model  ──> not finite: skip   (float16: and halve the loss scale)
    x min(1, clip / norm) / loss scale  ──> AdamW at this update's rate

AdamW works on the part of a weight that this rank holds, as a plain tensor: it learns element by
element, so that is the same, and each of its operations on a DTensor would cost ten times as much.
A parameter that several ranks hold counts once in the norm: its squares are divided by how
many ranks of the stage hold the same shard, and summed over all ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate

from serried.errors import SerriedError
from serried.runtime.job.report import Learned
from serried.runtime.job.settings import TrainSettings
from serried.runtime.model.experts import Experts
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.precision import loss_dtype
from serried.runtime.training.buffers import GradientBuffer, copy_part, expert_parameters, local_of
from serried.runtime.training.loop_state import LoopState
from serried.runtime.training.mesh import TrainMesh


class Optimizer:
    """Learns from the gradients of a rank's stages; all ranks call it together."""

    def __init__(
        self,
        models: list[HeldStage],
        buffers: list[GradientBuffer],
        state: LoopState,
        settings: TrainSettings,
        mesh: TrainMesh,
    ) -> None:
        self.settings, self.mesh = settings, mesh
        self.models, self.buffers, self.state = models, buffers, state
        self.weights = _weights(models, loss_dtype(settings))
        self.adamw = torch.optim.AdamW(
            self.weights.values(),
            lr=settings.optimizer.lr,
            weight_decay=settings.optimizer.weight_decay,
        )
        of_experts = {id(p) for model in models for p in expert_parameters(model)}
        self._ranks_with = {
            parameter: self._count_holders(parameter, is_expert=id(parameter) in of_experts)
            for parameter in self.weights
        }
        self._in_parts = list(_in_parts(models, settings))
        """Whole weights of which each tp rank has a part of the gradient."""

    def step(self) -> Learned:
        """Learns from the gradients, or skips the step; then there are none any more.

        Raises SerriedError when they are not finite and no loss scale could help.
        """
        state = self.state
        # The learning rate follows the updates made: a skipped step takes nothing of the warm-up.
        rate = self.settings.optimizer.rate(state.updates, self.settings.steps)
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
                dtype=self.settings.dtype,
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
        torch.optim.AdamW(self.weights.values(), lr=0.0, weight_decay=0.0).step()
        self.zero_grad()

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
            _place_as(parameter)
        for weight in self._in_parts:
            dist.all_reduce(_gradient(weight), group=self.mesh.group("tp"))
        # A gradient that several ranks hold counts 1 / ranks on each of them, so the sum over all
        # ranks has it once; the second copy of a tied weight is left out.
        copy = self._tied()[1] if self._is_tied_apart else None
        squares = torch.zeros((), dtype=torch.float64, device=self.mesh.device)
        for parameter, ranks in self._ranks_with.items():
            if parameter is not copy and parameter.grad is not None:
                squares += _gradient(parameter).double().square().sum() / ranks
        dist.all_reduce(squares)
        return math.sqrt(squares.item()) if math.isfinite(squares.item()) else math.inf

    @property
    def tied_stage(self) -> int | None:
        """A stage of this rank that has a copy of the tied weight, where two stages have one."""
        if not self._is_tied_apart:
            return None
        first, last = self._tied()
        if first is not None:
            return 0
        return None if last is None else self.settings.num_stages - 1

    @torch.no_grad()
    def join_tied(self) -> None:
        """Sums the gradients of a tied weight's two copies; ranks that have one call it."""
        first, last = self._tied()
        for copy in (first, last):
            if copy is not None:
                _place_as(copy)  # over tp, one end's may be whole here and the other's a shard
        if first is not None and last is not None:
            both = _gradient(first) + _gradient(last)
            _gradient(first).copy_(both)
            _gradient(last).copy_(both)
            return
        held = first if first is not None else last
        assert held is not None
        dist.all_reduce(_gradient(held), group=self.mesh.group("embd"))

    @property
    def _is_tied_apart(self) -> bool:
        """Whether embedding and output share a weight that each of two stages has a copy of."""
        return self.settings.model.tie and self.settings.num_stages > 1

    def _tied(self) -> tuple[nn.Parameter | None, nn.Parameter | None]:
        """Returns this rank's copies of the tied weight: the first stage's and the last's."""
        first = next((model.ends()[0] for model in self.models if model.stage == 0), None)
        last = next((model.ends()[1] for model in self.models if model.is_last), None)
        return first, last

    def _count_holders(self, parameter: nn.Parameter, *, is_expert: bool) -> int:
        """Returns how many ranks of the stage hold the very same shard."""
        ranks = self.mesh.size("stage")
        if is_expert:
            ranks //= self.mesh.size("ep")
        if isinstance(parameter, DTensor):
            for axis, placement in enumerate(parameter.placements):
                # Along an axis that cuts the weight every rank holds another part of it.
                if not isinstance(placement, Replicate):
                    ranks //= parameter.device_mesh.size(axis)
        return ranks

    def _factor(self, norm: float) -> float:
        """Returns what clipping multiplies gradients by, as torch's clip_grad_norm_ does."""
        clip = self.settings.optimizer.clip
        return min(1.0, clip / (norm + 1e-6)) if clip else 1.0

    @torch.no_grad()
    def _learn(self, rate: float, factor: float) -> None:
        for group in self.adamw.param_groups:
            group["lr"] = rate
        for parameter, weight in self.weights.items():
            if parameter.grad is not None:  # widened first: the scale may be too small for float16
                weight.grad = _gradient(parameter).to(weight.dtype).mul_(factor)
        self.adamw.step()
        for parameter, weight in self.weights.items():
            copy_part(weight, parameter)


def _weights(models: list[HeldStage], dtype: torch.dtype) -> dict[nn.Parameter, nn.Parameter]:
    """Returns what the optimizer changes for each parameter, in ``dtype``.

    That is this rank's part of the parameter itself, or a copy of it where types differ.
    """
    return {
        parameter: nn.Parameter(local_of(parameter.detach()).to(dtype))
        for model in models
        for parameter in model.parameters()
    }


def _in_parts(models: list[HeldStage], settings: TrainSettings) -> Iterator[Tensor]:
    """Yields the whole weights of which each tp rank has a part of the gradient."""
    if settings.tp == 1:
        return
    for model in models:
        yield from model.partly_seen()
        for module in model.modules():
            # Under sequence_parallel each tp rank routes its own part of the sequence.
            if isinstance(module, Experts) and settings.sequence_parallel:
                yield module.router.weight


def _gradient(parameter: Tensor) -> Tensor:
    """Returns this rank's part of a gradient, to change in place."""
    assert parameter.grad is not None
    return local_of(parameter.grad)


def _place_as(parameter: nn.Parameter) -> None:
    """Makes a gradient lie as its parameter: norms' come in parts under sequence parallelism."""
    gradient: Any = parameter.grad
    if not (isinstance(parameter, DTensor) and isinstance(gradient, DTensor)):
        return
    if gradient.placements != parameter.placements:
        parameter.grad = gradient.redistribute(placements=parameter.placements)
