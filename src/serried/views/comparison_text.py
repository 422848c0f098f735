"""A comparison of two layouts for the terminal: a row per kind, then where they part, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from serried.errors import listed
from serried.mesh.compare import Comparison, Pair
from serried.views.layout_text import table
from serried.views.sentences import say


def comparison_lines(found: Comparison, left: str, right: str, *, lang: str = "en") -> list[str]:
    """Returns the verdict, the first difference of each kind, and what only one side has."""
    return [*_verdict(found, left, right), *_differences(found, left, right, lang)]


def comparison_table(found: Comparison, left: str, right: str) -> Table:
    """Returns a row per pair of kinds: their names, how many groups, and same or not."""
    rows = table(left, right, "groups", "ranks each", "members")
    for pair in found.pairs:
        ours, theirs = (
            layout.groups(name or "")
            for layout, name in ((found.left, pair.left), (found.right, pair.right))
        )
        counts = _both(f"{len(ours):,}", f"{len(theirs):,}")
        sizes = _both(_sizes(ours.sizes.tolist()), _sizes(theirs.sizes.tolist()))
        rows.add_row(pair.left, pair.right, counts, sizes, _state(pair))
    return rows


def _verdict(found: Comparison, left: str, right: str) -> Iterator[str]:
    if found.left.world_size != found.right.world_size:
        ranks = f"{found.left.world_size:,} ranks and {right} {found.right.world_size:,}"
        yield f"{left} has {ranks}"
    different = [pair for pair in found.pairs if not pair.is_same]
    if found.is_same:
        yield f"{left} and {right} give the same groups"
    elif different:
        total = len(found.pairs)
        yield f"{left} and {right} differ in {len(different)} of {total} kinds that both make"


def _differences(found: Comparison, left: str, right: str, lang: str) -> Iterator[str]:
    for pair in found.pairs:
        sentence = pair.sentence(left, right)
        if sentence:
            yield say(sentence, lang)
    for side, names in (
        (left, [pair.left for pair in found.alone if pair.left]),
        (right, [pair.right for pair in found.alone if pair.right]),
    ):
        if names:
            yield f"only {side} makes {listed(names, limit=24)}"


def _state(pair: Pair) -> str:
    if not pair.is_same:
        return f"differ from rank {pair.rank} on"
    same = "same" if pair.dim or pair.left == pair.right else "same ranks"
    return f"{same}, in another order" if pair.is_reordered else same


def _both(ours: str, theirs: str) -> str:
    return ours if ours == theirs else f"{ours} and {theirs}"


def _sizes(sizes: list[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
