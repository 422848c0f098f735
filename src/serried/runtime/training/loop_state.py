"""What a run must remember from one step to the next, beside weights and optimizer state.

step       the next step
samples    samples read; which bytes come next follows from it and the seed
updates    steps learned from; the learning rate follows from it
scale      float16's loss scale and how long it has been good
random     the state of torch's generators on this rank: dropout

randomness          the same on                        seeded by
weights             all ranks                          seed, name of the weight
samples             all ranks                          seed, number of the sample in the run
dropout             ranks of one tp group, unless      seed, place on pp, dp, cp
                    sequence_parallel parts their rows (and then tp)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import torch

from serried.runtime.job.settings import TrainSettings
from serried.runtime.model.precision import LossScale
from serried.runtime.training.mesh import TrainMesh


@dataclass
class LoopState:
    """Holds a rank's place in the run; a checkpoint keeps it beside the tensors."""

    step: int = 0
    updates: int = 0
    samples: int = 0
    scale: LossScale | None = field(default=None)

    @classmethod
    def of(cls, settings: TrainSettings) -> LoopState:
        """Returns the state that a run begins with."""
        return cls(scale=LossScale.of(settings))

    @property
    def loss_scale(self) -> float:
        """What the next step's loss is to be multiplied by."""
        return self.scale.value if self.scale else 1.0


def seed_dropout(seed: int, mesh: TrainMesh, *, is_sequence_cut: bool = False) -> None:
    """Seeds this rank's generators by its place; tp peers that see the same rows drop the same.

    ``is_sequence_cut`` says that they see other parts of a sequence.
    """
    axes = ("pp", "dp", "cp", "tp") if is_sequence_cut else ("pp", "dp", "cp")
    place = "/".join(f"{axis}{mesh.coordinate(axis)}" for axis in axes)
    digest = hashlib.blake2b(f"{seed}/{place}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest, "big") >> 1)


def random_state() -> dict[str, Any]:
    """Returns the state of the CPU's generator and, where there is one, the GPU's."""
    state = {"cpu": torch.get_rng_state()}
    return state | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})


def set_random_state(state: dict[str, Any]) -> None:
    """Sets the generators to what ``random_state`` gave."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
