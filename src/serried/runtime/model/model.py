"""A small Llama-like GPT over bytes, cut into pipeline stages, the same weights in any layout.

    Stage (first)    embed, layers.0 …            bytes        -> hidden states
    Stage (middle)   layers.k …                   hidden       -> hidden
    Stage (last)     layers.n …, norm, output     hidden       -> scores of the next byte

Each weight is drawn from the seed and its own name in the whole model, so it does not
depend on which stage holds it, nor on how it is sharded afterwards. A vocabulary of more rows than
there are bytes, which tp ranks can share evenly, is zeros there: no byte finds them, they score
nothing, and so they never learn. How heads attend and what
a layer's feed-forward is are given from outside (Parts): a layout brings its own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from serried.runtime.job.settings import VOCABULARY, ModelSizes, stage_layers
from serried.runtime.model.context import Attention as Attend
from serried.runtime.model.held_stage import HeldStage

PADDED = ("embed.weight", "output.weight")
"""Weights that may have more rows than there are bytes."""


def attend_causally(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attends to the places before, with all of the sequence at hand."""
    return functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1]
    )


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


@dataclass(frozen=True)
class Parts:
    """Holds what a layout puts into a stage; by default, what one process uses."""

    attend: Attend = attend_causally
    feed_forward: Callable[[ModelSizes], nn.Module] = FeedForward
    places: Tensor | None = None
    """Places of the sequence that this rank's shard holds; None means all."""
    recompute: Literal["none", "selective", "full"] = "none"


class Norm(nn.RMSNorm):
    """Computes an RMSNorm; one whose weight is wider than the stream does so in its own type."""

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        """Takes and returns (batch, sequence, hidden), in the type of ``x``."""
        return super().forward(x.to(self.weight.dtype)).to(x.dtype)


class Attention(nn.Module):
    """Attends to the bytes before, in heads, with rotary positions; KV heads may be shared."""

    def __init__(self, sizes: ModelSizes, parts: Parts) -> None:
        super().__init__()
        self.head_size = sizes.head_size
        self.attend = parts.attend
        self.recompute = parts.recompute == "selective"
        shared = sizes.num_kv_heads * sizes.head_size
        self.wq = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        self.wk = nn.Linear(sizes.hidden, shared, bias=False)
        self.wv = nn.Linear(sizes.hidden, shared, bias=False)
        self.wo = nn.Linear(sizes.hidden, sizes.hidden, bias=False)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        """Takes and returns (batch, sequence, hidden); computes with the heads it holds."""
        q, k, v = (self._heads(project(x)) for project in (self.wq, self.wk, self.wv))
        if self.recompute and torch.is_grad_enabled():
            mixed = checkpoint(self._mix, q, k, v, angles, use_reentrant=False)
        else:
            mixed = self._mix(q, k, v, angles)
        out: Tensor = self.wo(mixed.transpose(1, 2).flatten(2))
        return out

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], -1, self.head_size).transpose(1, 2)

    def _mix(self, q: Tensor, k: Tensor, v: Tensor, angles: Tensor) -> Tensor:
        return self.attend(_turn(q, angles), _turn(k, angles), v)


class Layer(nn.Module):
    """Adds attention and then feed-forward to the stream, each behind a norm."""

    def __init__(self, sizes: ModelSizes, parts: Parts) -> None:
        super().__init__()
        self.attention_norm = Norm(sizes.hidden)
        self.attention = Attention(sizes, parts)
        self.ffn_norm = Norm(sizes.hidden)
        self.feed_forward = parts.feed_forward(sizes)
        self.dropout = sizes.dropout
        self.recompute = parts.recompute == "full"

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        """Takes and returns (batch, sequence, hidden)."""
        if self.recompute and torch.is_grad_enabled():
            again: Tensor = checkpoint(self._run, x, angles, use_reentrant=False)
            return again
        return self._run(x, angles)

    def _run(self, x: Tensor, angles: Tensor) -> Tensor:
        x = x + self._drop(self.attention(self.attention_norm(x), angles))
        return x + self._drop(self.feed_forward(self.ffn_norm(x)))

    def _drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout, self.training) if self.dropout else x


