"""A Layout as documents that other programs read: JSON values and CSV rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from serried.finding import Finding
from serried.mesh import Layout, Placement
from serried.mesh.advice import is_important
from serried.mesh.layers import LayerSplit, positions
from serried.views.sentences import say

if TYPE_CHECKING:
    from serried.mesh.compare import Comparison, Pair
    from serried.mesh.rank import RankPlace
    from serried.mesh.sweep import Tried


def groups_document(layout: Layout, kinds: Sequence[str]) -> dict[str, Any]:
    """Returns the ``serried.groups/1`` document: every group of ``kinds``, in their order.

    Groups stay arrays; they become lists of ranks as they are written.
    """
    return {
        "schema": "serried.groups/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        "sizes": dict(layout.sizes),
        "groups": {kind: layout.groups(kind) for kind in kinds},
    }


def rank_document(layout: Layout, place: RankPlace) -> dict[str, Any]:
    """Returns the ``serried.rank/1`` document: one rank's place, groups and neighbours."""
    return {
        "schema": "serried.rank/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        **{each.name: getattr(place, each.name) for each in fields(place)},
        "groups": {kind: list(map(list, lists)) for kind, lists in place.groups.items()},
        "within": place.within,
    }


def groups_csv(layout: Layout, kinds: Sequence[str]) -> Iterator[str]:
    """Yields one CSV row per member, many at a time: kind, group, rank within it, rank."""
    import csv
    import io

    yield "kind,group,position,rank\n"
    for kind in kinds:
        text = io.StringIO()
        # A kind that a user named may hold a comma or a quote, so csv writes it; the comma behind
        # it stands in for the end of a line.
        csv.writer(text, lineterminator=",").writerow((kind,))
        name, first = text.getvalue(), 0
        groups = layout.groups(kind)
        placed = enumerate if groups.is_ascending else _placed
        for part in groups.in_parts():
            yield "".join(
                f"{name}{number},{place},{rank}\n"
                for number, ranks in enumerate(part, first)
                for place, rank in placed(ranks)
            )
            first += len(part)


def _placed(ranks: list[int]) -> Iterator[tuple[int, int]]:
    """Yields the members as they are listed, each with its rank within the group."""
    places = {rank: place for place, rank in enumerate(sorted(ranks))}
    return ((places[rank], rank) for rank in ranks)


def advice_document(layout: Layout, findings: Sequence[Finding], lang: str) -> dict[str, Any]:
    """Returns the ``serried.advice/1`` document: every finding, in words."""
    return {
        "schema": "serried.advice/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        "findings": [
            {
                "kind": finding.kind,
                "is_important": is_important(finding),
                "groups": list(finding.groups),
                "ranks": list(finding.ranks),
                "evidence": [say(sentence, lang) for sentence in finding.evidence],
                "cure": say(finding.cure, lang) if finding.cure else None,
                "confidence": finding.confidence,
            }
            for finding in findings
        ],
    }


def comparison_document(found: Comparison, left: str, right: str, lang: str) -> dict[str, Any]:
    """Returns the ``serried.comparison/1`` document: both layouts and every pair of kinds."""
    return {
        "schema": "serried.comparison/1",
        "same": found.is_same,
        "layouts": [_side(left, found.left), _side(right, found.right)],
        "kinds": [_pair(pair, left, right, lang) for pair in found.pairs],
        "only_first": [pair.left for pair in found.alone if pair.left],
        "only_second": [pair.right for pair in found.alone if pair.right],
    }


def _side(name: str, layout: Layout) -> dict[str, Any]:
    return {
        "name": name,
        "framework": layout.framework,
        "version": layout.version,
        "world_size": layout.world_size,
        "sizes": dict(layout.sizes),
        "order": layout.order,
    }


def _pair(pair: Pair, left: str, right: str, lang: str) -> dict[str, Any]:
    sentence = pair.sentence(left, right)
    return {
        "kinds": [pair.left, pair.right],
        "dim": pair.dim or None,
        "same": pair.is_same,
        "reordered": pair.is_reordered,
        "rank": pair.rank,
        "groups": [pair.ours, pair.theirs],
        "difference": say(sentence, lang) if sentence else None,
    }


def sweep_document(worlds: Sequence[Tried], place: Callable[[int], Placement]) -> dict[str, Any]:
    """Returns the ``serried.sweep/1`` document: all four lists of each world, or its refusal."""
    return {
        "schema": "serried.sweep/1",
        "worlds": [_world(each, place) for each in worlds],
    }


def _world(tried: Tried, place: Callable[[int], Placement]) -> dict[str, Any]:
    if tried.layout is None:
        return {
            "world_size": tried.world_size,
            "error": str(tried.refusal),
            "worlds_that_do": list(tried.fits),
        }
    from serried.mesh.sweep import four_lists

    lists = four_lists(tried.layout)
    return {
        "world_size": tried.world_size,
        "framework": tried.layout.framework,
        "version": tried.layout.version,
        "sizes": dict(tried.layout.sizes),
        "nodes": place(tried.world_size).num_nodes,
        "counts": {kind: len(groups) for kind, groups in lists.items()},
        "groups": {kind: groups.lists() for kind, groups in lists.items()},
    }


def layers_document(layout: Layout, split: LayerSplit) -> dict[str, Any]:
    """Returns the ``serried.layers/1`` document: layers and ranks of each pipeline position."""
    at = positions(layout)
    return {
        "schema": "serried.layers/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        "layers": split.num_layers,
        "chunks": split.num_chunks,
        "positions": [
            {
                "position": position,
                "chunks": [list(chunk) for chunk in held],
                "ranks": (at == position).nonzero()[0].tolist(),
            }
            for position, held in enumerate(split.held)
        ],
    }
