"""What one layer's microbatch takes, forward and backward, part by part, with its numbers.

    T tokens of a microbatch, t c e ranks of tp, cp and ep, h hidden, h' = h / t with sequence
    parallel, a heads, g heads of keys and values, d numbers a head, f feed-forward, W weights

Formulas are those of ``plan.time.matrices``, ``core_attention``, ``elementwise``, ``exposed`` and
``layer``.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from serried.finding import Sentence, said
from serried.plan.time.chips import generation
from serried.plan.time.core_attention import keys_seen
from serried.plan.time.jobs import STACKS
from serried.plan.time.layer import kernels, passed_again
from serried.plan.time.matrices import experts_here, routed_tokens
from serried.plan.traffic import volumes
from serried.views.plan.formula import (
    ShownTerm,
    excess,
    number,
    rate,
    seconds,
    size,
    slower_of,
    total,
)
from serried.views.plan.timed_plan import TimedPlan, one
from serried.views.plan.words import time_word

GEMM = "2 M N K / R + b (w K (M + N) + 2 M N) / B"
"""One product: M rows, N columns, K between, in whole tiles of 128; b of its bytes not hidden."""
CASTS = ("", "cast_delayed", "cast_current", "cast_mxfp8", "cast_nvfp4")
"""The constant of each of ``jobs.RECIPES``."""


class Explained(NamedTuple):
    """Holds one part of a step's time: its formula and the term that gives it."""

    what: Sentence
    formula: Sentence | str
    numbers: ShownTerm
    constants: tuple[str, ...] = ()
    """Names of the fitted constants in it."""


def layer_parts(job: TimedPlan) -> Iterator[Explained]:
    """Yields the parts of a layer that take time, and what they are made of."""
    products = list(_products(job))
    yield from (each for _, each in products)
    linear = _linear(job, products)
    passes = 2 if job.value("is_lora") else 3
    yield _part("matrices", f"{passes} sum(GEMM)", number(passes) * linear)
    core = _core(job)
    yield core
    yield _attention(job, core.numbers)
    memory = list(_elementwise(job))
    yield from (each for _, each in memory)
    by_memory = total([number(share) * seconds(each.numbers.value) for share, each in memory])
    yield _part("elementwise", "sum", by_memory)
    forward = seconds(core.numbers.value)
    for name, found in (
        ("recompute", _recompute(job, products, linear, forward, by_memory)),
        ("tp", _tensor(job)),
        ("cp", _context(job)),
        ("ep", _exchange(job)),
    ):
        if job.layer(name):
            yield found
    yield _launch(job)


def _part(
    name: str, formula: Sentence | str, numbers: ShownTerm, constants: tuple[str, ...] = ()
) -> Explained:
    return Explained(said("{part}, one layer", part=time_word(name)), formula, numbers, constants)


def gemm(
    job: TimedPlan,
    rows: float,
    columns: float,
    inner: float,
    flops: ShownTerm,
    weight: float | None = None,
) -> ShownTerm:
    """Returns one product, N and K in whole tiles; ``weight`` bytes a number, by default the
    job's."""
    m, n, k = number(rows), _tiled(columns), _tiled(inner)
    wide = number(one(job.reached.weight_bytes) if weight is None else weight)
    moved = wide * k * (m + n) + number(2) * m * n
    return number(2) * m * n * k / flops + job.constant("gemm_bytes") * moved / job.memory


def _tiled(value: float) -> ShownTerm:
    return number(ceil(value / 128.0 - 1e-9) * 128.0)


def _products(job: TimedPlan) -> Iterator[tuple[str, Explained]]:
    """Yields every product of a layer, with the part of the layer that it is of."""
    for part, what, term in (*_attention_products(job), *_feed_forwards(job)):
        constants = ("gemm_bytes", "grouped") if part == "routed" else ("gemm_bytes",)
        yield part, Explained(said("GEMM: {what}", what=what), GEMM, term, constants)


