"""The cluster as plain text: a box per node, a cell per rank, its coordinates or group below.

node 0                   node 1
+-----+-----+-----+      +-----+-----+-----+
|  0  |  1  |  2  |      |  3  |  4  |  5  |
| tp0 | tp1 | tp2 |      | tp0 | tp1 | tp2 |
| dp0 | dp0 | dp0 |      | dp1 | dp1 | dp1 |
+-----+-----+-----+      +-----+-----+-----+
"""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len

from serried.mesh import Layout, Placement
from serried.views.sentences import tell

MAX_NODES = 8
"""Nodes drawn before the map says how many more there are."""

Cell = Callable[[int], list[str]]


def node_map(
    layout: Layout, placement: Placement, *, kind: str | None, width: int, lang: str = "en"
) -> str:
    """Returns the map, at most ``width`` columns wide, of the first ``MAX_NODES`` nodes.

    Cells name a rank's coordinates on the axes longer than one, or its group of ``kind``.
    """
    cell = _coordinates(layout) if kind is None else _group(layout, kind)
    shown = range(min(placement.num_nodes, MAX_NODES))
    # The widest cell of any node sets the width of all, so that boxes line up.
    size = max(len(line) for node in shown for r in placement.ranks_on(node) for line in cell(r))
    boxes = [
        [tell("node {node}", lang, node=node), *_box(placement, node, cell, size, width)]
        for node in shown
    ]
    lines = _side_by_side(boxes, width)
    if placement.num_nodes > MAX_NODES:
        more = placement.num_nodes - MAX_NODES
        lines.append(tell("… and {count:,} more nodes", lang, count=more))
    return "\n".join(lines)


def _coordinates(layout: Layout) -> Cell:
    fastest_first = [axis for axis in reversed(layout.mesh.axes) if layout.mesh.sizes[axis] > 1]

    def cell(rank: int) -> list[str]:
        place = layout.coordinates(rank)
        at = (f"{axis}{place[axis]}" if axis in place else "-" for axis in fastest_first)
        return [str(rank), *at]

    return cell


def _group(layout: Layout, kind: str) -> Cell:
    groups = layout.groups(kind)

    def cell(rank: int) -> list[str]:
        numbers = groups.containing(rank)
        return [str(rank), "-" if not numbers else ",".join(f"g{number}" for number in numbers)]

    return cell


def _box(placement: Placement, node: int, cell: Cell, size: int, width: int) -> list[str]:
    ranks = placement.ranks_on(node)
    # A cell takes its text, a blank on each side and its right edge; the box adds its left edge.
    per_row = max(1, min(len(ranks), (width - 1) // (size + 3)))
    lines: list[str] = []
    for start in range(0, len(ranks), per_row):
        row = [cell(rank) for rank in ranks[start : start + per_row]]
        edge = "+" + "+".join("-" * (size + 2) for _ in row) + "+"
        lines.append(edge)
        for texts in zip(*row, strict=True):
            lines.append("|" + "|".join(f" {text:^{size}} " for text in texts) + "|")
    lines.append(edge)
    return lines


def _side_by_side(boxes: list[list[str]], width: int) -> list[str]:
    """Joins boxes of equal height left to right, as many as ``width`` allows."""
    box_width = max(cell_len(line) for box in boxes for line in box)
    # Boxes stand two columns apart: n of them take n * (box_width + 2) - 2 columns.
    per_row = max(1, (width + 2) // (box_width + 2))
    lines: list[str] = []
    for start in range(0, len(boxes), per_row):
        row = boxes[start : start + per_row]
        height = max(len(box) for box in row)
        for i in range(height):
            parts = [box[i] if i < len(box) else "" for box in row]
            padded = (part + " " * (box_width - cell_len(part)) for part in parts)
            lines.append("  ".join(padded).rstrip())
    return lines
