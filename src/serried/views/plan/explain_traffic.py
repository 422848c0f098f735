"""What each group kind sends in a step with its numbers, and what one of its collectives takes.

n ranks, a seconds a step, S bytes in the buffer, B bytes per second that rings reach, W that
the switch reaches as it sums
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, log2

from serried.finding import Sentence, said
from serried.plan.job_plan import JobPlan
from serried.plan.traffic.transfers import Transfer
from serried.plan.traffic.ways import HALVES, SWITCH_S, TREE_SHARE, GroupLinks, ring_speed
from serried.units import bytes_text, duration_text
from serried.views.plan.formula import Formula, ShownTerm, number, seconds, size, speed

PERFORMANCE, TUNING = "nccl-tests doc/PERFORMANCE.md", "NCCL 2.x, src/graph/tuning.cc"
OF_TRAFFIC = said(
    "n ranks, g of them in a domain and d domains; a seconds a step, a' across; S bytes in the "
    "buffer; B bytes per second that rings reach, B' across, W that the switch reaches as it sums"
)
"""What the symbols of the formulas mean."""
ABOUT: Mapping[str, Sentence] = {
    "ring": said("by a ring of {ranks} ranks"),
    "tree": said("by two trees over {ranks} ranks"),
    "hierarchical": said("in each domain, across with the n-th part, and in the domain again"),
    "nvls": said("summed in the NVLink switch, {ranks} ranks"),
    "direct": said("from rank to rank, {ranks} ranks"),
    "measured": said("as serried check --busbw measured it, {ranks} ranks"),
}
"""How the algorithm that was taken moves bytes."""


def of_traffic(plan: JobPlan) -> Iterator[Formula]:
    """Yields what each group kind sends in a step, and the time of one of its collectives."""
    for each in plan.traffic:
        yield Formula(
            said("{kind} {collective}", kind=each.kind, collective=each.collective),
            said("sent x times"),
            f"{bytes_text(round(each.sent_bytes))} x {each.times:,.0f}",
            bytes_text(round(each.step_bytes)),
            "",
        )
        yield of_one(each)


def of_one(each: Transfer) -> Formula:
    """Returns what one collective alone on its links takes, by the algorithm that was taken."""
    formula, numbers = _way(each)
    about = Sentence(ABOUT[each.algorithm].template, {"ranks": each.ranks})
    source = "" if each.algorithm == "measured" else PERFORMANCE
    if each.algorithm in ("tree", "nvls"):
        source = TUNING
    what = said("one {kind} {collective}", kind=each.kind, collective=each.collective)
    told = said("{about}; {source}", about=about, source=source) if source else about
    text = numbers.text if numbers else ""
    return Formula(what, formula, text, duration_text(each.seconds * 1e9), told)


def _way(each: Transfer) -> tuple[str, ShownTerm | None]:
    links = each.links
    if each.algorithm == "ring":
        return _ring(each, links)
    if each.algorithm == "tree":
        return _tree(each, links)
    if each.algorithm == "hierarchical":
        return _hierarchical(each, links)
    if each.algorithm == "nvls":
        moved = number(links.ranks + 1) / number(links.ranks)
        moved = moved if each.collective == "all_reduce" else number(1)
        told = seconds(SWITCH_S) + moved * size(each.size_bytes) / speed(links.summed_bytes_per_s)
        return "25 us + (n+1)/n S/W", told
    if each.algorithm == "direct":
        return _direct(each, links)
    return "", None


def _step_s(links: GroupLinks) -> ShownTerm:
    return seconds(links.near_s if links.domains == 1 else links.far_s)


def _ring(each: Transfer, links: GroupLinks) -> tuple[str, ShownTerm]:
    halves, n = int(HALVES[each.collective]), links.ranks
    part = size(each.size_bytes) / number(n) / speed(ring_speed(links))
    told = number(halves * (n - 1)) * (_step_s(links) + part)
    return ("2 (n-1) (a + S/n/B)" if halves == 2 else "(n-1) (a + S/n/B)"), told


def _tree(each: Transfer, links: GroupLinks) -> tuple[str, ShownTerm]:
    deep = number(2 * ceil(log2(links.ranks))) * _step_s(links)
    moved = number(2) * size(each.size_bytes) / speed(ring_speed(links)) / number(TREE_SHARE)
    return f"2 log2(n) a + 2 S/B / {TREE_SHARE}", deep + moved


def _hierarchical(each: Transfer, links: GroupLinks) -> tuple[str, ShownTerm]:
    """Returns rings in the domain of g ranks and across d of them."""
    near, across = links.near, links.domains
    inside = size(each.size_bytes) / number(near) / speed(links.fast_bytes_per_s)
    inside = number(near - 1) * (seconds(links.near_s) + inside)
    outside = size(each.size_bytes) / number(near * across) / speed(links.far_bytes_per_s)
    outside = number(across - 1) * (seconds(links.far_s) + outside)
    told = number(HALVES[each.collective]) * (inside + outside)
    text = "(g-1) (a + S/g/B) + (d-1) (a' + S/(g d)/B')"
    return (f"2 ({text})" if told.value and HALVES[each.collective] == 2 else text), told


def _direct(each: Transfer, links: GroupLinks) -> tuple[str, ShownTerm]:
    """Returns a message, or an all-to-all whose far parts go through the NIC."""
    sent, fast = size(each.size_bytes), speed(links.fast_bytes_per_s)
    far, late = speed(links.far_bytes_per_s), _step_s(links)
    if each.collective == "sendrecv":
        return "a + S/B", late + sent / (fast if links.domains == 1 else far)
    ranks, near = links.ranks, min(links.near, links.ranks)
    inside = sent * number(near - 1) / number(ranks) / fast
    outside = sent * number(ranks - near) / number(ranks) / far
    if not outside.value:
        return "a + (n-1)/n S/B", late + inside
    slower = ShownTerm(f"max({inside.text}, {outside.text})", max(inside.value, outside.value))
    return "a + max((g-1)/n S/B, (n-g)/n S/B')", late + slower
