"""How long a collective takes by the algorithms that libraries choose among: closed forms.

    S bytes in the buffer, n ranks, a seconds a step, B bytes per second that rings reach of a
    rank's way out, W that the NVLink switch reaches as it sums

    ring          2 (n-1) a  + 2 (n-1)/n S/B    all-reduce; half of both for its two halves
    tree          2 log2(n) a + 2 S/B / share   all-reduce only: few steps, all bytes up and down
    hierarchical  a ring in the domain, one across between like ranks on 1/g of the bytes, a ring
                  in the domain again; g ranks in a domain
    nvls          25 us + (n+1)/n S/W           the switch adds up: it reads each buffer once, and
                  each rank stores its n-th of the sum for all, both at once, as parts follow one
                  another; half of an all-reduce moves S, which a ring does with less

A collective takes the quickest. Sources: nccl-tests doc/PERFORMANCE.md (ring); NCCL 2.x,
src/graph/tuning.cc at 5067397c: latencies, and trees reaching 0.92 of a ring; Sanders, Speck and
Traff 2009 (double trees). What rings and NVLS reach of the links is the catalogue's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from serried.errors import InputError

TREE_SHARE = 0.92
"""Share of a ring's bandwidth that a pair of trees reaches."""
SWITCH_S = 25e-6
"""Seconds that a sum in the switch takes beside its bytes; NCCL 2.x, src/graph/tuning.cc, NVLS."""
HALVES = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0}


@dataclass(frozen=True)
class GroupLinks:
    """Holds what joins the ranks of one group: ``near`` of them share fast links."""

    ranks: int
    near: int
    fast_bytes_per_s: float
    """What a rank's part of a ring sends into its domain."""
    far_bytes_per_s: float
    """What a rank sends out of it, through its own NIC."""
    near_s: float
    """Latency of a step within a domain."""
    far_s: float
    summed_bytes_per_s: float = 0.0
    """What a rank exchanges with a switch that adds up; 0 where none does."""

    def __post_init__(self) -> None:
        if self.near < 1 or self.ranks < 1:
            raise InputError(
                "a group of {ranks} ranks, {near} of them near; both are at least 1",
                ranks=self.ranks,
                near=self.near,
            )

    @property
    def domains(self) -> int:
        """Domains that the group spreads over."""
        return -(-self.ranks // self.near)


def ways(collective: str, size_bytes: float, links: GroupLinks) -> dict[str, float]:
    """Returns seconds by algorithm, of those that ``collective`` has over these links.

    >>> links = GroupLinks(16, 8, 300e9, 25e9, 3.4e-6, 14e-6)
    >>> {name: round(time * 1e3, 2) for name, time in ways("all_reduce", 1e9, links).items()}
    {'ring': 9.79, 'tree': 10.98, 'hierarchical': 10.91}
    """
    if links.ranks == 1:
        return {"none": 0.0}
    if collective == "all_to_all":
        return {"direct": _direct(size_bytes, links)}
    if collective == "sendrecv":
        return {"direct": _message(size_bytes, links)}
    if collective not in HALVES:
        raise InputError("'{operation}' has no closed form here", operation=collective[:40])
    halves, ranks = HALVES[collective], links.ranks
    step = links.near_s if links.domains == 1 else links.far_s
    speed = ring_speed(links)
    found = {"ring": halves * (ranks - 1) * (step + size_bytes / ranks / speed)}
    if collective == "all_reduce":
        found["tree"] = (
            2.0 * math.ceil(math.log2(ranks)) * step + 2.0 * size_bytes / speed / TREE_SHARE
        )
    if links.domains > 1 and links.near > 1:
        inside = _within(size_bytes, links) * 2.0
        share, across = size_bytes / links.near, links.domains
        outside = (across - 1) * (links.far_s + share / across / links.far_bytes_per_s)
        found["hierarchical"] = halves * (inside / 2.0 + outside)
    if links.summed_bytes_per_s and links.domains == 1:
        moved = (ranks + 1) / ranks if collective == "all_reduce" else 1.0
        found["nvls"] = SWITCH_S + moved * size_bytes / links.summed_bytes_per_s
    return found


def quickest(collective: str, size_bytes: float, links: GroupLinks) -> tuple[str, float]:
    """Returns the quickest algorithm and its seconds."""
    found = ways(collective, size_bytes, links)
    name = min(found, key=lambda each: found[each])
    return name, found[name]


def ring_speed(links: GroupLinks) -> float:
    """Returns bytes per second round a ring: between domains all NICs of a domain carry it."""
    if links.domains == 1:
        return links.fast_bytes_per_s
    return min(links.fast_bytes_per_s, links.near * links.far_bytes_per_s)


def _within(size_bytes: float, links: GroupLinks) -> float:
    near = links.near
    return (near - 1) * (links.near_s + size_bytes / near / links.fast_bytes_per_s)


def _direct(size_bytes: float, links: GroupLinks) -> float:
    """Returns an all-to-all: every rank sends a part to each other, far ones through its NIC."""
    ranks, near = links.ranks, min(links.near, links.ranks)
    inside = size_bytes * (near - 1) / ranks / links.fast_bytes_per_s
    outside = size_bytes * (ranks - near) / ranks / links.far_bytes_per_s
    late = links.near_s if links.domains == 1 else links.far_s
    return late + max(inside, outside)


def _message(size_bytes: float, links: GroupLinks) -> float:
    if links.domains == 1:
        return links.near_s + size_bytes / links.fast_bytes_per_s
    return links.far_s + size_bytes / links.far_bytes_per_s