def _attention_products(job: TimedPlan) -> Iterator[tuple[str, Sentence, ShownTerm]]:
    tokens, hidden, tp = one(job.jobs.tokens), job.value("hidden"), job.value("tp")
    heads, flops = job.value("heads"), job.rate("linear")
    queries = heads * job.value("qk_dim")
    if job.value("kv_rank"):
        q_rank, kv_rank = job.value("q_rank"), job.value("kv_rank")
        up = heads * (job.value("nope_dim") + job.value("v_dim"))
        if q_rank:
            yield "down", said("queries, down"), gemm(job, tokens, q_rank, hidden, flops)
            yield "up", said("queries, up"), gemm(job, tokens, queries / tp, q_rank, flops)
        else:
            yield "down", said("queries"), gemm(job, tokens, queries / tp, hidden, flops)
        rope = kv_rank + job.value("rope_dim")
        yield "down", said("keys and values, down"), gemm(job, tokens, rope, hidden, flops)
        yield "up", said("keys and values, up"), gemm(job, tokens, up / tp, kv_rank, flops)
    else:
        fused = (heads + 2 * job.value("kv_heads")) * job.value("qk_dim")
        what = said("queries, keys and values")
        yield "down", what, gemm(job, tokens, fused / tp, hidden, flops)
    values = heads * job.value("v_dim") / tp
    yield "down", said("attention's output"), gemm(job, tokens, hidden, values, flops)


def _feed_forwards(job: TimedPlan) -> Iterator[tuple[str, Sentence, ShownTerm]]:
    tokens, hidden, tp = one(job.jobs.tokens), job.value("hidden"), job.value("tp")
    wide, flops, moe = job.value("matrices") - 1, job.rate("linear"), one(job.jobs.moe_share)
    if moe < 1:
        width = job.value("ffn") / tp
        yield "dense", said("feed-forward, in"), gemm(job, tokens, wide * width, hidden, flops)
        yield "dense", said("feed-forward, out"), gemm(job, tokens, hidden, width, flops)
    if not moe:
        return
    here = one(experts_here(job.jobs))
    each = max(one(routed_tokens(job.jobs)) / here, 1.0)
    width = job.value("expert_ffn") / job.value("etp")
    grouped = rate(flops.value * job.known.value("grouped"))
    into = gemm(job, each, wide * width, hidden, grouped)
    yield "routed", said("experts, in"), number(here) * into
    yield "routed", said("experts, out"), number(here) * gemm(job, each, hidden, width, grouped)
    yield (
        "routed",
        said("router"),
        gemm(job, tokens / tp, job.value("experts"), hidden, job.rate("wide")),
    )
    if job.value("shared_ffn"):
        width = job.value("shared_ffn") / tp
        yield "routed", said("shared expert, in"), gemm(job, tokens, wide * width, hidden, flops)
        yield "routed", said("shared expert, out"), gemm(job, tokens, hidden, width, flops)


def _sum_of(products: list[tuple[str, Explained]], *parts: str) -> ShownTerm:
    return total([seconds(each.numbers.value) for part, each in products if part in parts])


def _linear(job: TimedPlan, products: list[tuple[str, Explained]]) -> ShownTerm:
    """Returns one forward through a mean layer's products: so much of it dense, so much experts."""
    moe = one(job.jobs.moe_share)
    terms = [_sum_of(products, "down", "up")]
    if moe < 1:
        dense = _sum_of(products, "dense")
        terms.append(dense if not moe else number(1 - moe) * dense)
    if moe:
        experts = _sum_of(products, "routed")
        terms.append(experts if moe == 1 else number(moe) * experts)
    return total(terms)


