"""A rank's part of its gradients, and how long they all are together: the norm over all groups.

    parameter of a stage        held alike by            counts on each as
    plain                       all ranks of the stage   1 / ranks of the stage
    cut over tp, or by ZeRO     ranks / those cut over   1 / that many
    an expert                   ranks / ep               1 / that many

So the sum of squares over all ranks of the job has each number of the model once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate

from serried.runtime.training.buffers import local_of
from serried.runtime.training.mesh import TrainMesh


def gradient_of(parameter: Tensor) -> Tensor:
    """Returns this rank's part of a gradient, to change in place."""
    assert parameter.grad is not None
    return local_of(parameter.grad)


def place_as(parameter: nn.Parameter) -> None:
    """Makes a gradient lie as its parameter: norms' come in parts under sequence parallelism."""
    gradient: Any = parameter.grad
    if not (isinstance(parameter, DTensor) and isinstance(gradient, DTensor)):
        return
    if gradient.placements != parameter.placements:
        parameter.grad = gradient.redistribute(placements=parameter.placements)


class GradientNorm:
    """Measures the gradients of a rank's stages; all ranks of the job call it together.

    >>> from serried.runtime.run.program import join
    >>> weight = nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([3.0, 4.0])
    >>> GradientNorm([weight], join()).measure()  # a job of one rank
    5.0
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        mesh: TrainMesh,
        *,
        experts: Collection[nn.Parameter] = (),
        copies: Collection[nn.Parameter] = (),
    ) -> None:
        """Prepares it for ``parameters`` of which ``experts`` are spread over ep.

        ``copies`` of weights that another stage has too are left out.
        """
        of_experts, left_out = {id(each) for each in experts}, {id(each) for each in copies}
        self._mesh = mesh
        self._ranks_with = {
            parameter: self._count_holders(parameter, is_expert=id(parameter) in of_experts)
            for parameter in parameters
            if id(parameter) not in left_out
        }

    @torch.no_grad()
    def measure(self) -> float:
        """Returns the norm of all gradients of the model, infinite where one is not finite."""
        # A gradient that several ranks hold counts 1 / ranks on each of them, so the sum over all
        # ranks has it once.
        squares = torch.zeros((), dtype=torch.float64, device=self._mesh.device)
        for parameter, ranks in self._ranks_with.items():
            if parameter.grad is not None:
                squares += gradient_of(parameter).double().square().sum() / ranks
        dist.all_reduce(squares)
        return math.sqrt(squares.item()) if math.isfinite(squares.item()) else math.inf

    def _count_holders(self, parameter: nn.Parameter, *, is_expert: bool) -> int:
        """Returns how many ranks of the stage hold the very same shard."""
        ranks = self._mesh.size("stage")
        if is_expert:
            ranks //= self._mesh.size("ep")
        if isinstance(parameter, DTensor):
            for axis, placement in enumerate(parameter.placements):
                # Along an axis that cuts the weight every rank holds another part of it.
                if not isinstance(placement, Replicate):
                    ranks //= parameter.device_mesh.size(axis)
        return ranks
