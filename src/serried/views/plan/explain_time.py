"""Every part of a planned step with its numbers: what is reached, one layer, the whole step.

    reached   GEMMs, memory, links: what the data sheet says times a fitted constant
    layer     GEMMs, attention, elementwise, communication, launches: seconds of one microbatch
    step      m microbatches x L layers of the rank that works most, then what follows them

Formulas are those of ``plan.time``; a test holds the value of each against the plan's part.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.finding import said
from serried.plan.job_plan import JobPlan
from serried.plan.time.chips import generation, kind
from serried.plan.time.constants import Constants
from serried.plan.time.jobs import FORMATS
from serried.plan.time.layer import PARTS
from serried.plan.time.rates import peak
from serried.units import duration_text
from serried.views.plan.explain_layer import Explained, layer_parts
from serried.views.plan.explain_offload import layer_offload
from serried.views.plan.explain_step import step_parts
from serried.views.plan.formula import Formula, number, rate, seconds, speed
from serried.views.plan.timed_plan import TimedPlan
from serried.views.plan.words import time_word

OF_TIME = said(
    "m microbatches, L layers of the rank that works most, T tokens of a microbatch; t, c, e "
    "ranks of tp, cp, ep; h hidden, h' = h/t with sequence parallel, a heads, g heads of keys "
    "and values, d numbers a head, s sequence, f feed-forward, k its matrices, n its passes, r "
    "routed tokens, V vocabulary, v chunks; M x K times K x N is a product, w bytes a weight, W "
    "weights of a rank, G gradients, P parameters; constants are fitted, ± is the standard "
    "error of their logarithm"
)
"""What the symbols of the formulas mean."""


def of_time(plan: JobPlan, constants: Constants) -> Iterator[Formula]:
    """Yields what is reached, the parts of one layer, then those of the step and their sum."""
    job = TimedPlan(plan, constants)
    yield from of_rates(job)
    for part in layer_parts(job):
        yield _formula(job, part)
    if plan.parts["offload"]:
        yield _formula(job, layer_offload(job))
    for name in PARTS:
        if plan.parts[name]:
            whole = job.layer_times * seconds(job.layer(name))
            yield _formula(job, Explained(time_word(name), "m L t", whole), of_step=True)
    for part in step_parts(job).values():
        yield _formula(job, part, of_step=True)
    yield Formula(
        said("step"),
        said("the sum of its parts"),
        " + ".join(duration_text(each * 1e9) for each in plan.parts.values() if each),
        duration_text(plan.step_s * 1e9),
        said("constants: {source}", source=constants.source),
    )


def of_rates(job: TimedPlan) -> Iterator[Formula]:
    """Yields what GPU and links reach of what their makers say."""
    cluster, known = job.plan.asked.cluster, job.known
    gpu, bits = cluster.gpu, FORMATS[int(job.jobs.format[0])]
    made, chip = generation(gpu), kind(gpu)
    names = f"gemm.{made}.{bits}", f"device.{chip}.{bits}"
    share = known.gemm(gpu, bits)
    yield Formula(
        said("R, FLOP/s of large GEMMs"),
        said("peak x share"),
        (rate(peak(gpu, bits)) * number(share)).text,
        rate(peak(gpu, bits) * share).text,
        f"{gpu.source}; {job.source(*names)}",
    )
    yield Formula(
        said("A, FLOP/s of flash attention's forward"),
        said("peak of bf16 x share"),
        (rate(peak(gpu, "16")) * number(known.attention(gpu))).text,
        job.rate("attention").text,
        job.source(f"attention.{made}"),
    )
    for what, told, name in (
        (said("B, bytes per second of memory"), gpu.memory_bytes_per_s, "memory"),
        (said("bytes per second of fast links"), gpu.link_bytes_per_s, "nvlink"),
        (said("bytes per second of the network"), cluster.nic_bytes_per_s, "nic"),
    ):
        whole = speed(told) * job.constant(name)
        yield Formula(
            what, said("data sheet x share"), whole.text, speed(whole.value).text, job.source(name)
        )
    if job.plan.asked.offload != "none":
        what = said("H, bytes per second to the host")
        memory = said("{speed} of its memory", speed=job.host_memory.text)
        source = gpu.host_source or said("taken as of a DGX A100")
        yield Formula(what, "", memory, job.host.text, source)


def _formula(job: TimedPlan, part: Explained, *, of_step: bool = False) -> Formula:
    shown = duration_text(part.numbers.value * 1e9)
    if of_step:
        shown += f", {part.numbers.value / job.plan.step_s:.1%}"
    return Formula(part.what, part.formula, part.numbers.text, shown, job.source(*part.constants))
