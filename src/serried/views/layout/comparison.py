"""A comparison of two layouts for the terminal: a row per kind, then where they part, in words."""

from __future__ import annotations

from collections.abc import Iterator

from serried.errors import listed
from serried.finding import Sentence
from serried.mesh.compare import Comparison, Pair
from serried.views.layout.text import sizes_text, table
from serried.views.sentences import say, tell
from serried.views.table import Table


def comparison_lines(found: Comparison, left: str, right: str, *, lang: str = "en") -> list[str]:
    """Returns the verdict, the first difference of each kind, and what only one side has."""
    return [*_verdict(found, left, right, lang), *_differences(found, left, right, lang)]


def comparison_table(found: Comparison, left: str, right: str, *, lang: str = "en") -> Table:
    """Returns a row per pair of kinds: their names, how many groups, and same or not."""
    headings = tell("groups", lang), tell("ranks each", lang), tell("members", lang)
    rows = table(left, right, *headings)
    for pair in found.pairs:
        ours, theirs = (
            layout.groups(name or "")
            for layout, name in ((found.left, pair.left), (found.right, pair.right))
        )
        counts = _both(f"{len(ours):,}", f"{len(theirs):,}", lang)
        sizes = _both(sizes_text(ours, lang), sizes_text(theirs, lang), lang)
        rows.add_row(pair.left or "", pair.right or "", counts, sizes, _state(pair, lang))
    return rows


def _verdict(found: Comparison, first: str, second: str, lang: str) -> Iterator[str]:
    # Said as sentences, for a Chinese name needs no gap around it.
    left, right = (Sentence("{name}", {"name": name}) for name in (first, second))
    if found.left.world_size != found.right.world_size:
        yield tell(
            "{left} has {ours:,} ranks and {right} {theirs:,}",
            lang,
            left=left,
            ours=found.left.world_size,
            right=right,
            theirs=found.right.world_size,
        )
    # Neither sentence holds where the kinds that both make are alike and only others differ.
    different = [pair for pair in found.pairs if not pair.is_same]
    if found.is_same:
        yield tell("{left} and {right} give the same groups", lang, left=left, right=right)
    elif different:
        yield tell(
            "{left} and {right} differ in {count} of {total} kinds that both make",
            lang,
            left=left,
            right=right,
            count=len(different),
            total=len(found.pairs),
        )


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
            makes, name = listed(names, limit=24), Sentence("{name}", {"name": side})
            yield tell("only {side} makes {kinds}", lang, side=name, kinds=makes)


def _state(pair: Pair, lang: str) -> str:
    if not pair.is_same:
        return tell("differ from rank {rank} on", lang, rank=pair.rank)
    # Kinds that were paired by their groups alone may serve other ends: then it is the ranks that
    # are the same.
    is_named_alike = bool(pair.dim) or pair.left == pair.right
    same = tell("same" if is_named_alike else "same ranks", lang)
    return tell("{same}, in another order", lang, same=same) if pair.is_reordered else same


def _both(ours: str, theirs: str, lang: str) -> str:
    return ours if ours == theirs else say(listed([ours, theirs], last="and"), lang)
