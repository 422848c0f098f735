"""HeldStage: what training asks of one pipeline stage, whatever model it is cut from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor, nn


class HeldStage(nn.Module):
    """Maps tokens or hidden states (batch, sequence …) to hidden states or scores."""

    stage: int
    """Which stage it is, from 0."""
    is_last: bool
    vocabulary: int
    """Rows of the embedding and columns of the scores."""

    @abstractmethod
    def loss(self, output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
        """Returns the cross entropy of the next tokens, in nats, in float32 at least."""

    @abstractmethod
    def held(self) -> tuple[str, ...]:
        """Returns the names of what the stage holds of the model."""

    @abstractmethod
    def draw_weights(self, seed: int) -> None:
        """Sets every weight: from ``seed`` and its name in the whole model, or from a file."""

    @abstractmethod
    def units(self) -> Iterable[nn.Module]:
        """Returns the layers, which ZeRO gathers one by one."""

    @abstractmethod
    def weights(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields each weight that the stage holds, under its name in the whole model."""

    @abstractmethod
    def ends(self) -> tuple[nn.Parameter | None, nn.Parameter | None]:
        """Returns the embedding's weight and the output's, each where the stage holds it."""

    def kept_whole(self) -> Mapping[str, int]:
        """Returns which weights a checkpoint keeps whole, by name, and how many of their rows.

        Other weights are kept in the parts in which ranks hold them: none is kept whole.
        """
        return {}

    def partly_seen(self) -> Iterable[nn.Parameter]:
        """Returns whole weights of which each tp rank sees a part of the gradient: none."""
        return ()
