"""How many parameters a model has: by part, by layer, and on one rank of a split.

    part                 whole                                  on one of tp ranks
    q, k, v              h (a + 2 kv) d                         / tp; a key-value head is never cut
    o                    a d h                                  / tp
    feed-forward         k h f,  k = 3 gated, 2 plain           / tp
    router               h E                                    whole
    experts              E k h f_e                              / (etp ep)
    norms                n h each,  n = 1 RMS, 2 LayerNorm      whole
    bias of q k v, fc1   one a column                           / tp
    bias of o, fc2       h each                                 whole
    embedding, output    V_padded h                             / tp

Latent attention (MLA) makes queries of q_rank and keys and values of kv_rank numbers a token; what
makes these is whole on each rank, what reads them is cut by heads:

    h q_rank + q_rank a (nope + rope) + h (kv_rank + rope) + kv_rank a (nope + v) + a v h

Source: megatron-core 0.16.1, transformer/attention.py, multi_latent_attention.py, mlp.py and
moe/experts.py; transformers 5.23.0, whose models of the same configs have as many.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from serried.errors import InputError, listed
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import ModelStage

LORA_TARGETS = ("qkv", "o", "fc1", "fc2")
"""Linear layers that may have adapters; fc1 holds gate and up."""

VOCAB_MULTIPLE: Mapping[str, int] = {"megatron": 128, "colossalai": 64, "nanotron": 1}
"""Frameworks that pad the vocabulary, and of what it becomes a multiple, times tp.

Source: Megatron-LM training/tokenizer, --make-vocab-size-divisible-by 128; ColossalAI
HybridParallelPlugin, make_vocab_size_divisible_by=64; nanotron config, the same option, 1. Others
leave the vocabulary as it is.
"""


@dataclass(frozen=True)
class ParameterCount:
    """Holds numbers of parameters by part: of a model, a layer, a stage, or a rank of one.

    >>> whole = model_parameters(ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256))
    >>> whole.total, whole.embedding
    (8030261248, 525336576)
    """

    embedding: int = 0
    positions: int = 0
    attention: int = 0
    """Queries, keys, values and output projection."""
    feed_forward: int = 0
    """Dense feed-forwards, and experts that every token goes through."""
    router: int = 0
    experts: int = 0
    """Routed experts."""
    norms: int = 0
    joins: int = 0
    """What multi-token prediction joins its two inputs with, and its norms."""
    output: int = 0
    """The output projection; 0 where it is the embedding that is already there."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.dense + self.experts

    @property
    def dense(self) -> int:
        """Those that every token uses, which replicas of cp and dp share; all but experts."""
        return (
            self.embedding
            + self.positions
            + self.attention
            + self.feed_forward
            + self.router
            + self.norms
            + self.joins
            + self.output
        )

    def __add__(self, other: ParameterCount) -> ParameterCount:
        return ParameterCount(*(getattr(self, each) + getattr(other, each) for each in _PARTS))

    def __mul__(self, times: int) -> ParameterCount:
        return ParameterCount(*(getattr(self, each) * times for each in _PARTS))


_PARTS = tuple(each.name for each in fields(ParameterCount))


