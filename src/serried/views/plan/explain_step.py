"""What a step takes besides its layers, part by part, with its numbers.

Formulas are those of ``plan.time.stages``, ``exposed`` and ``step``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from serried.finding import Sentence, said
from serried.plan.time.exposed import ADAPTERS, copies_of
from serried.plan.time.jobs import STACKS
from serried.plan.traffic import volumes
from serried.views.plan.explain_layer import Explained, gemm
from serried.views.plan.explain_offload import host_step
from serried.views.plan.formula import ShownTerm, excess, number, seconds, size, total
from serried.views.plan.timed_plan import TimedPlan, one
from serried.views.plan.words import time_word


def step_parts(job: TimedPlan) -> Mapping[str, Explained]:
    """Returns the parts of a step that are not layers and take time, by name.

    Of a schedule that is walked, what the walk tells has no numbers but its result.
    """
    found = {
        "embedding and output": _ends(job),
        "pp": _messages(job),
        "bubble": _bubble(job),
        "dp": _shards(job) if job.value("is_fsdp") else _replicas(job),
        "optimizer": _optimizer(job),
        "fixed": _fixed(job),
        "straggling": _straggling(job),
    }
    if job.is_walked:
        walk = said("as walked through {schedule}", schedule=job.plan.asked.schedule)
        for name in ("embedding and output", "pp", "bubble"):
            found[name] = _part(name, walk, ShownTerm("", job.plan.parts[name]))
    return {name: part for name, part in found.items() if job.plan.parts[name]}


def _part(
    name: str, formula: Sentence | str, numbers: ShownTerm, constants: tuple[str, ...] = ()
) -> Explained:
    return Explained(time_word(name), formula, numbers, constants)


def _ends(job: TimedPlan) -> Explained:
    """Returns embedding, output layer and loss, as far as they are on the rank that works most."""
    tokens, hidden, tp = one(job.jobs.tokens), job.value("hidden"), job.value("tp")
    vocab, stages = job.value("vocab") / tp, job.times.stages
    passes = number(2 if job.value("is_lora") else 3)
    output = passes * gemm(job, tokens, vocab, hidden, job.rate("wide"), weight=2.0)
    output = output * number(1.0 + job.value("mtp_layers"))
    output = output + number(2) * number(tokens) * number(vocab) * job.constant("loss_passes") / (
        job.memory
    )
    if tp > 1:
        output = output + number(4) * number(tokens) * number(hidden) / job.near(tp)
    embedding = number(12) * number(tokens) * number(hidden) / job.memory
    counted = output
    if job.value("pp") == 1:
        counted = embedding + output
    elif job.value("is_balanced"):
        counted = (embedding + output) / job.term("pp")
    elif one(stages.slowest) <= one(stages.slowest_layers) * one(job.times.layer.total):
        counted = seconds(0.0)
    text = said("m (12 T h / B + GEMM of the output, 3 times + 2 T V/t passes / B + sums of tp)")
    return _part(
        "embedding and output",
        text,
        job.term("microbatches") * counted,
        ("loss_passes", "gemm_bytes"),
    )


def _messages(job: TimedPlan) -> Explained:
    split = job.value("tp") if job.value("is_sequence_parallel") else 1.0
    sent = one(volumes.boundary_bytes(job.jobs.tokens, job.jobs.hidden, split))
    each = size(sent) / job.between_stages + number(2) * job.constant("latency")
    numbers = job.term("microbatches") * job.term("chunks") * job.constant("pp_exposed") * each
    text = said("m v exposed x (message / link + 2 latencies)")
    return _part("pp", text, numbers, ("pp_exposed", "latency"))


def _bubble(job: TimedPlan) -> Explained:
    stages = job.times.stages
    once = seconds(one(stages.slowest) + one(stages.message))
    whole = seconds(one(stages.whole)) + job.term("pp") * seconds(one(stages.message))
    text = said("(all stages and messages once - the slowest) / chunks")
    return _part("bubble", text, (whole - once) / job.term("chunks"))


def _replicas(job: TimedPlan) -> Explained:
    """Returns what replicas agree about: gradients reduced, parameters gathered."""
    dense = job.value("dp") * job.value("cp")
    others = job.value("pp") * job.value("ep") * job.value("etp")
    experts = max(one(job.jobs.world_size) / others, 1.0)
    each = number(job.value("reduced_bytes") + job.value("gathered_bytes"))
    between = job.value("pp") if job.value("is_pp_inner") else 1.0
    parts = []
    for held, ranks, apart in (
        (one(job.times.held.dense), dense, job.value("tp")),
        (one(job.times.held.experts), experts, job.value("ep") * job.value("etp")),
    ):
        if held and ranks > 1:
            sent = each * number(round(held)) * number(one(volumes.kept(ranks)))
            parts.append(sent / job.ring(ranks, apart, between))
    time = total(parts or [seconds(0.0)])
    if job.value("is_lora"):
        time = number(ADAPTERS) * time
    if dense > 1:
        time = time + number(40 * log2(dense + 1)) * job.constant("latency")
    text = "(G + P) W (d-1)/d / link + 40 log2(d+1) latency"
    if STACKS[int(job.jobs.stack[0])] == "megatron-deepspeed":
        return _part("dp", text, time, ("latency",))
    layers = job.value("layers") + job.value("mtp_layers")
    microbatch = one(job.times.layer.total) * layers / job.value("pp")
    beside = excess(seconds(time.value), number(0.9) * seconds(microbatch))
    both = said("exposed x T + max(T - 0.9 microbatch, 0), T = {text}", text=text)
    numbers = job.constant("dp_exposed") * time + beside
    return _part("dp", both, numbers, ("dp_exposed", "latency"))


def _shards(job: TimedPlan) -> Explained:
    """Returns what gathering sharded weights adds, in every microbatch."""
    ranks = job.value("shard_ranks")
    gathers = 1 if job.value("is_kept_after_forward") else 2
    each = gathers * job.value("gathered_bytes") + job.value("reduced_bytes")
    held = one(job.times.held.dense) + one(job.times.held.experts)
    sent = number(each) * number(round(held)) * number(one(volumes.kept(ranks)))
    time = sent / job.ring(ranks, job.value("tp"))
    of_copies = ""
    if (copies := one(copies_of(job.jobs))) > 1:
        part = number(job.value("reduced_bytes")) * number(round(held)) / number(ranks)
        among = number(2) * part * number(one(volumes.kept(copies)))
        time = time + among / job.ring(copies, job.value("tp") * ranks)
        of_copies = " + 2 G W/n (c-1)/c / link"
    late = number(3 * log2(max(ranks, 2.0))) * job.constant("latency")
    time = time + job.term("layers") * late
    hidden = number(0.9) * seconds(one(job.times.stages.whole))
    exposed = job.constant("fsdp_exposed") * time + excess(seconds(time.value), hidden)
    text = said(
        "m (exposed x T + max(T - 0.9 microbatch, 0)), T = {text}",
        text=f"(2 P + G) W (n-1)/n / link{of_copies} + 3 L log2(n) latency",
    )
    numbers = job.term("microbatches") * exposed
    return _part("dp", text, numbers, ("fsdp_exposed", "latency"))


def _optimizer(job: TimedPlan) -> Explained:
    others = job.value("pp") * job.value("ep") * job.value("etp")
    replicas = max(one(job.jobs.world_size) / others, 1.0)
    shards = job.value("shard_ranks")
    of_experts = shards if job.value("is_fsdp") else min(replicas, shards)
    updated = number(round(one(job.times.held.dense))) / number(shards)
    if experts := one(job.times.held.experts):
        updated = updated + number(round(experts)) / number(of_experts)
    if job.value("is_lora"):
        updated = number(ADAPTERS) * updated
    if job.value("offloads_optimizer"):
        return host_step(job, updated)
    numbers = job.constant("optimizer_bytes") * updated / job.memory
    return _part("optimizer", said("bytes x W / shards / B"), numbers, ("optimizer_bytes",))


def _fixed(job: TimedPlan) -> Explained:
    spared = number(0.3 if job.value("cuda_graph") > 0.8 else 1.0)
    return _part("fixed", said("a constant"), spared * job.constant("fixed"), ("fixed",))


def _straggling(job: TimedPlan) -> Explained:
    """Returns what waiting for the slowest of so many nodes adds, and the software that runs it."""
    nodes = log2(max(one(job.jobs.world_size) / 8.0, 1.0))
    slower = number(1) + job.constant("straggling") * number(nodes)
    names = ["straggling"]
    stack = STACKS[int(job.jobs.stack[0])]
    for name, holds in (
        (f"stack_{stack.replace('megatron-', '').replace('-fsdp', '')}", stack != "megatron"),
        ("lora", bool(job.value("is_lora"))),
    ):
        if holds:
            slower, names = slower * job.constant(name), [*names, name]
    alone = sum(each for name, each in job.plan.parts.items() if name != "straggling")
    text = said("all other parts x ((1 + c log2(nodes of 8)) x software - 1)")
    return _part("straggling", text, seconds(alone) * (slower - number(1)), tuple(names))
