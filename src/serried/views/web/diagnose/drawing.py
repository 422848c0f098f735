"""The chain of waiting as a drawing: boxes of ranks that wait in the same, level by level.

level 0             level 1              level 2
rank 5       <----  rank 7        <----  ranks 2, 3 and 6
the culprit         waits for it         wait for rank 7
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from serried.diagnose.diagnosis import Cause
from serried.diagnose.whom import named
from serried.finding import Sentence, said
from serried.views.sentences import say

MOST_BOXES = 6
"""Boxes of a level that are drawn one by one; the others of it stand in one."""
MOST_LEVELS = 64
"""Levels that are drawn; whoever waits through more of them stands in the last."""
MOST_RANKS = 8
"""Ranks of a box that are told one by one."""
NOBODY = said("no rank can be named")


@dataclass(frozen=True)
class ChainBox:
    """Holds ranks that wait in the same for the same ranks; culprits wait for nobody."""

    ranks: tuple[int, ...]
    what: tuple[Sentence, ...] = ()
    """What they wait in; several where boxes stand for others."""
    waits_for: tuple[int, ...] = ()
    """The boxes of the ranks that they wait for, by their place in the drawing."""
    level: int = 0


def chain_boxes(cause: Cause) -> tuple[ChainBox, ...]:
    """Returns the chain of a cause, the culprits first, level by level; none where nobody waits.

    >>> from serried.diagnose.diagnosis import CauseClass, Waiting
    >>> dp, mp = said("all_reduce 6 of dp_3"), said("all_reduce 6 of mp_1")
    >>> waiting = (Waiting(2, (7,), mp), Waiting(3, (7,), mp), Waiting(7, (5,), dp))
    >>> cause = Cause(CauseClass.HANG, "x", (5,), said("rank 5"), 1.0, waiting=waiting)
    >>> [(each.ranks, each.level, each.waits_for) for each in chain_boxes(cause)]
    [((5,), 0, ()), ((7,), 1, (0,)), ((2, 3), 2, (1,))]
    """
    culprits = tuple(cause.ranks or ())
    if not cause.waiting:
        return ()
    apart: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    told = {}
    for each in cause.waiting:
        key = str(each.what), each.waits_for
        apart.setdefault(key, []).append(each.rank)
        told[key] = each.what
    # A culprit may wait as well, in a circle: it is drawn once, as what the others wait for.
    roots = {*culprits}
    of_culprits = {key: None for key, ranks in apart.items() if roots.issuperset(ranks)}
    keys = [key for key in apart if key not in of_culprits]
    root = ChainBox(culprits, tuple(told[key] for key in of_culprits))
    others = [ChainBox(tuple(sorted({*apart[key]} - roots)), (told[key],)) for key in keys]
    wanted = [{rank for key in of_culprits for rank in key[1]}, *({*key[1]} for key in keys)]
    return _few(_levelled([root, *others], wanted))


def drawing(cause: Cause, lang: str) -> list[dict[str, Any]]:
    """Returns the boxes as JSON values, their ranks and what they wait in told in ``lang``."""
    return [
        {
            "ranks": list(box.ranks[:MOST_RANKS]),
            "num_ranks": len(box.ranks),
            "named": say(named(box.ranks) if box.ranks else NOBODY, lang),
            "what": [say(each, lang) for each in box.what],
            "waits_for": list(box.waits_for),
            "level": box.level,
        }
        for box in chain_boxes(cause)
    ]


def _levelled(boxes: Sequence[ChainBox], wanted: Sequence[set[int]]) -> list[ChainBox]:
    """Returns boxes with whom they wait for, each a level beyond all of these, in that order."""
    holder = {rank: place for place, box in enumerate(boxes) for rank in box.ranks}
    # Whoever waits for ranks that nothing was heard of waits for the cause itself.
    targets = [
        [*dict.fromkeys(holder.get(rank, 0) for rank in sorted(ranks))] if place or ranks else []
        for place, ranks in enumerate(wanted)
    ]
    levels = _levels(targets)
    order = sorted(range(len(boxes)), key=lambda place: (levels[place], boxes[place].ranks))
    at = {place: number for number, place in enumerate(order)}
    return [
        replace(
            boxes[place],
            level=levels[place],
            waits_for=tuple(sorted(at[each] for each in targets[place] if each != place)),
        )
        for place in order
    ]


def _levels(targets: Sequence[Sequence[int]]) -> Mapping[int, int]:
    """Returns how far each box is from the culprits, by the longest way that is no circle."""
    levels = {0: 0}
    for first in range(1, len(targets)):
        way = {first: iter(targets[first])}
        while way:
            place = next(reversed(way))
            if place in levels:
                del way[place]
            elif open_one := next(
                (e for e in way[place] if e not in levels and e not in way), None
            ):
                way[open_one] = iter(targets[open_one])
            else:
                known = [levels[each] for each in targets[place] if each in levels]
                levels[place] = 1 + max(known, default=0)
    return levels


def _few(boxes: Sequence[ChainBox]) -> tuple[ChainBox, ...]:
    """Returns boxes of which each level has a few, the last of them standing for all others."""
    kept: list[ChainBox] = []
    new: dict[int, int] = {}
    by_level: dict[int, list[int]] = {}
    for place, box in enumerate(boxes):
        by_level.setdefault(min(box.level, MOST_LEVELS), []).append(place)
    for level, places in by_level.items():
        alone = places if len(places) <= MOST_BOXES else places[: MOST_BOXES - 1]
        for place in alone:
            new[place] = len(kept)
            kept.append(replace(boxes[place], level=level))
        if rest := places[len(alone) :]:
            new |= dict.fromkeys(rest, len(kept))
            kept.append(_joined([boxes[place] for place in rest], level))
    return tuple(
        replace(box, waits_for=tuple(sorted({new[each] for each in box.waits_for} - {place})))
        for place, box in enumerate(kept)
    )


def _joined(boxes: Sequence[ChainBox], level: int) -> ChainBox:
    return ChainBox(
        _sorted(rank for box in boxes for rank in box.ranks),
        boxes[0].what + boxes[-1].what,
        _sorted(each for box in boxes for each in box.waits_for),
        level,
    )


def _sorted(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))
