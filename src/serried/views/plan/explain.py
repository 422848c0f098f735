"""Every formula of a plan with its numbers and its source, part by part.

    parameters of a layer   h (a + 2 kv) d + a d h + 3 h f      4,096 …      218,112,000
                            megatron-core 0.16.1, …

What a formula gives is taken from the plan; the numbers beside it are those that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from serried.finding import Sentence, said
from serried.plan.job_plan import CONVENTION, JobPlan
from serried.plan.memory.states import sharing_of
from serried.plan.model.flops import CONVENTIONS, forward_flops
from serried.plan.model.parameters import layer_parameters, model_parameters, padded_vocab
from serried.plan.model.shape import LatentAttention, ModelShape
from serried.plan.precision import recipe
from serried.plan.time.constants import Constants, shipped
from serried.units import memory_text
from serried.views.explain.plain import wrap
from serried.views.plan.explain_time import OF_TIME, of_time
from serried.views.plan.explain_traffic import OF_TRAFFIC, of_traffic
from serried.views.plan.formula import Formula
from serried.views.plan.words import RECOMPUTED, memory_word
from serried.views.sentences import say
from serried.views.table import Table


def explained(
    plan: JobPlan, *, columns: int, lang: str = "en", constants: Constants | None = None
) -> list[str | Table]:
    """Returns every formula, a paragraph each, under the headings of the plan.

    ``constants`` are those that timed it, by default those that serried ships.
    """
    parts: list[str | Table] = []
    for heading, legend, formulas in (
        (said("Parameters"), None, of_parameters(plan)),
        (said("Memory of the fullest stage"), None, of_memory(plan)),
        (said("Traffic"), OF_TRAFFIC, of_traffic(plan)),
        (said("FLOPs"), None, of_flops(plan)),
        (said("Time"), OF_TIME, of_time(plan, constants or shipped())),
    ):
        parts.append(say(heading, lang))
        if legend:
            parts += (f"  {line}" for line in wrap(say(legend, lang), columns - 2))
        for each in formulas:
            parts += _paragraph(each, columns, lang)
        parts.append("")
    return parts[:-1]


def _paragraph(each: Formula, columns: int, lang: str) -> Iterator[str]:
    parts = (each.formula, each.numbers, each.value)
    told = " = ".join(text for part in parts if (text := _told(part, lang)))
    told = f"{say(each.what, lang)}: {told}"
    for number, line in enumerate(wrap(told, columns - 4)):
        yield f"  {line}" if number == 0 else f"    {line}"
    if each.source:
        source = _told(each.source, lang)
        yield from (f"      {line}" for line in wrap(source, columns - 6))


def _told(text: Sentence | str, lang: str) -> str:
    return text if isinstance(text, str) else say(text, lang)


MEGATRON = "megatron-core 0.16.1, transformer/attention.py, mlp.py and moe/experts.py"


def of_parameters(plan: JobPlan) -> Iterator[Formula]:
    """Yields what the model has, and what a rank of the fullest stage has of it."""
    asked = plan.asked
    model, degrees = asked.model, asked.degrees
    whole = layer_parameters(model, False)
    h, a, kv, d = model.hidden, model.heads, model.kv_heads, model.head_dim
    if model.latent is None:
        yield Formula(
            said("attention of a layer"),
            "h (a + 2 kv) d + a d h",
            f"{h:,} x ({a} + 2 x {kv}) x {d} + {a} x {d} x {h:,}",
            f"{whole.attention:,}",
            MEGATRON,
        )
    else:
        yield _latent_attention(model, model.latent, whole.attention)
    yield from _feed_forward(model)
    vocab = padded_vocab(model.vocab, asked.framework, degrees.tp)
    yield Formula(
        said("rows of embedding and output"),
        "ceil(V / (128 tp)) x 128 tp" if vocab != model.vocab else "V",
        f"ceil({model.vocab:,} / {128 * degrees.tp:,}) x {128 * degrees.tp:,}"
        if asked.framework == "megatron"
        else "",
        f"{vocab:,}",
        "Megatron-LM, --make-vocab-size-divisible-by 128" if asked.framework == "megatron" else "",
    )
    total = model_parameters(model)
    tables = total.embedding + total.positions
    yield Formula(
        said("all parameters"),
        said("embedding + layers and norm + output"),
        f"{tables:,} + {total.total - tables - total.output:,} + {total.output:,}",
        f"{total.total:,}",
        model.source,
    )
    fullest = plan.memory.fullest
    held = sum(asked.parameters(asked.stages[number]).total for number in set(fullest.stages))
    yield Formula(
        said("parameters of a rank on stage {stages}", stages="+".join(map(str, fullest.stages))),
        said("dense / tp + experts / (ep etp) + norms + embedding / tp"),
        "",
        f"{held:,}",
        MEGATRON,
    )


def _latent_attention(model: ModelShape, kept: LatentAttention, value: int) -> Formula:
    """Returns MLA: queries by way of q numbers, keys and values of l, r of a key for rotation."""
    h, a, query = model.hidden, model.heads, kept.qk_dim
    into = f"{h:,} x {a} x {query}"
    if kept.q_rank:
        into = f"{h:,} x {kept.q_rank:,} + {kept.q_rank:,} x {a} x {query}"
    return Formula(
        said("latent attention (MLA) of a layer"),
        "h q + q a (n + r) + h (l + r) + l a (n + v) + a v h"
        if kept.q_rank
        else "h a (n + r) + h (l + r) + l a (n + v) + a v h",
        f"{into} + {h:,} x ({kept.kv_rank} + {kept.rope_dim}) + {kept.kv_rank} x {a} x "
        f"({kept.nope_dim} + {kept.v_dim}) + {a} x {kept.v_dim} x {h:,}",
        f"{value:,}",
        "DeepSeek-V2, arXiv 2405.04434; megatron-core 0.16.1, multi_latent_attention.py",
    )


def _feed_forward(model: ModelShape) -> Iterator[Formula]:
    matrices = 3 if model.is_gated else 2
    h = model.hidden
    experts = model.experts
    if experts is None or model.num_moe_layers < model.layers:
        value = matrices * h * model.ffn
        yield Formula(
            said("dense feed-forward of a layer"),
            "k h f",
            f"{matrices} x {h:,} x {model.ffn:,}",
            f"{value:,}",
            MEGATRON,
        )
    if experts is not None:
        value = experts.count * matrices * h * experts.ffn
        yield Formula(
            said("routed experts of a layer"),
            "E k h f_e",
            f"{experts.count} x {matrices} x {h:,} x {experts.ffn:,}",
            f"{value:,}",
            MEGATRON,
        )


def of_memory(plan: JobPlan) -> Iterator[Formula]:
    """Yields each item of the fullest stage."""
    fullest = plan.memory.fullest
    states = _states(plan)
    for item in fullest.items:
        formula: Sentence | str = ""
        numbers, source = "", SOURCES.get(item.name, "")
        told = states.get(item.name)
        if told and abs(told.num_bytes - item.num_bytes) <= 0.01 * item.num_bytes:
            formula, numbers = said("bytes x (dense / shards + experts / shards)"), told.numbers
            source = recipe(plan.asked.states).source
        elif item.name == "activations":
            formula = said(
                "walked through {schedule}, fullest at {moment}",
                schedule=plan.asked.schedule,
                moment=fullest.moment,
            )
        yield Formula(memory_word(item.name), formula, numbers, memory_text(item.num_bytes), source)
    yield Formula(said("sum"), "", "", memory_text(fullest.total), "")


class _State(NamedTuple):
    """Holds what the formula of a model state gives, and its numbers."""

    num_bytes: float
    numbers: str


def _states(plan: JobPlan) -> dict[str, _State]:
    """Returns parameters, gradients and optimizer of the fullest stage, by the formula."""
    asked, kept = plan.asked, recipe(plan.asked.states)
    held = [asked.parameters(asked.stages[each]) for each in set(plan.memory.fullest.stages)]
    dense, experts = sum(each.dense for each in held), sum(each.experts for each in held)
    sharing = sharing_of(asked)
    shards = (sharing.dense_ranks, sharing.expert_ranks)
    found = {}
    for name, size, least in (
        ("parameters", kept.parameter_bytes, 3),
        ("gradients", kept.gradient_bytes, 2),
        ("optimizer", kept.optimizer_bytes, 1),
    ):
        over = shards if asked.zero >= least else (1, 1)
        part = f"{dense:,} / {over[0]:,}" + (f" + {experts:,} / {over[1]:,}" if experts else "")
        found[name] = _State(size * (dense / over[0] + experts / over[1]), f"{size} x ({part})")
    return found


SOURCES: Mapping[str, Sentence] = {
    "activations": said(
        "bytes of each layer as autograd keeps them; Korthikanti et al. 2022, arXiv 2205.05198, "
        "section 4"
    ),
    "fragments": said("reserved over allocated bytes, SimuMax 1.2, 43 runs on 8 B200"),
    "context": said("CUDA context and NCCL's buffers, outside torch's allocator"),
    "workspace": said(
        "cuBLAS has one for each thread that multiplies, Transformer Engine its own: torch 2.13, "
        "CublasHandlePool.cpp; Transformer Engine 2.11, module/base.py"
    ),
}
"""Where the figures of other items are from."""


def of_flops(plan: JobPlan) -> Iterator[Formula]:
    """Yields the FLOPs of a token, by every convention, and what the hardware does."""
    asked = plan.asked
    model, sequence = asked.model, asked.sequence
    for name, rule in CONVENTIONS.items():
        forward = forward_flops(model, sequence, is_causal=rule.is_causal)
        yield Formula(
            said("FLOPs of a token, {name}", name=name),
            said(
                "{layers:g} layers + {core:g} core + {output:g} output",
                layers=rule.layers,
                core=rule.core,
                output=rule.output,
            ),
            f"{rule.layers:g} x {forward.layers / 1e9:.3f} + {rule.core:g} x "
            f"{forward.core / 1e9:.3f} + {rule.output:g} x {forward.output / 1e9:.3f} G",
            f"{rule.per_step(forward) / 1e9:.3f} G",
            rule.about,
        )
    yield Formula(
        said("FLOPs of a token that really run"),
        said("recomputed: {what}", what=RECOMPUTED[asked.recompute.kind]),
        "",
        f"{plan.hardware_flops_per_token / 1e9:.3f} G",
        "Korthikanti et al. 2022, arXiv 2205.05198",
    )
    yield Formula(
        said("MFU"),
        said("FLOPs x tokens / (step x GPUs x peak)"),
        f"{plan.flops_per_token() / 1e9:.3f} G x {plan.tokens:,} / ({plan.step_s:.4g} s x "
        f"{asked.degrees.world_size} x {plan.peak_flops / 1e12:,.0f} TFLOP/s)",
        f"{plan.mfu():.2%} ({CONVENTION})",
        f"{asked.cluster.gpu.source}; PaLM, arXiv 2204.02311, appendix B",
    )