def _core(job: TimedPlan) -> Explained:
    """Returns one forward of attention's core: by a flash kernel, or over all of s x s."""
    what = said("attention's core, forward")
    heads = job.value("heads") / job.value("tp")
    dims = number(job.value("qk_dim")) + number(job.value("v_dim"))
    half = number(2) * number(one(job.jobs.tokens)) * number(one(keys_seen(job.jobs)))
    half = half * dims * number(heads)
    made = generation(job.plan.asked.cluster.gpu)
    share = job.known.value("attention_exponentials")
    setup = share * one(job.reached.exponentials)
    if job.value("is_flash"):
        usual, dim = share * one(job.reached.usual_exponentials), job.value("qk_dim")
        width = dim / (dim + setup) * (128.0 + usual) / 128.0
        is_new = one(job.reached.bf16_peak) > 400e12
        is_torch = STACKS[int(job.jobs.stack[0])] == "torch-fsdp"
        tuned = job.known.value("attention_portable") if is_new and is_torch else 1.0
        begun = number(1) + job.constant("attention_begin") / job.term("sequence")
        numbers = half * begun / (job.rate("attention") * number(width * tuned))
        names = (f"attention.{made}", "attention_exponentials", "attention_begin")
        return Explained(
            what, said("2 T keys (d + d) a/t (1 + b/s) / (A x share of d)"), numbers, names
        )
    aligned = job.known.value("eager_misaligned") if job.value("qk_dim") % 8 else 1.0
    reached = one(job.reached.bf16_peak) * job.known.value("eager_gemm")
    reached /= 1.0 + setup / job.value("qk_dim")
    square = number(2) * job.constant("eager_passes") * number(one(job.jobs.tokens))
    square = square * job.term("sequence") * number(heads) / job.memory
    numbers = number(2 * aligned) * half / rate(reached) + square
    names = ("eager_gemm", "eager_passes", "eager_misaligned")
    return Explained(what, said("2 x half / R + 2 passes T s a/t / B"), numbers, names)


def _attention(job: TimedPlan, forward: ShownTerm) -> Explained:
    backward = job.constant("attention_backward") if job.value("is_flash") else number(2)
    numbers = (number(1) + backward) * seconds(forward.value)
    names = ("attention_backward",) if job.value("is_flash") else ()
    return _part("attention", said("(1 + backward) forward"), numbers, names)


def _elementwise(job: TimedPlan) -> Iterator[tuple[float, Explained]]:
    """Yields what is bound by memory, by the part of a layer, and the share of layers with it."""
    tokens, hidden, tp = one(job.jobs.tokens), job.value("hidden"), job.value("tp")
    weights, moe = job.times.layer.weights, one(job.jobs.moe_share)
    along = hidden / tp if job.value("is_sequence_parallel") else hidden
    rotary = 4 * (job.value("heads") + job.value("kv_heads")) * job.value("qk_dim") / tp
    values = job.value("heads") * job.value("v_dim") / tp
    into = (job.value("heads") + 2 * job.value("kv_heads")) * job.value("qk_dim") / tp
    twice, scale = number(2) * number(tokens), job.constant("elementwise")
    moved = twice * (number(24) * number(along) + number(rotary)) * scale
    read = twice * (number(2) * number(hidden) + number(values) + number(into))
    text = "(2 T (24 h' + 4 (a + g) d/t) e + 2 T (2 h + a d/t + (a + 2 g) d/t) q + 8 G W) / B"
    held = one(weights.attention_weights)
    yield 1.0, _moved(job, said("attention"), text, moved, read, held)
    if moe < 1:
        plain = number(1) if job.value("matrices") > 2 else job.constant("elementwise_plain")
        width = number(job.value("ffn") / tp)
        moved = twice * _passes(job) * width * scale * plain
        read = twice * job.term("matrices") * width
        text = "(2 T n f/t e + 2 T k f/t q + 8 G W) / B"
        held = one(weights.feed_forward_weights)
        yield 1.0 - moe, _moved(job, said("feed-forward"), text, moved, read, held)
    if moe:
        yield moe, _elementwise_of_experts(job)


