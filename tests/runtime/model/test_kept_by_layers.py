"""What autograd keeps of layers written in plain torch is what the plan of any job counts.

Each layer is written as its framework writes it: eager attention with dropout as Megatron's first,
fused attention, shared heads and SwiGLU as Llama's, latent attention as DeepSeek's, experts. Bytes
are those of storages, each once, weights left out, as ``saved_tensors_hooks`` shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from serried.plan.memory.implementation import Implementation
from serried.plan.memory.layer import LayerPlan, layer_items
from serried.plan.memory.recompute import layer_use
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.request import Recompute

BATCH, SEQUENCE, HIDDEN, HEADS = 2, 64, 128, 8
TOKENS = BATCH * SEQUENCE
GPT = ModelShape(
    "gpt", 1, HIDDEN, HEADS, HEADS, HIDDEN // HEADS, 4 * HIDDEN, 100, is_gated=False, norm="layer"
)
LLAMA = replace(GPT, kv_heads=2, ffn=352, is_gated=True, norm="rms")
LATENT = LatentAttention(kv_rank=32, nope_dim=16, rope_dim=8, v_dim=16, q_rank=48)
DEEPSEEK = replace(LLAMA, latent=LATENT)
CPU = Implementation("cpu", "torch, eager", mask_bytes=2)
"""Torch's kernels on a CPU: masks of dropout are as wide as what they are for."""


class SwiGlu(torch.autograd.Function):
    """Keeps what it reads alone, as fused kernels do."""

    @staticmethod
    def forward(ctx: Any, columns: Tensor) -> Tensor:
        ctx.save_for_backward(columns)
        gate, up = columns.chunk(2, dim=-1)
        return F.silu(gate) * up

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # pragma: no cover
        raise NotImplementedError


