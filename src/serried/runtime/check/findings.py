"""What a check says of what it measured: wrong groups, then slow nodes, links and groups."""

from __future__ import annotations

from collections.abc import Sequence

from serried.errors import listed
from serried.finding import Finding, said
from serried.mesh import Layout
from serried.runtime.check.report import GroupTimes, Link, Membership, Seat
from serried.runtime.check.slow import slow_groups, slow_links


def check_findings(
    layout: Layout,
    seats: Sequence[Seat],
    members: Sequence[Membership],
    timings: Sequence[GroupTimes],
    links: Sequence[Link],
    sizes_bytes: Sequence[int],
) -> tuple[Finding, ...]:
    """Returns all findings; groups slowed by a node, rank or link that is named are left out."""
    wrong = wrong_groups(layout, members)
    slow = slow_links(links, seats, sizes_bytes)
    named = {rank for finding in slow for rank in finding.ranks}
    kinds = dict.fromkeys(each.kind for each in timings)
    groups = slow_groups(timings, {kind: layout.groups(kind).lists() for kind in kinds})
    unexplained = [finding for finding in groups if not named & set(finding.ranks)]
    return (*wrong, *slow, *unexplained)


def wrong_groups(layout: Layout, members: Sequence[Membership]) -> list[Finding]:
    """Returns a finding for each group that answers with other ranks than the layout lists.

    torch sorts the members of a group, so the sorted list is what should come back.
    """
    told: dict[tuple[str, int], Membership] = {}
    for each in members:
        before = told.setdefault((each.kind, each.number), each)
        if before != each:  # two members of one group heard different things
            told[each.kind, each.number] = _odd(layout, before, each)
    findings = []
    for (kind, number), heard in told.items():
        listed_ranks = layout.groups(kind)[number].tolist()
        if heard.answered != tuple(sorted(listed_ranks)) or heard.total != sum(listed_ranks):
            findings.append(_wrong(kind, heard, listed_ranks))
    return findings


def _odd(layout: Layout, one: Membership, other: Membership) -> Membership:
    right = tuple(sorted(layout.groups(one.kind)[one.number].tolist()))
    return other if (one.answered, one.total) == (right, sum(right)) else one


def _wrong(kind: str, heard: Membership, members: list[int]) -> Finding:
    evidence = said(
        "{kind} group {number} answers with ranks {answered} and the sum {total}; the layout has "
        "{members}",
        kind=kind,
        number=heard.number,
        answered=f"[{listed(heard.answered, limit=64).replace(',', '')}]",
        total=heard.total,
        members=f"[{listed(sorted(members), limit=64).replace(',', '')}]",
    )
    return Finding("wrong-group", (evidence,), ranks=tuple(members), groups=(kind,))
