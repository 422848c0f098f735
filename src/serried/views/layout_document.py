"""A Layout as documents that other programs read: JSON values and CSV rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from serried.mesh import Layout, RankPlace


def groups_document(layout: Layout, kinds: Sequence[str]) -> dict[str, Any]:
    """Returns the ``serried.groups/1`` document: every group of ``kinds``, in their order."""
    return {
        "schema": "serried.groups/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        "sizes": dict(layout.sizes),
        "groups": {kind: layout.groups(kind).lists() for kind in kinds},
    }


def rank_document(layout: Layout, place: RankPlace) -> dict[str, Any]:
    """Returns the ``serried.rank/1`` document: one rank's place, groups and neighbours."""
    return {
        "schema": "serried.rank/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        **asdict(place),
    }


def groups_csv(layout: Layout, kinds: Sequence[str]) -> str:
    """Returns one CSV row per member: kind, group, position in the group, rank."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("kind", "group", "position", "rank"))
    for kind in kinds:
        for number, ranks in enumerate(layout.groups(kind).lists()):
            writer.writerows((kind, number, place, rank) for place, rank in enumerate(ranks))
    return text.getvalue()