class Stage(HeldStage):
    """Holds one pipeline stage under the names of the whole model, such as ``layers.3``."""

    angles: Tensor

    def __init__(
        self,
        sizes: ModelSizes,
        parts: Parts | None = None,
        *,
        stage: int,
        num_stages: int,
        vocabulary: int = VOCABULARY,
    ) -> None:
        super().__init__()
        parts = parts or Parts()
        self.sizes = sizes
        self.vocabulary = vocabulary
        """Rows of embedding and output, of which the first are the bytes."""
        self.stage = stage
        self.is_last = stage == num_stages - 1
        self.score_mesh: DeviceMesh | None = None
        """The tensor parallel ranks that each score a part of the vocabulary, if they do."""
        if stage == 0:
            self.embed = nn.Embedding(vocabulary, sizes.hidden)
        held = stage_layers(sizes.layers, num_stages)[stage]
        self.layers = nn.ModuleDict({str(number): Layer(sizes, parts) for number in held})
        if self.is_last:
            self.norm = Norm(sizes.hidden)
            self.output = nn.Linear(sizes.hidden, vocabulary, bias=False)
        self.register_buffer("angles", _angles(sizes, parts.places), persistent=False)
        self.tie()

    def tie(self) -> None:
        """Makes the output's weight the embedding's, where asked for and both are here."""
        if self.sizes.tie and self.is_last and self.stage == 0:
            self.output.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        """Takes bytes (batch, sequence) or hidden states; returns hidden states or scores."""
        if hasattr(self, "embed"):
            x = self.embed(x)
        for layer in self.layers.values():
            x = layer(x, self.angles)
        return self.output(self.norm(x)) if self.is_last else x

    def loss(self, output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
        """Returns the cross entropy of the next bytes, in nats, in float32 at least.

        ``reduction`` is ``mean`` or ``sum``, as torch calls them.
        """
        wide = torch.promote_types(output.dtype, torch.float32)
        if self.score_mesh is None:
            # A cut costs memory in backward, also where it leaves all.
            bytes_alone = output[..., :VOCABULARY] if self.vocabulary > VOCABULARY else output
            scores = bytes_alone.to(wide).flatten(0, 1)
            return functional.cross_entropy(scores, target.flatten(), reduction=reduction)
        scores = self._without_padding(output.to(wide).flatten(0, 1), self.score_mesh)
        split = DTensor.from_local(scores, self.score_mesh, [Shard(-1)], run_check=False)
        loss = functional.cross_entropy(split, target.flatten(), reduction=reduction)
        assert isinstance(loss, DTensor)
        return loss.to_local()

    def _without_padding(self, scores: Tensor, mesh: DeviceMesh) -> Tensor:
        """Gives this rank's scores of what is no byte the least value: they then count nothing."""
        if self.vocabulary == VOCABULARY:
            return scores
        first, width = mesh.get_local_rank() * scores.shape[-1], scores.shape[-1]
        is_padding = torch.arange(first, first + width, device=scores.device) >= VOCABULARY
        return scores.masked_fill(is_padding, torch.finfo(scores.dtype).min)

    def held(self) -> tuple[str, ...]:
        """Returns the names of what the stage holds of the model."""
        layers = [f"layers.{number}" for number in self.layers]
        return (
            *(("embed",) if hasattr(self, "embed") else ()),
            *layers,
            *(("norm", "output") if self.is_last else ()),
        )

    def units(self) -> Iterable[nn.Module]:
        """Returns the layers, which ZeRO gathers one by one."""
        return self.layers.values()

    def weights(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields each weight under its name in the whole model: a tied output is the embedding."""
        for name, parameter in self.named_parameters():
            is_copy = self.sizes.tie and name == "output.weight"
            yield ("embed.weight" if is_copy else name), parameter

    def kept_whole(self) -> Mapping[str, int]:
        """Returns the weights that are padded for tp, of which the bytes alone are kept."""
        return dict.fromkeys(PADDED, VOCABULARY) if self.vocabulary > VOCABULARY else {}

    def ends(self) -> tuple[nn.Parameter | None, nn.Parameter | None]:
        """Returns the embedding's weight and the output's, each where the stage holds it."""
        embed = self.embed.weight if hasattr(self, "embed") else None
        output = self.output.weight if self.is_last else None
        return cast(nn.Parameter | None, embed), cast(nn.Parameter | None, output)

    @torch.no_grad()
    def draw_weights(self, seed: int) -> None:
        """Sets every weight from ``seed`` and its name in the whole model."""
        for name, parameter in self.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
                continue
            source = "embed.weight" if self.sizes.tie and name == "output.weight" else name
            generator = torch.Generator().manual_seed(seed_of(seed, source))
            # Drawn for the bytes alone, so that they are the same with any padding.
            rows = VOCABULARY if name in PADDED else len(parameter)
            drawn = torch.randn(rows, *parameter.shape[1:], generator=generator)
            parameter.zero_()[:rows].copy_(drawn * self._spread(name))

    def _spread(self, name: str) -> float:
        """Returns a weight's standard deviation: smaller where it adds to the stream (GPT-2)."""
        adds = name.endswith(("wo.weight", "w2.weight"))
        return 0.02 / math.sqrt(2 * self.sizes.layers) if adds else 0.02


def seed_of(seed: int, name: str) -> int:
    """Returns the seed that a weight is drawn from, by the run's seed and the weight's name."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _angles(sizes: ModelSizes, places: Tensor | None) -> Tensor:
    """Returns cos and sin of the rotary angles: shape (2, places, half a head)."""
    half = sizes.head_size // 2
    rates = 10_000.0 ** (-torch.arange(half) / half)
    places = torch.arange(sizes.seq_len) if places is None else places
    angles = torch.outer(places, rates)
    return torch.stack((angles.cos(), angles.sin()))


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    """Turns pairs (first half, second half) of (batch, heads, sequence, head size)."""
    cos, sin = angles
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
