"""A small Llama-like GPT over bytes, cut into pipeline stages, the same weights in any layout.

    Stage (first)    embed, layers.0 …            bytes        -> hidden states
    Stage (middle)   layers.k …                   hidden       -> hidden
    Stage (last)     layers.n …, norm, output     hidden       -> scores of the next byte

Each weight is drawn from the seed and its own name in the whole model, so it does not
depend on which stage holds it, nor on how it is sharded afterwards.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from serried.runtime.settings import VOCABULARY, ModelSizes, stage_layers


class Attention(nn.Module):
    """Attends to the bytes before, in heads, with rotary positions."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.head_size = sizes.head_size
        self.wq = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        self.wk = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        self.wv = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        self.wo = nn.Linear(sizes.hidden, sizes.hidden, bias=False)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        """Takes and returns (batch, sequence, hidden); computes with the heads it holds."""
        batch, length = x.shape[:2]
        shape = (batch, length, -1, self.head_size)
        q = _turn(self.wq(x).view(shape).transpose(1, 2), angles)
        k = _turn(self.wk(x).view(shape).transpose(1, 2), angles)
        v = self.wv(x).view(shape).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: Tensor = self.wo(mixed.transpose(1, 2).reshape(batch, length, -1))
        return out


class FeedForward(nn.Module):
    """Computes SwiGLU: w2 (silu(w1 x) * w3 x)."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.w1 = nn.Linear(sizes.hidden, sizes.ffn, bias=False)
        self.w2 = nn.Linear(sizes.ffn, sizes.hidden, bias=False)
        self.w3 = nn.Linear(sizes.hidden, sizes.ffn, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Takes and returns (batch, sequence, hidden)."""
        out: Tensor = self.w2(functional.silu(self.w1(x)) * self.w3(x))
        return out


class Layer(nn.Module):
    """Adds attention and then feed-forward to the stream, each behind a norm."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(sizes.hidden, eps=1e-5)
        self.attention = Attention(sizes)
        self.ffn_norm = nn.RMSNorm(sizes.hidden, eps=1e-5)
        self.feed_forward = FeedForward(sizes)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        """Takes and returns (batch, sequence, hidden)."""
        x = x + self.attention(self.attention_norm(x), angles)
        out: Tensor = x + self.feed_forward(self.ffn_norm(x))
        return out


class Stage(nn.Module):
    """Holds one pipeline stage under the names of the whole model, such as ``layers.3``."""

    angles: Tensor

    def __init__(self, sizes: ModelSizes, *, stage: int, num_stages: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.stage = stage
        self.is_last = stage == num_stages - 1
        if stage == 0:
            self.embed = nn.Embedding(VOCABULARY, sizes.hidden)
        held = stage_layers(sizes.layers, num_stages)[stage]
        self.layers = nn.ModuleDict({str(number): Layer(sizes) for number in held})
        if self.is_last:
            self.norm = nn.RMSNorm(sizes.hidden, eps=1e-5)
            self.output = nn.Linear(sizes.hidden, VOCABULARY, bias=False)
        self.register_buffer("angles", _angles(sizes), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Takes bytes (batch, sequence) or hidden states; returns hidden states or scores."""
        if hasattr(self, "embed"):
            x = self.embed(x)
        for layer in self.layers.values():
            x = layer(x, self.angles)
        return self.output(self.norm(x)) if self.is_last else x

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Returns the mean cross entropy of the next byte, in nats."""
        return functional.cross_entropy(output.flatten(0, 1), target.flatten())

    def held(self) -> tuple[str, ...]:
        """Returns the names of what the stage holds of the model."""
        layers = [f"layers.{number}" for number in self.layers]
        return (
            *(("embed",) if hasattr(self, "embed") else ()),
            *layers,
            *(("norm", "output") if self.is_last else ()),
        )

    @torch.no_grad()
    def draw_weights(self, seed: int) -> None:
        """Sets every weight from ``seed`` and its name in the whole model."""
        for name, parameter in self.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
                continue
            generator = torch.Generator().manual_seed(_seed_of(seed, name))
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(drawn * self._spread(name))

    def _spread(self, name: str) -> float:
        """Returns a weight's standard deviation: smaller where it adds to the stream (GPT-2)."""
        adds = name.endswith(("wo.weight", "w2.weight"))
        return 0.02 / math.sqrt(2 * self.sizes.layers) if adds else 0.02


def _seed_of(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _angles(sizes: ModelSizes) -> Tensor:
    """Returns cos and sin of the rotary angles: shape (2, sequence, half a head)."""
    half = sizes.head_size // 2
    rates = 10_000.0 ** (-torch.arange(half) / half)
    angles = torch.outer(torch.arange(sizes.seq_len), rates)
    return torch.stack((angles.cos(), angles.sin()))


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    """Turns pairs (first half, second half) of (batch, heads, sequence, head size)."""
    cos, sin = angles
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
