"""Pictures of collectives hold every move that is in view, and every crossing."""

from __future__ import annotations

import re

import pytest

from serried.collective.networks import preset_of
from serried.collective.placed_group import PlacedGroup
from serried.plan.collective_crossing import AlgorithmsBySize
from serried.plan.collective_price import CollectiveQuestion
from serried.views.collective.curves import curves
from serried.views.collective.steps_picture import steps_picture
from serried.views.drawing import Drawing, DrawnArea, DrawnLine, DrawnWords


def picture(ranks: int, algorithm: str = "ring", *, lang: str = "en") -> Drawing:
    asked = CollectiveQuestion(
        "all-reduce", PlacedGroup.first(ranks), 1 << 20, preset_of("h100").networks(), algorithm
    )
    return steps_picture(asked.priced(), lang=lang)


def arrows(drawing: Drawing) -> list[DrawnLine]:
    """Returns the arrows of a drawing but for the two of its legend."""
    found = [mark for mark in drawing.marks if isinstance(mark, DrawnLine) and mark.is_arrow]
    return found[:-2]


def words(drawing: Drawing) -> list[str]:
    return [mark.text for mark in drawing.marks if isinstance(mark, DrawnWords)]


def is_on_the_page(drawing: Drawing) -> bool:
    places = [
        place
        for mark in drawing.marks
        for place in ([mark.start, mark.end] if isinstance(mark, DrawnLine) else [(mark.x, mark.y)])
    ]
    return all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in places)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_every_move_of_a_ring_is_an_arrow(ranks: int) -> None:
    assert len(arrows(picture(ranks))) == 2 * (ranks - 1) * ranks


def test_what_is_kept_is_dashed_and_what_is_added_is_not() -> None:
    dashed = [arrow.is_dashed for arrow in arrows(picture(4))]
    assert dashed == [False] * 12 + [True] * 12


def test_every_rank_has_a_row_up_to_32() -> None:
    assert {str(rank) for rank in range(32)} <= set(words(picture(32)))


def test_cells_fill_up_to_the_sum() -> None:
    areas = [mark for mark in picture(4).marks if isinstance(mark, DrawnArea)]
    right = max(area.x for area in areas if area.colour != "#f1f3f5")
    last = [area for area in areas if area.x == right and area.colour != "#ffffff"]
    assert len(last) == 4
    assert len({area.height for area in last}) == 1


def test_many_ranks_are_grouped_by_node() -> None:
    drawing = picture(16_384, "hierarchical")
    told = words(drawing)
    assert "+2,034 nodes" in told and "x56" in told and "… 4,084 more steps" in told
    assert drawing.height < 800 and drawing.width < 2200


def test_one_rank_s_picture_says_that_nothing_travels() -> None:
    assert words(picture(1))[0].startswith("all-reduce of one rank: nothing travels")


@pytest.mark.parametrize("algorithm", ["ring", "tree", "recursive", "hierarchical", "switch"])
@pytest.mark.parametrize("ranks", [5, 12, 40])
def test_nothing_lies_outside_the_page(ranks: int, algorithm: str) -> None:
    assert is_on_the_page(picture(ranks, algorithm))


def test_pictures_speak_chinese() -> None:
    told = words(picture(4, lang="zh"))
    assert "第 0 步" in told
    assert [text for text in told if re.search(r"step|receiver|node", text)] == []


def test_crossings_are_marked_with_their_sizes() -> None:
    asked = CollectiveQuestion("all-reduce", PlacedGroup.first(64), 1, preset_of("h100").networks())
    by_size = AlgorithmsBySize.of(asked)
    drawing = curves(by_size)
    marks = [mark for mark in drawing.marks if isinstance(mark, DrawnArea) and mark.edge]
    assert len(marks) == len(by_size.crossings) > 0
    assert set(by_size.ways) <= set(words(drawing))
    assert is_on_the_page(drawing)