def _elementwise_of_experts(job: TimedPlan) -> Explained:
    tokens, tp = number(one(job.jobs.tokens)), job.term("tp")
    routed, hidden = one(routed_tokens(job.jobs)), job.term("hidden")
    width = number(job.value("expert_ffn") / job.value("etp"))
    passed = _passes(job) * width + job.term("permuted") * hidden * job.constant("routing")
    if job.value("has_expert_bias"):
        fused = job.known.value("expert_bias_fused") if job.value("cuda_graph") > 0.8 else 1.0
        passed = passed + width * number(job.known.value("expert_bias") * fused)
    moved = number(routed) * passed + tokens / tp * number(4) * hidden
    if job.value("shared_ffn"):
        moved = moved + _passes(job) * tokens * number(job.value("shared_ffn")) / tp
    read = number(2 * routed) * (hidden + job.term("matrices") * width)
    text = "(2 (r (n f + p h c + f i) + T/t 4 h + n T f_s/t) e + 2 r (h + k f) q + 8 G W) / B"
    whole, held = number(2) * moved * job.constant("elementwise"), job.times.layer.weights
    return _moved(job, said("experts"), text, whole, read, one(held.expert_weights))


def _passes(job: TimedPlan) -> ShownTerm:
    """Returns how many of f numbers an activation reads and writes: gated ones more."""
    return number(8 if job.value("matrices") > 2 else 5)


def _moved(
    job: TimedPlan, name: Sentence, formula: str, moved: ShownTerm, read: ShownTerm, weights: float
) -> Explained:
    """Returns bytes over the memory's speed: moved, made narrow, and gradients added up."""
    cast, sums = CASTS[int(job.jobs.recipe[0])], _gradient_sums(job)
    parts = [moved]
    if cast:
        parts.append(read * job.constant(cast))
    if sums.value:
        parts.append(sums * number(round(weights)))
    names = ("elementwise", cast, "gradient_sum" if sums.value else "")
    what = said("elementwise, {part}", part=name)
    return Explained(what, formula, total(parts) / job.memory, names)


def _gradient_sums(job: TimedPlan) -> ShownTerm:
    """Returns the bytes that adding up a weight's gradient takes; none where adapters train."""
    if job.value("is_lora"):
        return number(0)
    is_old = STACKS[int(job.jobs.stack[0])] == "megatron-deepspeed"
    apart = job.known.value("gradient_sum_deepspeed") if is_old else 1.0
    return number(8) * number(job.known.value("gradient_sum") * apart)


def _recompute(
    job: TimedPlan,
    products: list[tuple[str, Explained]],
    linear: ShownTerm,
    forward: ShownTerm,
    by_memory: ShownTerm,
) -> Explained:
    """Returns what backward computes again: of whole layers, and of parts of the others."""
    full, again, moe = job.value("full_recompute"), job.jobs.recomputed, one(job.jobs.moe_share)
    terms = []
    if full:
        whole = seconds(linear.value) + forward + number(0.4) * seconds(by_memory.value)
        terms.append(number(full) * whole)
    for name, parts, share in (
        ("linear", ("down", "up"), 1.0),
        ("linear", ("dense",), 1.0 - moe),
        ("up", ("up",), 1.0),
        ("feed_forward", ("dense",), 1.0 - moe),
        ("routed", ("routed",), moe),
    ):
        times = one(again[name]) * share * (1.0 - full)
        if times and any(part in parts for part, _ in products):
            terms.append(number(times) * _sum_of(products, *parts))
    if passed := one(passed_again(job.jobs)):
        terms.append(number(1.0 - full) * size(passed) / job.memory)
    if one(again["core"]) * (1.0 - full):
        terms.append(number(one(again["core"]) * (1.0 - full)) * forward)
    return _part("recompute", said("what is computed again"), total(terms or [seconds(0.0)]))


def _again(job: TimedPlan) -> ShownTerm:
    """Returns how often communication runs: once more in the forward that is recomputed."""
    return number(1.0 + 0.5 * job.value("full_recompute"))