def padded_vocab(vocab: int, framework: str = "megatron", tp: int = 1) -> int:
    """Returns the rows of embedding and output that a framework makes for so many words.

    >>> padded_vocab(50257, "megatron", 8), padded_vocab(50257, "fsdp")
    (51200, 50257)
    """
    multiple = VOCAB_MULTIPLE.get(framework, 0) * tp
    return -(-vocab // multiple) * multiple if multiple else vocab


def model_parameters(model: ModelShape) -> ParameterCount:
    """Returns the parameters of the whole model, as its config says, MTP layers left out."""
    whole = ModelStage(0, range(model.layers), has_embedding=True, has_output=True)
    return stage_parameters(model, whole)


def active_parameters(model: ModelShape) -> int:
    """Returns the parameters that one token goes through.

    >>> from serried.plan.model.shape import ExpertShape
    >>> moe = ModelShape("m", 32, 4096, 32, 8, 128, 14336, 32000, experts=ExpertShape(8, 2, 14336))
    >>> active_parameters(moe)
    12879925248
    """
    whole = model_parameters(model)
    experts = model.experts
    return whole.dense + (whole.experts * experts.top_k // experts.count if experts else 0)


def stage_parameters(
    model: ModelShape,
    stage: ModelStage,
    *,
    tp: int = 1,
    ep: int = 1,
    etp: int = 1,
    framework: str = "",
) -> ParameterCount:
    """Returns what one rank has of a stage, ZeRO aside, with the vocabulary as a framework pads it.

    A tied output is the embedding where one stage has both, and a copy of it elsewhere. MTP layers
    embed their tokens too, so that their stage has a copy of the embedding.

    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> first = ModelStage(0, range(8), has_embedding=True)
    >>> stage_parameters(llama, first, tp=2, framework="megatron").embedding
    262668288
    """
    num_moe = sum(map(model.is_moe, stage.layers)) if model.experts else 0
    num_dense = len(stage.layers) - num_moe
    found = _ends(model, stage, tp, padded_vocab(model.vocab, framework, tp))
    if num_dense:
        found = found + layer_parameters(model, False, tp) * num_dense
    if num_moe:
        found = found + layer_parameters(model, True, tp, ep, etp) * num_moe
    if stage.mtp_layers:
        found = found + mtp_parameters(model, tp, ep, etp) * stage.mtp_layers
    return found


def _ends(model: ModelShape, stage: ModelStage, tp: int, vocab: int) -> ParameterCount:
    table = -(-vocab // tp) * model.hidden
    embeds = stage.has_embedding or stage.mtp_layers > 0
    norms = _norm(model, model.hidden) if stage.has_output else 0
    if stage.has_embedding and model.has_embedding_norm:
        norms += _norm(model, model.hidden)
    return ParameterCount(
        embedding=table if embeds else 0,
        positions=model.learned_positions * model.hidden if embeds else 0,
        norms=norms,
        output=table if stage.has_output and not (model.is_tied and embeds) else 0,
    )


@lru_cache(maxsize=4096)
def layer_parameters(
    model: ModelShape, is_moe: bool, tp: int = 1, ep: int = 1, etp: int = 1
) -> ParameterCount:
    """Returns what one rank has of one layer, with experts or without."""
    hidden = model.hidden
    norms = model.norms_per_layer * _norm(model, hidden) + _inner_norms(model, tp)
    attention = _latent(model, tp) if model.latent else _heads(model, tp)
    if not is_moe or model.experts is None:
        dense = _feed_forward(model, model.ffn, tp)
        return ParameterCount(attention=attention, feed_forward=dense, norms=norms)
    experts = model.experts
    shared = _feed_forward(model, experts.shared_ffn, tp) if experts.shared_ffn else 0
    return ParameterCount(
        attention=attention,
        feed_forward=shared + (hidden if experts.has_shared_gate else 0),
        router=experts.count * (hidden + model.has_bias),
        experts=-(-experts.count // ep) * _feed_forward(model, experts.ffn, etp),
        norms=norms,
    )


def mtp_parameters(model: ModelShape, tp: int = 1, ep: int = 1, etp: int = 1) -> ParameterCount:
    """Returns what one rank has of one layer of multi-token prediction.

        next token's embedding ─ norm ─┐
                                       ├─ 2h x h ─ layer ─ norm ─ the model's own output
        hidden state ─────────── norm ─┘

    Source: DeepSeek-V3, arXiv 2412.19437, section 2.2; megatron-core 0.16.1,
    transformer/multi_token_prediction.py, whose join is cut by tp.
    """
    layer = layer_parameters(model, model.is_moe(model.layers), tp, ep, etp)
    join = -(-2 * model.hidden * model.hidden // tp) + 3 * _norm(model, model.hidden)
    return layer + ParameterCount(joins=join)


def _heads(model: ModelShape, tp: int) -> int:
    hidden, dim = model.hidden, model.head_dim
    queries = -(-model.heads // tp) * dim
    # Where tp is larger than the heads of keys and values, ranks have the same one.
    keys = -(-model.kv_heads // tp) * dim
    columns = queries + 2 * keys
    found = hidden * (columns + queries)
    if model.has_bias or model.has_qkv_bias:
        found += columns
    if model.has_bias or model.has_o_bias:
        found += hidden
    return found + (queries // dim if model.has_sinks else 0)


def _latent(model: ModelShape, tp: int) -> int:
    latent, hidden = model.latent, model.hidden
    assert latent is not None
    heads = -(-model.heads // tp)
    found = hidden * (latent.kv_rank + latent.rope_dim)
    found += (
        latent.kv_rank * heads * (latent.nope_dim + latent.v_dim) + heads * latent.v_dim * hidden
    )
    if latent.q_rank:
        found += hidden * latent.q_rank
    return found + (latent.q_rank or hidden) * heads * latent.qk_dim


def _feed_forward(model: ModelShape, width: int, parts: int) -> int:
    own = -(-width // parts)
    columns = own * (2 if model.is_gated else 1)
    return model.hidden * (columns + own) + (columns + model.hidden if model.has_bias else 0)


def _inner_norms(model: ModelShape, tp: int) -> int:
    """Returns the norms inside attention: of queries and keys, or of what latent ones are made."""
    if model.latent:
        return _norm(model, model.latent.kv_rank) + _norm(model, model.latent.q_rank)
    dims = {"": (0, 0), "head": (1, 1), "whole": (-(-model.heads // tp), -(-model.kv_heads // tp))}
    return sum(_norm(model, count * model.head_dim) for count in dims[model.qk_norm])


def _norm(model: ModelShape, size: int) -> int:
    return size * (2 if model.norm == "layer" and model.has_norm_bias else 1)


# ----------------------------------------------------------------------- adapters


def adapter_parameters(
    model: ModelShape,
    stage: ModelStage,
    rank: int,
    targets: Collection[str],
    *,
    tp: int = 1,
    ep: int = 1,
    etp: int = 1,
) -> int:
    """Returns what one rank has of a stage's LoRA adapters: r (in + out) a linear layer, over tp.

    Both halves are cut by tp; an expert's by etp. Raises InputError for a linear layer that has
    no adapters. Source: LoRA, arXiv 2106.09685, section 4.1; NeMo 2.0, ParallelLinearAdapter.
    """
    unknown = [each for each in targets if each not in LORA_TARGETS]
    if unknown:
        raise InputError(
            "LoRA is not put on '{target}'; linear layers that have it: {known}",
            target=unknown[0][:40],
            known=listed(LORA_TARGETS),
        )
    if model.latent:
        raise InputError(
            "LoRA on latent attention (MLA) is not planned, and {model} has it; ask for a model "
            "without",
            model=model.name,
        )
    found = 0
    for layer in stage.layers:
        is_moe = model.is_moe(layer)
        for target in targets:
            for ends, count in _linear_layers(model, target, is_moe):
                experts = -(-count // ep)
                found += experts * -(-ends // etp) if count > 1 else -(-ends // tp)
    return found * rank


def _linear_layers(model: ModelShape, target: str, is_moe: bool) -> list[tuple[int, int]]:
    """Returns in + out of each linear layer of a kind, and how many of it a layer has."""
    hidden = model.hidden
    if target == "qkv":
        return [(hidden + model.query_dim + 2 * model.kv_heads * model.head_dim, 1)]
    if target == "o":
        return [(model.query_dim + hidden, 1)]
    widths = [(model.ffn, 1)]
    if is_moe and model.experts:
        widths = [(model.experts.ffn, model.experts.count)]
        widths += [(model.experts.shared_ffn, 1)] if model.experts.shared_ffn else []
    columns = 2 if target == "fc1" and model.is_gated else 1
    return [(hidden + columns * width, count) for width, count in widths]
