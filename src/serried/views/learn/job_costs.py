"""What a card says of cost: in seconds of the planned step, else by the bytes that a rank sends.

planned     reduce_scatter of 3.49 GB over 2 ranks, once a step, 4.71 ms
else        of a buffer of S bytes a rank sends 2 (n - 1) / n S
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.collective.networks import DEFAULT, preset_of
from serried.finding import Sentence, said
from serried.plan.collective_price import CollectiveQuestion
from serried.plan.traffic.transfers import Transfer
from serried.units import bytes_text, duration_text
from serried.views.job.layout_group import group_of
from serried.views.learn.card_job import CardJob, kind_of
from serried.views.plan.words import traffic_word
from serried.views.sentences import say

PRICED_BYTES = 1 << 30
"""The buffer that a collective is priced with where no plan says how large it is."""
MOST_PRICED = 256
"""Ranks of a group that is priced step by step; a card of a larger one says bytes alone."""
USUAL = {
    "dp": "all-reduce",
    "zero": "all-reduce",
    "fsdp": "all-gather",
    "tp": "all-reduce",
    "sp": "all-gather",
    "cp": "all-gather",
    "ep": "all-to-all",
    "moe": "all-to-all",
    "etp": "all-gather",
}
"""The collective that stands for a card where no plan says which run."""
OF_DIMENSION = {"zero": "dp", "fsdp": "dp", "sp": "tp", "moe": "ep"}
"""The dimension over whose groups runs what other cards are about."""
_OVER_DATA = ("dp", "fsdp", "expert_dp")
PLANNED = {"dp": _OVER_DATA, "zero": _OVER_DATA, "fsdp": _OVER_DATA, "sp": ("tp",), "moe": ("ep",)}
"""Kinds of a plan's traffic that a card speaks of, where they are not called as it is."""


def cost_lines(key: str, job: CardJob, lang: str) -> Iterator[str]:
    """Yields what a dimension costs: of a plan in seconds, else by bytes."""
    if key in ("bubble", "zb"):
        found = _bubble_cost(job)
    elif key == "pp" or key in USUAL:
        found = _planned(key, job) if job.plan else _by_bytes(key, job)
    else:
        return
    for sentence in found:
        yield say(sentence, lang)


def _planned(key: str, job: CardJob) -> Iterator[Sentence]:
    """Yields what each collective of a dimension costs in the planned step."""
    plan = job.plan
    assert plan is not None
    kinds = PLANNED.get(key, (key,))
    for each in plan.traffic:
        if each.kind in kinds:
            yield _transfer(each)
    seconds = plan.parts.get(OF_DIMENSION.get(key, key), 0.0)
    if seconds:
        yield said(
            "Estimated: {time} of a step of {step} are not hidden behind computation",
            time=duration_text(seconds * 1e9),
            step=duration_text(plan.step_s * 1e9),
        )


def _transfer(each: Transfer) -> Sentence:
    is_once = round(each.times) == 1
    return said(
        "Estimated: {collective} of {size} over {ranks} ranks, once a step, {time}; the slowest "
        "link on the way: {link}"
        if is_once
        else "Estimated: {collective} of {size} over {ranks} ranks, {times:,.0f} times a step, "
        "{time} each; the slowest link on the way: {link}",
        collective=each.collective,
        size=bytes_text(round(each.size_bytes)),
        ranks=each.ranks,
        times=each.times,
        time=duration_text(each.seconds * 1e9),
        link=traffic_word(each.link),
    )


def _by_bytes(key: str, job: CardJob) -> Iterator[Sentence]:
    """Yields the bytes of the usual collective, and its time where the group is not too large."""
    if key == "pp":
        if job.layout.sizes.get("pp", 1) > 1:
            yield said(
                "One message for each microbatch, boundary and direction: tokens x samples x "
                "hidden size x 2 bytes in bf16"
            )
        return
    kind = kind_of(OF_DIMENSION.get(key, key), job.layout)
    groups = job.layout.groups(kind) if kind else None
    ranks = int(max(groups.sizes, default=0)) if groups is not None else 0
    if ranks < 2:
        return
    name = USUAL[key]
    sharding = job.layout.sharding
    if key == "zero" and sharding is not None and sharding.stage:
        name = "reduce-scatter"
    factor = (2 if name == "all-reduce" else 1) * (ranks - 1) / ranks
    yield said(
        "By {collective}, each of {ranks} ranks sends {factor:.3g} S of a buffer of S bytes",
        collective=name,
        ranks=ranks,
        factor=factor,
    )
    if ranks <= MOST_PRICED:
        yield _priced(name, kind, job)


def _priced(name: str, kind: str, job: CardJob) -> Sentence:
    preset = preset_of(DEFAULT)
    group = group_of(job.layout, job.placement, kind, job.rank)
    algorithm = "ring" if name == "all-reduce" else None
    asked = CollectiveQuestion(name, group, PRICED_BYTES, preset.networks(), algorithm)
    return said(
        "Estimated: 1 GiB takes {time} on {network} links",
        time=duration_text(asked.priced().time_s * 1e9),
        network=preset.name,
    )


def _bubble_cost(job: CardJob) -> Iterator[Sentence]:
    plan = job.plan
    if plan is not None and plan.asked.degrees.pp > 1:
        seconds = plan.parts.get("bubble", 0.0)
        yield said(
            "Estimated for {schedule} with {count} microbatches: {time}, {share} of a step",
            schedule=plan.asked.schedule,
            count=plan.asked.num_microbatches,
            time=duration_text(seconds * 1e9),
            share=f"{seconds / plan.step_s:.1%}",
        )
