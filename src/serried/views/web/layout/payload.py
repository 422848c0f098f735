"""A layout as a payload: where each rank sits, and every group of the kinds in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from serried import frameworks
from serried.frameworks import Framework, Sizes
from serried.frameworks.sharding import MODULES as STAGED
from serried.launch.request import DEFAULT_FRAMEWORK
from serried.limits import LAUNCH_BYTES
from serried.mesh import Layout, Placement, Ranks
from serried.mesh.domain import domain_of
from serried.mesh.rank import place_of
from serried.views.colours import FAMILIES, Family, family, order_colours, shades
from serried.views.explain.explanation import explanation
from serried.views.explain.words import basics, note_in
from serried.views.job.settings_text import setting_lines
from serried.views.layout.document import rank_document
from serried.views.web.layout.cube import cube_columns, cube_meshes
from serried.views.web.layout.fitted import sizes_taken
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.query import Query, Shown
from serried.views.web.wire.stages import stages

DEFAULT = frameworks.find(DEFAULT_FRAMEWORK)
"""The framework whose legend is shown until there is a layout."""


def layout_payload(query: Query, lang: str) -> bytes:
    """Returns the payload that answers ``query``; raises InputError where there is no answer."""
    layout, shown = query.layout, query.shown()
    header = {
        "kind": "layout",
        "job": _job(query, layout),
        "meshes": cube_meshes(layout),
        "stage_order": _order(FAMILIES["pp"]),
        "kinds": [_kind(layout, kind.name, lang) for kind in layout.kinds],
        "shown": [_shown(layout, each, look) for each, look in looks_of(shown)],
        "basics": [each._asdict() for each in basics(layout, lang)],
        "explanation": _explanation(query, layout, lang),
        "command": query.command(shown),
    }
    columns = _rank_columns(layout, query.placement) | cube_columns(layout) | _domains(query)
    for number, (each, look) in enumerate(looks_of(shown)):
        columns |= _group_columns(layout, query.placement, each, look, number)
    return pack(header, columns)


def page_answer(lang: str) -> dict[str, Any]:
    """Returns what the page shows whatever the layout: frameworks, looks and basics."""
    return {
        "schema": "serried.page/1",
        "frameworks": _frameworks(lang),
        "looks": {dim: _look(look) for dim, look in FAMILIES.items()},
        "basics": [each._asdict() for each in basics(DEFAULT.layout(Sizes(1)), lang)],
        "limit_bytes": LAUNCH_BYTES.most,
    }


def rank_answer(query: Query, rank: int, lang: str) -> dict[str, Any]:
    """Returns the ``serried.rank/1`` document with group numbers and a note per kind.

    Raises InputError when ``rank`` is outside the world.
    """
    layout = query.layout
    place = place_of(layout, query.placement, rank)
    return rank_document(layout, place) | {
        "numbers": {name: layout.numbers_of(name, rank) for name in place.groups},
        "notes": {name: note_in(layout, name, lang) for name in place.groups},
    }


def _job(query: Query, layout: Layout) -> dict[str, Any]:
    framework = frameworks.find(query.request.framework_at)
    return {
        "framework": layout.framework,
        "title": framework.title,
        "version": layout.version,
        "world_size": layout.world_size,
        "sizes": dict(layout.sizes),
        "order": layout.order,
        "axes": {axis: layout.mesh.sizes[axis] for axis in reversed(layout.mesh.axes)},
        "dims": list(layout.dims),
        "takes": sizes_taken(framework, query.request.settings),
        "num_stages": layout.sizes.get("pp", 1),
        "gpus_per_node": query.placement.gpus_per_node,
        "gpus_per_rank": query.placement.gpus_per_rank,
        "node_gpus": list(query.placement.widths),
        "ranks_per_node": query.placement.ranks_on_largest,
        "num_nodes": query.placement.num_nodes,
    }


def _frameworks(lang: str) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "title": each.title,
            "version": each.version,
            "versions": list(each.versions),
            "source": each.source,
            "dims": list(each.dims),
            "sizes": sorted(_sizes(each)),
            "options": dict(setting_lines(each, lang)),
            "order": each.default_order,
            "orders": list(each.orders),
        }
        for each in frameworks.FRAMEWORKS.values()
    ]


def _sizes(framework: Framework) -> set[str]:
    """Returns the sizes that a framework takes; ``zero`` where the stage says what is shared."""
    stage = {"zero"} if framework.name in STAGED else set()
    known = {*framework.dims, *framework.layout(Sizes(1)).sizes, "nvlink_domain", "order"}
    return known | stage


def _kind(layout: Layout, name: str, lang: str) -> dict[str, Any]:
    groups = layout.groups(name)
    sizes = groups.sizes
    return {
        "name": name,
        "dim": next((dim for dim, kind in layout.dims.items() if kind == name), ""),
        "note": note_in(layout, name, lang),
        "twin_of": layout.kind(name).twin_of or "",
        "num_groups": len(groups),
        "smallest": int(min(sizes, default=0)),
        "largest": int(max(sizes, default=0)),
    }


def looks_of(shown: Sequence[Shown]) -> list[tuple[Shown, Family]]:
    """Pairs each kind with its look; kinds that are no dimension take others in turn."""
    others = [each for each in shown if not each.dim]
    return [
        (each, family(each.dim, place=others.index(each) if not each.dim else 0)) for each in shown
    ]


def _shown(layout: Layout, each: Shown, look: Family) -> dict[str, Any]:
    members = layout.groups(each.kind).members
    return {
        "dim": each.dim,
        "kind": each.kind,
        "label": each.label,
        # A rank in two groups of the kind stands twice among the members.
        "overlaps": len(np.unique(members)) < len(members),
        "order": _order(look),
        **_look(look),
    }


def _look(look: Family) -> dict[str, str]:
    return {"mark": look.mark, "ink": look.ink, "ink_on_dark": look.ink_on_dark}


def _order(look: Family) -> dict[str, list[str]]:
    return {"light": order_colours(look, on_dark=False), "dark": order_colours(look, on_dark=True)}


def _explanation(query: Query, layout: Layout, lang: str) -> dict[str, Any] | None:
    """Returns the prose beside the picture, once there is something in view."""
    return asdict(explanation(layout, query.dims, lang=lang)) if query.dims else None


def _rank_columns(layout: Layout, placement: Placement) -> dict[str, Column]:
    ranks = np.arange(layout.world_size, dtype=np.int32)
    stage = stages(layout)
    columns: dict[str, Column] = {
        "node": placement.nodes(ranks),
        "local_rank": placement.local_ranks(ranks),
        "stage": stage,
        "place_in_stage": _places(stage),
    }
    return columns | {f"axis:{axis}": along for axis, along in _coordinates(layout).items()}


def _domains(query: Query) -> dict[str, Column]:
    """Returns the NVLink domain of each rank where domains are racks of several nodes."""
    gpus = query.request.number("nvlink_domain")
    domain = domain_of(query.placement, gpus).placement
    if domain.gpus_per_node <= query.placement.gpus_per_node:
        return {}
    return {"domain": domain.nodes(np.arange(query.layout.world_size, dtype=np.int32))}


def _coordinates(layout: Layout) -> dict[str, Ranks]:
    """Returns each rank's coordinate on every axis above 1 of the first mesh that holds it."""
    columns: dict[str, Ranks] = {}
    is_placed = np.zeros(layout.world_size, dtype=bool)
    for mesh in layout.meshes.values():
        ranks = mesh.ranks.reshape(-1)
        # A rank takes its place in the first mesh that holds it. The modulo only keeps the index
        # legal for numbers beyond the world, which the left side rules out.
        fresh = (ranks < layout.world_size) & ~is_placed[ranks % layout.world_size]
        for axis, size in mesh.sizes.items():
            if size > 1 and fresh.any():
                column = columns.setdefault(axis, np.full(layout.world_size, -1, dtype=np.int32))
                column[ranks[fresh]] = mesh.along(axis)[fresh]
        is_placed[ranks[fresh]] = True
    return columns


def _places(stage: Ranks) -> Ranks:
    """Returns how many ranks of its stage stand before each rank."""
    order = np.argsort(stage, kind="stable")
    starts = np.searchsorted(stage[order], stage[order])
    places = np.empty(len(stage), dtype=np.int32)
    places[order] = np.arange(len(stage)) - starts
    return places


def _group_columns(
    layout: Layout, placement: Placement, each: Shown, look: Family, number: int
) -> dict[str, Column]:
    groups = layout.groups(each.kind)
    return {
        f"members:{number}": groups.members.astype(np.int32),
        f"bounds:{number}": groups.bounds.astype(np.int32),
        f"group:{number}": groups.index(layout.world_size),
        f"nodes:{number}": placement.nodes_of(groups).astype(np.int32),
        f"colour:{number}": shades(look, len(groups)),
    }
