"""Every formula of a plan with its numbers and its source, part by part.

    parameters of a layer   h (a + 2 kv) d + a d h + 3 h f      4,096 …      218,112,000
                            megatron-core 0.16.1, …

What a formula gives is taken from the plan; the numbers beside it are those that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from serried.finding import Sentence, said
from serried.plan.job_plan import CONVENTION, JobPlan
from serried.plan.memory.states import sharing_of
from serried.plan.model.flops import CONVENTIONS, forward_flops, hardware_flops
from serried.plan.model.parameters import layer_parameters, model_parameters, padded_vocab
from serried.plan.model.shape import ModelShape
from serried.plan.precision import recipe
from serried.units import bytes_text, duration_text, memory_text
from serried.views.explain.plain import wrap
from serried.views.plan.words import memory_word, time_word
from serried.views.sentences import say
from serried.views.table import Table


class Formula(NamedTuple):
    """Holds one formula: what it gives, how it is written, with numbers, its value and source."""

    what: Sentence
    formula: str
    numbers: str
    value: str
    source: str


def explained(plan: JobPlan, *, columns: int, lang: str = "en") -> list[str | Table]:
    """Returns every formula, a paragraph each, under the headings of the plan."""
    parts: list[str | Table] = []
    for heading, formulas in (
        (said("Parameters"), of_parameters(plan)),
        (said("Memory of the fullest stage"), of_memory(plan)),
        (said("Traffic"), of_traffic(plan)),
        (said("FLOPs"), of_flops(plan)),
        (said("Time"), of_time(plan)),
    ):
        parts.append(say(heading, lang))
        for each in formulas:
            parts += _paragraph(each, columns, lang)
        parts.append("")
    return parts[:-1]


def _paragraph(each: Formula, columns: int, lang: str) -> Iterator[str]:
    told = " = ".join(text for text in (each.formula, each.numbers, each.value) if text)
    told = f"{say(each.what, lang)}: {told}"
    for number, line in enumerate(wrap(told, columns - 4)):
        yield f"  {line}" if number == 0 else f"    {line}"
    if each.source:
        yield from (f"      {line}" for line in wrap(each.source, columns - 6))


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
        "embedding + layers and norm + output",
        f"{tables:,} + {total.total - tables - total.output:,} + {total.output:,}",
        f"{total.total:,}",
        model.source,
    )
    fullest = plan.memory.fullest
    held = sum(asked.parameters(asked.stages[number]).total for number in set(fullest.stages))
    yield Formula(
        said("parameters of a rank on stage {stages}", stages="+".join(map(str, fullest.stages))),
        "dense / tp + experts / (ep etp) + norms + embedding / tp",
        "",
        f"{held:,}",
        MEGATRON,
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
        formula, numbers, source = "", "", SOURCES.get(item.name, "")
        told = states.get(item.name)
        if told and abs(told.num_bytes - item.num_bytes) <= 0.01 * item.num_bytes:
            formula, numbers = "bytes x (dense / shards + experts / shards)", told.numbers
            source = recipe(plan.asked.states).source
        elif item.name == "activations":
            formula = f"walked through {plan.asked.schedule}, fullest at {fullest.moment}"
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


SOURCES = {
    "activations": "Korthikanti et al. 2022, arXiv 2205.05198, section 4; bytes of each layer as "
    "autograd keeps them",
    "fragments": "reserved over allocated bytes, SimuMax 1.2, 43 runs on 8 B200",
    "context": "CUDA context and NCCL's buffers, outside torch's allocator",
    "workspace": "cuBLAS has one for each thread that multiplies, Transformer Engine its own: "
    "torch 2.13, CublasHandlePool.cpp; Transformer Engine 2.11, module/base.py",
}
"""Where the figures of other items are from."""


def of_traffic(plan: JobPlan) -> Iterator[Formula]:
    """Yields what each group kind sends in a step."""
    for each in plan.traffic:
        yield Formula(
            said("{kind} {collective}", kind=each.kind, collective=each.collective),
            "sent x times",
            f"{bytes_text(round(each.sent_bytes))} x {each.times:,.0f}",
            bytes_text(round(each.step_bytes)),
            f"{each.algorithm}, {each.ranks} ranks; {WAYS.get(each.algorithm, '')}",
        )


_PERFORMANCE = "nccl-tests doc/PERFORMANCE.md"
_TUNING = "NCCL 2.x, src/graph/tuning.cc"
WAYS = {
    "ring": f"2 (n-1) a + 2 (n-1)/n S/B, half of it for a half of an all-reduce; {_PERFORMANCE}",
    "tree": f"2 log2(n) a + 2 S/B / 0.92; {_TUNING}",
    "hierarchical": f"a ring in each domain, one of its n-th across, and back; {_PERFORMANCE}",
    "nvls": f"25 us + (n+1)/n S/W, summed in the NVLink switch; {_TUNING}",
    "direct": f"a + bytes / link; {_PERFORMANCE}",
    "measured": "measured by serried check --busbw",
}
"""How the algorithm that was taken is priced: n ranks, a seconds a step, S bytes, B bytes/s."""


def of_flops(plan: JobPlan) -> Iterator[Formula]:
    """Yields the FLOPs of a token, by every convention, and what the hardware does."""
    asked = plan.asked
    model, sequence = asked.model, asked.sequence
    for name, rule in CONVENTIONS.items():
        forward = forward_flops(model, sequence, is_causal=rule.is_causal)
        yield Formula(
            said("FLOPs of a token, {name}", name=name),
            f"{rule.layers:g} layers + {rule.core:g} core + {rule.output:g} output",
            f"{rule.layers:g} x {forward.layers / 1e9:.3f} + {rule.core:g} x "
            f"{forward.core / 1e9:.3f} + {rule.output:g} x {forward.output / 1e9:.3f} G",
            f"{rule.per_step(forward) / 1e9:.3f} G",
            rule.about,
        )
    yield Formula(
        said("FLOPs of a token that really run"),
        f"recomputed: {asked.recompute.kind}",
        "",
        f"{hardware_flops(model, sequence, asked.recompute.kind) / 1e9:.3f} G",
        "Korthikanti et al. 2022, arXiv 2205.05198",
    )
    yield Formula(
        said("MFU"),
        "FLOPs x tokens / (step x GPUs x peak)",
        f"{plan.flops_per_token() / 1e9:.3f} G x {plan.tokens:,} / ({plan.step_s:.4g} s x "
        f"{asked.degrees.world_size} x {plan.peak_flops / 1e12:,.0f} TFLOP/s)",
        f"{plan.mfu():.2%} ({CONVENTION})",
        f"{asked.cluster.gpu.source}; PaLM, arXiv 2204.02311, appendix B",
    )


def of_time(plan: JobPlan) -> Iterator[Formula]:
    """Yields each part of a step and what it is made of."""
    for name, seconds in plan.parts.items():
        if seconds:
            yield Formula(
                time_word(name),
                FORMULAS.get(name, ""),
                "",
                f"{duration_text(seconds * 1e9)}, {seconds / plan.step_s:.1%}",
                "",
            )
    yield Formula(
        said("step"),
        "the sum of its parts",
        "",
        duration_text(plan.step_s * 1e9),
        "constants of catalog/efficiency.toml, fitted to measured steps",
    )


FORMULAS = {
    "matrices": "m x layers x 3 x 2 x tokens x weights / (peak x efficiency of their sizes)",
    "attention": "m x layers x (forward + backward of attention's core)",
    "elementwise": "m x layers x bytes / memory bandwidth",
    "recompute": "m x layers x what is recomputed",
    "tp": "m x layers x 8 halves x bytes / link, where no GEMM hides it",
    "cp": "m x layers x (c - 1) x keys and values / link, where attention does not hide it",
    "ep": "m x MoE layers x 4 x routed bytes / link, where nothing hides it",
    "launch": "m x layers x kernels, where the GPU would be done sooner",
    "embedding and output": "m x (table, output and loss)",
    "pp": "m x chunks x message / link",
    "bubble": "what fills and drains the pipeline: (all stages once - the slowest) / chunks",
    "dp": "gradients and parameters of a rank / link, where backward does not hide them",
    "optimizer": "bytes of states / memory bandwidth",
    "fixed": "a constant",
    "straggling": "(pipeline + dp + optimizer + fixed) x log2(nodes) x a constant, and software",
}
"""Formulas of a step's parts, as ``plan.time`` has them."""
