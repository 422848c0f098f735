"""Small models for the tests of stages: plain ones, and some that cannot be cut everywhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY = 32
LENGTH = 8


class Block(nn.Module):
    """Mixes places by a mask that is made outside, then adds a feed-forward."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        mixed = mask @ self.mix(self.norm(x))
        added: Tensor = self.out(torch.relu(mixed))
        return x + added


class Positions(nn.Module):
    """Has no weights, and is needed by every layer."""

    def forward(self, length: int) -> Tensor:
        mask = torch.ones(length, length).tril()
        return mask / mask.sum(1, keepdim=True)


class Text(nn.Module):
    """Is an everyday language model: positions as a bare parameter, dropout, a tied output."""

    def __init__(self, layers: int = 4, width: int = 16, *, tie: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width))
        self.drop = nn.Dropout(0.1)
        self.positions = Positions()
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        if tie:
            self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.drop(self.embed(tokens) + self.places[: tokens.shape[1]])
        mask = self.positions(tokens.shape[1]).to(x.device)
        for layer in self.layers:
            x = layer(x, mask)
        scores: Tensor = self.head(self.norm(x))
        return scores * 2


class Skip(Text):
    """Adds what was embedded again at the end."""

    def forward(self, tokens: Tensor) -> Tensor:
        first = x = self.embed(tokens)
        mask = self.positions(tokens.shape[1])
        for layer in self.layers:
            x = layer(x, mask)
        scores: Tensor = self.head(self.norm(x + first))
        return scores


class Masked(Text):
    """Makes its mask from the tokens, which later stages do not see."""

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        mask = self.positions(tokens.shape[1]) * (tokens != 0)[:, None]
        for layer in self.layers:
            x = layer(x, mask)
        scores: Tensor = self.head(self.norm(x))
        return scores


class TwoStreams(nn.Module):
    """Hands two tensors from layer to layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Bilinear(4, 4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        other = x * 2
        for layer in self.layers:
            x, other = layer(x, other), x
        return x


class Looped(nn.Module):
    """Runs one layer again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.again(self.last(self.again(self.first(x))))
        return found


class Answered(Text):
    """Returns a dict, as models of libraries do."""

    def forward(self, tokens: Tensor) -> Any:
        return {"logits": super().forward(tokens)}


def tokens(rows: int = 2) -> Tensor:
    """Returns tokens that differ from place to place, zero among them."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(VOCABULARY, (rows, LENGTH), generator=generator) * torch.tensor(
        [1, 0, 1, 1, 1, 1, 0, 1]
    )
