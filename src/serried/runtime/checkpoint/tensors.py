"""Every tensor that a rank must keep, under the name it has in the whole model.

    model.layers.3.attention.wq.weight           what the optimizer changes: float32 at least
    optimizer.layers.3.attention.wq.weight.…     AdamW's exp_avg, exp_avg_sq and step
    random.5.cpu                                 the generator of rank 5

Names know nothing of stages, and a sharded tensor says itself which part of the whole it is, so
what one layout wrote another reads. A tied output is the embedding, and is kept under its name. A
vocabulary that is padded for tp is kept as the bytes alone: those rows, whole, from every rank. So
is a weight of which a rank holds several parts, as of an expert's two matrices in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate

from serried.runtime.training.buffers import copy_part, sharded_as
from serried.runtime.training.loop_state import random_state, set_random_state
from serried.runtime.training.optimizer import Optimizer


class _KeptTensor(NamedTuple):
    """Names a parameter as the whole model does, and says how its parts are kept."""

    name: str
    parameter: nn.Parameter
    weight: nn.Parameter
    """What the optimizer changes: this rank's part of the parameter, or a wider copy of it."""
    rows: int | None
    """How many of its rows are kept, as a whole; None keeps the part that each rank holds."""

    def kept(self, part: Tensor) -> Tensor:
        """Returns what a checkpoint keeps, or reads, of ``part``, for which all its ranks call.

        ``part`` is cut as the parameter is, or one number for all of it.
        """
        if not part.dim():
            return part
        lying = sharded_as(self.parameter, part)
        if self.rows is None:
            return lying
        whole = lying.full_tensor() if isinstance(lying, DTensor) else lying
        return whole[: self.rows].clone()

    def take(self, kept: Tensor, part: Tensor) -> None:
        """Copies this rank's part of what ``kept`` gave and a checkpoint was read into."""
        copy_part(kept if self.rows is None or not part.dim() else self._padded(kept), part)

    def _padded(self, rows: Tensor) -> Tensor:
        """Returns ``rows`` with zeros below them, cut as the parameter is."""
        whole = torch.zeros(self.parameter.shape, dtype=rows.dtype, device=rows.device)
        whole[: len(rows)] = rows
        if not isinstance(self.parameter, DTensor):
            return whole
        mesh, placements = self.parameter.device_mesh, self.parameter.placements
        everywhere = DTensor.from_local(whole, mesh, [Replicate()] * mesh.ndim, run_check=False)
        return everywhere.redistribute(placements=placements)


class RunTensors:
    """Names the tensors of a rank; made before the first forward, while parameters are sharded."""

    def __init__(
        self,
        weights: Iterable[tuple[str, nn.Parameter]],
        optimizer: Optimizer,
        *,
        rank: int,
        rows: Mapping[str, int] | None = None,
    ) -> None:
        """Prepares them for this rank's ``weights`` by their names in the whole model.

        Two weights of one name are copies of one. Of those in ``rows`` so many are kept, whole.
        """
        self._optimizer = optimizer
        self._rank = rank
        self._held = [
            _KeptTensor(name, parameter, optimizer.weights[parameter], (rows or {}).get(name))
            for name, parameter in weights
        ]

    def tensors(self, *, random: bool) -> dict[str, Tensor]:
        """Returns the tensors themselves, to save or to load into; ``random`` adds this rank's."""
        found: dict[str, Tensor] = {}
        for held in reversed(self._held):  # of a tied pair, the first is kept
            found[f"model.{held.name}"] = held.kept(held.weight.detach())
            for key, tensor in self._optimizer.state_of(held.weight).items():
                found[f"optimizer.{held.name}.{key}"] = held.kept(tensor)
        if random:
            state = random_state()
            found |= {f"random.{self._rank}.{key}": tensor for key, tensor in state.items()}
        return found

    @torch.no_grad()
    def take_over(self, loaded: dict[str, Tensor]) -> None:
        """Goes on with ``loaded``, which ``tensors`` gave and a checkpoint was read into."""
        for held in self._held:
            held.take(loaded[f"model.{held.name}"], held.weight)
            for key, tensor in self._optimizer.state_of(held.weight).items():
                held.take(loaded[f"optimizer.{held.name}.{key}"], tensor)
            copy_part(held.weight, held.parameter)
        prefix = f"random.{self._rank}."
        random = {
            key.removeprefix(prefix): tensor
            for key, tensor in loaded.items()
            if key.startswith(prefix)
        }
        # A checkpoint of fewer ranks, or of another kind of device, may have no random state for
        # this rank.
        if random:
            set_random_state(random)