def _tensor(job: TimedPlan) -> Explained:
    tp, tokens = job.value("tp"), one(job.jobs.tokens)
    gathers_again = job.value("is_sequence_parallel") and not job.value("is_lora")
    halves = number(volumes.SP_HALVES if gathers_again else volumes.TP_HALVES)
    sent = number(2) * number(tokens) * job.term("hidden") * number(one(volumes.kept(tp)))
    name = "tp_overlapped" if job.value("is_tp_overlapped") else "tp_exposed"
    each = sent / job.near(tp) + job.constant("latency")
    numbers = _again(job) * job.constant(name) * halves * each
    text = said("exposed x halves x (2 T h (t-1)/t / link + latency)")
    return _part("tp", text, numbers, (name, "latency"))


def _context(job: TimedPlan) -> Explained:
    cp, tp = job.value("cp"), job.value("tp")
    width = job.value("kv_heads") * job.value("qk_dim") / tp
    sent = number(2) * number(one(job.jobs.tokens)) * number(width)
    each = sent / job.near(tp * cp) + job.constant("latency")
    ring = number(6) * number(cp - 1) * each
    told = seconds(ring.value)
    hidden = excess(told, seconds(job.layer("attention")))
    text = said(
        "exposed x ring + max(ring - attention, 0), ring = 6 (c-1) (2 T g d/t / link + latency)"
    )
    numbers = job.constant("cp_exposed") * ring + hidden
    return _part("cp", text, numbers, ("cp_exposed", "latency"))


def _exchange(job: TimedPlan) -> Explained:
    """Returns dispatch and combine: bytes within the domain, and a token once to each other."""
    jobs, reached, ep = job.jobs, job.reached, job.value("ep")
    routed = jobs.imbalance * jobs.tokens
    sent = number(one(volumes.expert_bytes(routed, jobs.hidden, jobs.top_k, jobs.ep, jobs.tp)))
    beside = job.value("tp") if job.value("etp") > 1 else 1.0
    near = max(one(reached.domain) / beside, 1.0)
    far = min(max(1.0 - near / ep, 0.0), 1.0)
    domains, top_k = max(ep / near, 1.0), max(job.value("top_k"), 1.0)
    once = domains * (1.0 - (1.0 - 1.0 / domains) ** top_k) / top_k
    each = sent * number(1.0 - far) / job.nvlink + number(8) * job.constant("latency")
    if far:
        each = each + sent * number(far) * number(once) / job.nic
    shared = one(8.0 * routed * jobs.top_k * jobs.hidden * volumes.kept(jobs.etp))
    if shared:
        each = each + number(shared) / job.nvlink
    name = "ep_overlapped" if job.value("is_ep_overlapped") else "ep_exposed"
    numbers = number(one(jobs.moe_share)) * _again(job) * job.constant(name) * each
    text = said("MoE x exposed x (near bytes / NVLink + far bytes / network + 8 latencies)")
    return _part("ep", text, numbers, (name, "latency"))


def _launch(job: TimedPlan) -> Explained:
    """Returns what the host adds: gaps and waits, and its own pace where it is the slower one."""
    graph, count = job.value("cuda_graph"), number(one(kernels(job.jobs, job.known)))
    others = ("launch", "offload")
    parts = [each for name, each in job.times.layer.parts.items() if name not in others]
    busy = seconds(sum(map(one, parts)))
    gaps = job.constant("kernel_gap") * count * number(1.0 - 0.6 * graph)
    moe = one(job.jobs.moe_share)
    names = ["kernel_gap", "launch"]
    if moe:
        spared = 0.05 if graph > 0.8 else 0.6 if graph else 1.0
        waits = job.constant("moe_wait") + job.constant("moe_expert") * number(
            one(experts_here(job.jobs))
        )
        gaps = gaps + number(moe * spared) * waits
        names += ["moe_wait", "moe_expert"]
    is_old = STACKS[int(job.jobs.stack[0])] == "megatron-deepspeed"
    slow = job.known.value("launch_deepspeed") if is_old else 1.0
    host = seconds(job.known.value("launch") * slow) * count * number(1.0 - graph)
    numbers = slower_of(busy + gaps, host) - busy
    text = said("((GPU + gaps)^4 + host^4)^(1/4) - GPU, gaps and host by the number of kernels")
    return _part("launch", text, numbers, tuple(names))
