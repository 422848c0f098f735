"""What a card of a dimension says of the job at hand: its groups, and a rank's share of the split.

dp    dp is 2 here: 8 groups (dp), each inside one node.  Rank 5 is in group 3: 5, 7.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.errors import listed
from serried.finding import Sentence, said
from serried.mesh import Groups
from serried.views.learn.card_job import CardJob, kind_of, known, nodes_spanned

SPLITS = ("dp", "tp", "pp", "cp", "ep", "etp")
"""Cards of dimensions, which have groups."""


def split_lines(key: str, job: CardJob) -> Iterator[Sentence]:
    """Yields how many groups a dimension has, whether they cross nodes, and that of the rank."""
    kind = kind_of(key, job.layout)
    if not kind and key not in job.layout.dims:
        yield said("{framework} has no {dim} groups", framework=job.layout.framework, dim=key)
        return
    groups = job.layout.groups(kind) if kind else None
    most = int(max(groups.sizes, default=0)) if groups is not None else 0
    if groups is None or most < 2:
        yield said("This job does not split along {dim}: its size is 1", dim=key)
        return
    nodes = nodes_spanned(job, kind)
    yield said(
        "{dim} is {ranks} here: {count} groups ({kind}), {where}",
        dim=key,
        ranks=most,
        count=len(groups),
        kind=kind,
        where=said("each inside one node")
        if nodes == 1
        else said("over as many as {nodes} nodes each", nodes=nodes),
    )
    if key == "etp" and job.layout.sizes.get("ep", 1) == 1:
        yield said("Where the model has no experts, it changes nothing")
    yield from _share(key, job, most)
    if job.rank is not None:
        yield from _own_group(kind, job, groups)


def _share(key: str, job: CardJob, ranks: int) -> Iterator[Sentence]:
    """Yields what the split leaves to a rank of the planned job."""
    if job.plan is None:
        return
    asked = job.plan.asked
    if key == "dp":
        yield said(
            "Each data rank reads {count} of the {whole} sequences of a step",
            count=f"{asked.global_batch / asked.degrees.dp:g}",
            whole=asked.global_batch,
        )
    elif key == "cp":
        yield said(
            "Each rank holds {count:,.0f} of the {whole:,} tokens of a sequence",
            count=asked.sequence / ranks,
            whole=asked.sequence,
        )
    elif key == "pp":
        counts = [stage.num_layers for stage in asked.stages]
        yield said("Layers of the stages: {counts}", counts=listed(counts, limit=16))
    elif key == "tp":
        yield said(
            "Each rank computes {heads:g} of {whole} attention heads",
            heads=asked.model.heads / ranks,
            whole=asked.model.heads,
        )
    elif key == "ep" and asked.model.experts:
        yield said(
            "Each rank holds {count:g} of the {whole} experts of a layer",
            count=asked.model.experts.count / ranks,
            whole=asked.model.experts.count,
        )


def _own_group(kind: str, job: CardJob, groups: Groups) -> Iterator[Sentence]:
    place = known(job)
    held = place.groups.get(kind) or [
        groups[number].tolist() for number in groups.containing(place.rank)
    ]
    if held:
        yield said(
            "Rank {rank} is in group {number}: {ranks}",
            rank=place.rank,
            number=job.layout.numbers_of(kind, place.rank)[0],
            ranks=listed(held[0], limit=16),
        )
