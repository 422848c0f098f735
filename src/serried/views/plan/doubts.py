"""What a plan leaves out or no measurement tells of it, in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serried.errors import listed
from serried.finding import Sentence, said
from serried.plan.job_plan import JobPlan
from serried.plan.time.interval import Beyond

SIZES: Mapping[str, Sentence] = {
    "gpus": said("GPUs"),
    "fsdp": said("ranks that share weights"),
    "sequence": said("tokens of a sequence"),
}
"""Sizes by the words for them; a degree has its own name."""


def doubts(plan: JobPlan) -> Iterator[Sentence]:
    """Yields what no step that was measured tells of this one; nothing where all is known."""
    cluster, gpus = plan.asked.cluster, plan.asked.degrees.world_size
    if cluster.num_gpus is not None and gpus > cluster.num_gpus:
        yield said(
            "{cluster} has {there:,} GPUs, and the job takes {gpus:,}",
            cluster=cluster.name,
            there=cluster.num_gpus,
            gpus=gpus,
        )
    if plan.asked.model.left_out:
        yield said(
            "{model} is planned as its decoder of text alone; its config has {parts} too, which is "
            "in none of these figures",
            model=plan.asked.model.name,
            parts=listed(plan.asked.model.left_out, last="and"),
        )
    if plan.beyond:
        yield said(
            "beyond what was measured: {sizes}; the step's interval is {times:.1f} times as wide "
            "for it",
            sizes=listed([_size(each) for each in plan.beyond], last="and"),
            times=plan.widened,
        )
    if plan.familiarity == "gpu":
        yield said(
            "no step of {gpu} was measured; the interval is that of GPU types which the fit had "
            "not seen",
            gpu=plan.asked.cluster.gpu.name,
        )
    if plan.familiarity == "foreign":
        yield said(
            "no step of {gpu} under {framework} was measured, nor one like it; the interval is "
            "that of GPU generations and software which the fit had not seen",
            gpu=plan.asked.cluster.gpu.name,
            framework=plan.asked.framework,
        )


def _size(found: Beyond) -> Sentence:
    return said(
        "{asked:,} {size} (at most {most:,})",
        asked=found.asked,
        size=SIZES.get(found.size, found.size),
        most=found.most,
    )