class RootNorm(torch.autograd.Function):
    """Keeps its input alone."""

    @staticmethod
    def forward(ctx: Any, stream: Tensor) -> Tensor:
        ctx.save_for_backward(stream)
        return F.rms_norm(stream, stream.shape[-1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # pragma: no cover
        raise NotImplementedError


def norm_of(model: ModelShape) -> Callable[[Tensor], Tensor]:
    return root_norm if model.norm == "rms" else layer_norm


def by_head(columns: Tensor, dim: int) -> Tensor:
    return columns.view(BATCH, SEQUENCE, -1, dim)


def root_norm(stream: Tensor) -> Tensor:
    found: Tensor = RootNorm.apply(stream)  # type: ignore[no-untyped-call]
    return found


def swiglu(columns: Tensor) -> Tensor:
    found: Tensor = SwiGlu.apply(columns)  # type: ignore[no-untyped-call]
    return found


def layer_norm(stream: Tensor) -> Tensor:
    return F.layer_norm(stream, stream.shape[-1:])


class Layer(nn.Module):
    """One layer of a model, on one of ``tp`` ranks without its messages."""

    def __init__(self, model: ModelShape, plan: LayerPlan, *, again: str = "") -> None:
        super().__init__()
        self.model, self.plan, self.again = model, plan, again
        self.norm = norm_of(model)
        self.weights = nn.ParameterDict()

    def linear(self, name: str, read: Tensor, width: int) -> Tensor:
        if name not in self.weights:
            self.weights[name] = torch.randn(width, read.shape[-1], dtype=read.dtype)
        return F.linear(read, self.weights[name])

    def forward(self, stream: Tensor) -> Tensor:
        stream = stream + self.dropped(self.attention(self.norm(stream)))
        return stream + self.dropped(self.feed_forward(self.norm(stream)))

    def dropped(self, added: Tensor) -> Tensor:
        return F.dropout(added, 0.1) if self.plan.has_hidden_dropout else added

    def attention(self, read: Tensor) -> Tensor:
        queries, keys, values = self.latent(read) if self.model.latent else self.heads(read)
        attend = self.fused if self.plan.has_flash_attention else self.eager
        if self.again == "core_attn":
            given = checkpoint(attend, queries, keys, values, use_reentrant=False)
        else:
            given = attend(queries, keys, values)
        return self.linear("o", given.transpose(1, 2).flatten(2), HIDDEN)

    def heads(self, read: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        dim, tp = self.model.head_dim, self.plan.tp
        own, shared = HEADS // tp * dim, self.model.kv_heads // tp * dim
        columns = self.linear("qkv", read, own + 2 * shared)
        parts = torch.split(columns, [own, shared, shared], dim=-1)
        # Rotary positions make new queries and keys; kernels want their values in one piece.
        wholes = [by_head(part.clone(), dim).transpose(1, 2) for part in parts]
        return wholes[0], wholes[1], wholes[2]

    def latent(self, read: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        nope, rope, dim = LATENT.nope_dim, LATENT.rope_dim, LATENT.v_dim
        narrow = self.norm(self.linear("q_down", read, LATENT.q_rank))
        queries = by_head(self.linear("q_up", narrow, HEADS * (nope + rope)), nope + rope)
        down = self.linear("kv_down", read, LATENT.kv_rank + rope)
        narrow, turned = torch.split(down, [LATENT.kv_rank, rope], dim=-1)
        up = self.linear("kv_up", self.norm(narrow), HEADS * (nope + dim))
        up = by_head(up, nope + dim)
        keys, values = torch.split(up, [nope, dim], dim=-1)
        one = turned.unsqueeze(2).expand(-1, -1, HEADS, -1)
        keys = torch.cat([keys, one], dim=-1)
        found = queries.clone(), keys, values.clone()
        return found[0].transpose(1, 2), found[1].transpose(1, 2), found[2].transpose(1, 2)

    def fused(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        is_shared = queries.shape[1] != keys.shape[1]
        return F.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, enable_gqa=is_shared
        )

    def eager(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        weights = torch.softmax(queries @ keys.transpose(-1, -2), dim=-1)
        if self.plan.has_attention_dropout:
            weights = F.dropout(weights, 0.1)
        # Kernels write it as the next layer reads it.
        return (weights @ values).transpose(1, 2).contiguous().transpose(1, 2)

    def feed_forward(self, read: Tensor) -> Tensor:
        return self.expert("", read, self.model.ffn // self.plan.tp)

    def expert(self, name: str, read: Tensor, width: int) -> Tensor:
        gated = self.model.is_gated
        columns = self.linear(f"{name}fc1", read, 2 * width if gated else width)
        given = swiglu(columns) if gated else F.gelu(columns)
        return self.linear(f"{name}fc2", given, HIDDEN)


class UnfusedLayer(Layer):
    """Writes RMSNorm and SwiGLU out, as models of transformers do."""

    def __init__(self, model: ModelShape, plan: LayerPlan) -> None:
        super().__init__(model, plan)
        self.weights["norm"] = torch.ones(HIDDEN, dtype=torch.bfloat16)
        self.norm = self.written_out

    def written_out(self, stream: Tensor) -> Tensor:
        wide = stream.float()
        root = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        weight = self.weights["norm"]
        found: Tensor = weight * (wide * root).to(stream.dtype)
        return found

    def expert(self, name: str, read: Tensor, width: int) -> Tensor:
        gate, up = self.linear("gate", read, width), self.linear("up", read, width)
        return self.linear("fc2", F.silu(gate) * up, HIDDEN)


def kept(layer: Layer, dtype: torch.dtype) -> int:
    """Returns the bytes that a layer keeps, weights left out, run once before to have them."""
    stream = torch.randn(BATCH, SEQUENCE, HIDDEN, dtype=dtype, requires_grad=True)
    layer(stream)
    owned = {each.untyped_storage().data_ptr() for each in layer.parameters()}
    found: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in owned:
            found[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(stream)
    return sum(storage.nbytes() for storage in found.values())


EAGER = LayerPlan(
    sequence=SEQUENCE,
    has_flash_attention=False,
    has_hidden_dropout=True,
    has_attention_dropout=True,
)
FUSED = LayerPlan(sequence=SEQUENCE)
STATISTICS = replace(CPU, norm_root_bytes=4)
"""LayerNorm keeps a mean and a root of each token, of 16 bits each on a CPU."""
CASES = {
    "eager with dropout": (GPT, EAGER, STATISTICS),
    "eager without": (GPT, replace(FUSED, has_flash_attention=False), STATISTICS),
    "fused": (GPT, FUSED, STATISTICS),
    "shared heads and SwiGLU": (LLAMA, FUSED, CPU),
    "one head of keys": (replace(LLAMA, kv_heads=1), FUSED, CPU),
    "latent": (DEEPSEEK, replace(FUSED, has_flash_attention=False), CPU),
    "a rank of two, stream whole": (LLAMA, replace(FUSED, tp=2, has_sequence_parallel=False), CPU),
}


@pytest.mark.parametrize("case", CASES)
def test_a_layer_keeps_to_the_byte_what_is_planned(case: str) -> None:
    model, plan, built = CASES[case]
    items = layer_items(model, False, plan, built)
    assert kept(Layer(model, plan), torch.bfloat16) == TOKENS * sum(
        each.token_bytes for each in items
    )


def test_in_32_bits_all_but_sums_of_rows_is_twice_as_wide() -> None:
    plan = replace(FUSED, compute="fp32")
    items = layer_items(LLAMA, False, plan, CPU)
    assert kept(Layer(LLAMA, plan), torch.float32) == TOKENS * sum(
        each.token_bytes for each in items
    )


def test_norms_and_swiglu_that_are_written_out_keep_copies() -> None:
    # A norm keeps its input in 32 bits, not the stream's 16, the quotient in 16, and its root.
    built = replace(
        CPU, norm_input_bytes=4, norm_copy_bytes=2, norm_root_bytes=4, activation_copies=1
    )
    items = layer_items(LLAMA, False, FUSED, built)
    assert kept(UnfusedLayer(LLAMA, FUSED), torch.bfloat16) == TOKENS * sum(
        each.token_bytes for each in items
    )


def test_attention_that_is_computed_again_keeps_no_scores() -> None:
    told = Recompute("selective", modules=("core_attn",))
    use = layer_use(GPT, False, EAGER, STATISTICS, told)
    assert kept(Layer(GPT, EAGER, again="core_attn"), torch.bfloat16) == TOKENS * use.kept


def test_a_layer_that_is_computed_again_keeps_its_input() -> None:
    use = layer_use(GPT, False, EAGER, CPU, Recompute("full"))
    layer = Layer(GPT, EAGER)

    class Again(Layer):
        def forward(self, stream: Tensor) -> Tensor:
            found: Tensor = checkpoint(layer, stream, use_reentrant=False)
            return found

    assert kept(Again(GPT, EAGER), torch.bfloat16) == TOKENS * use.kept


def test_experts_keep_what_is_routed_to_them() -> None:
    model = replace(LLAMA, experts=ExpertShape(4, 2, 96, shared_ffn=64))

    class Routed(Layer):
        """Sends each token to two experts by turns; only what experts keep is counted."""

        def feed_forward(self, read: Tensor) -> Tensor:
            tokens = read.flatten(0, 1)
            order = torch.arange(TOKENS)
            added = self.expert("shared", tokens, 64)
            for number in range(4):
                own = torch.cat([tokens[(number + turn) % 4 :: 4] for turn in (0, 1)])
                given = self.expert(f"expert{number}", own, 96)
                added = added + F.pad(given, (0, 0, 0, len(order) - len(given)))
            return added.view_as(read)

    names = ("router",)
    items = [each for each in layer_items(model, True, FUSED, CPU) if each.name not in names]
    weights = 4 * 2 * TOKENS  # what routed tokens are weighed with
    planned = TOKENS * sum(each.token_bytes for each in items) - weights
    assert kept(Routed(model, FUSED), torch.bfloat16) == planned
