"""ModelSizes: what the byte-level GPT is made of, and which layers each stage holds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors
from serried.runtime.job.option import (
    check_bounds,
    require_at_least_zero,
    require_positive,
    require_share,
    setting,
)

VOCABULARY = 256
"""The model reads and predicts bytes."""


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of the byte-level GPT; the same model whatever the layout.

    >>> ModelSizes(hidden=64, heads=8, kv_heads=2).head_size
    8

    Raises InputError when ``hidden`` cannot be cut into heads of an even size (rotary
    embeddings turn pairs), or heads into equal groups that share a KV head.
    """

    layers: int = setting(
        4,
        en="Layers of the model; each stage has at least one.",
        zh="模型的层数；每个 stage 至少一层。",
        bound=require_positive,
    )
    hidden: int = setting(
        64,
        en="Width of the model (hidden size).",
        zh="模型的宽度（隐藏维）。",
        bound=require_positive,
    )
    heads: int = setting(8, en="Attention heads.", zh="注意力头数。", bound=require_positive)
    kv_heads: int | None = setting(
        None,
        en="Heads of keys and values (grouped-query attention); by default all heads.",
        zh="K 和 V 的头数（分组查询注意力）；默认等于注意力头数。",
    )
    """Heads of keys and values, shared by groups of heads (GQA); None takes one for each."""
    seq_len: int = setting(
        64,
        en="Bytes in a sequence; a byte is a token here.",
        zh="一条序列的字节数；这里一个字节就是一个 token。",
        bound=require_positive,
    )
    experts: int = setting(
        0,
        en="Experts in each layer; 0 for a plain feed-forward layer.",
        zh="每层的专家数；0 表示普通的前馈层。",
        bound=require_at_least_zero,
    )
    """Experts in each layer's feed-forward; 0 takes a plain one."""
    top_k: int = setting(
        2,
        en="Experts that each token is sent to.",
        zh="每个 token 送给多少个专家。",
        bound=require_positive,
    )
    """Experts that each byte is sent to."""
    balance: float = setting(
        0.0,
        en=("Weight of the loss that balances the experts' load; it is taken over a microbatch."),
        zh="均衡专家负载的 loss 的权重；按一个微批次计算。",
        bound=require_at_least_zero,
    )
    """Weight of the load-balancing loss, over the rows of a microbatch; 0 leaves it out."""
    tie: bool = setting(
        False,
        en="Let the embedding and the output layer share one weight.",
        zh="embedding 和输出层共用一个权重。",
    )
    """Whether the output layer's weight is the embedding's."""
    dropout: float = setting(
        0.0,
        en="Share of each block's outputs that dropout leaves out.",
        zh="dropout 丢掉每块输出的比例。",
        bound=require_share,
    )
    """Share of each block's outputs that a training step leaves out."""

    def __post_init__(self) -> None:
        check_bounds(self)
        self._check_heads()
        if self.experts and self.top_k > self.experts:
            raise InputError(
                "top_k={k} of {experts} experts cannot be; take k up to {experts}",
                k=self.top_k,
                experts=self.experts,
            )

    def _check_heads(self) -> None:
        # Rotary angles turn the numbers of a head in pairs, so its size is even.
        if self.hidden % (2 * self.heads):
            raise InputError(
                "hidden={hidden} cannot be cut into {heads} heads of an even size; "
                "sizes that can: {fits}",
                hidden=self.hidden,
                heads=self.heads,
                fits=listed([2 * self.heads * n for n in range(1, 5)]) + ", …",
            )
        if self.num_kv_heads < 1 or self.heads % self.num_kv_heads:
            raise InputError(
                "{heads} heads cannot share {kv_heads} KV heads evenly; numbers that fit: {fits}",
                heads=self.heads,
                kv_heads=self.num_kv_heads,
                fits=listed(divisors(self.heads)),
            )

    def resolved(self) -> Self:
        """Returns the same model with absolute paths, of which this one has none."""
        return self

    def told(self, vocabulary: int) -> dict[str, int]:
        """Returns the sizes as a recording says them; SwiGLU makes the feed-forward gated."""
        return {
            "hidden": self.hidden,
            "heads": self.heads,
            "kv_heads": self.num_kv_heads,
            "head_dim": self.head_size,
            "ffn": self.ffn,
            "vocab": vocabulary,
            "experts": self.experts,
            "top_k": self.top_k if self.experts else 0,
            "gated": 1,
            "tied": int(self.tie),
        }

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @property
    def num_kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def ffn(self) -> int:
        """Width of the feed-forward layer: near SwiGLU's 8/3, and cut evenly by any tp."""
        return 3 * self.hidden


def stage_layers(layers: int, num_stages: int) -> list[range]:
    """Cuts ``layers`` into a run for each stage, as even as can be, longer ones first.

    >>> stage_layers(5, 2)
    [range(0, 3), range(3, 5)]
    """
    short, longer = divmod(layers, num_stages)
    starts = [stage * short + min(stage, longer) for stage in range(num_stages + 1)]
    return [range(a, b) for a, b in pairwise(starts)]


def padded_vocabulary(divisible_by: int, tp: int) -> int:
    """Returns the rows of an embedding of bytes that ``tp`` ranks share.

    As Megatron-LM 0.16 pads it (megatron/training/tokenizer, _vocab_size_with_padding). The rows
    that are no bytes stay zero, and neither score nor count.

    >>> padded_vocabulary(128, 4)
    512
    """
    unit = divisible_by * tp
    return -(-VOCABULARY // unit) * unit
