"""What is drawn on the cards of lessons: ranks in the colours of their groups, or a schedule."""

from __future__ import annotations

import pytest

from serried.views.learn.lessons import LESSONS, lesson
from serried.views.web.learn.pictures import lesson_picture


@pytest.mark.parametrize(("key", "size"), [("dp", 2), ("tp", 4), ("pp", 4)])
def test_ranks_of_one_group_have_one_colour(key: str, size: int) -> None:
    drawn = lesson_picture(lesson(key, "en"))["ranks"]
    assert all(drawn.count(colours) == size and len(colours) == 1 for colours in drawn)


def test_a_lesson_of_several_kinds_gives_a_rank_a_colour_for_each() -> None:
    drawn = {key: lesson_picture(lesson(key, "en")) for key in ("world", "rank", "ep")}
    assert {len(colours) for colours in drawn["world"]["ranks"]} == {3}
    assert {len(colours) for colours in drawn["ep"]["ranks"]} == {2}
    assert (drawn["world"]["chosen"], drawn["rank"]["chosen"]) == (None, 5)
    assert drawn["world"]["nodes"] == [0] * 8 + [1] * 8


def test_the_bubble_is_what_a_schedule_leaves_free() -> None:
    words = LESSONS["bubble"]
    bars = lesson_picture(lesson("bubble", "en"))["bars"]
    assert len(bars) == 2 * int(words["stages"]) * int(words["microbatches"])
    end = max(until for _, _, until, _ in bars)
    busy = sum(until - since for _, since, until, _ in bars)
    assert 1 - busy / (int(words["stages"]) * end) == pytest.approx(3 / 11)
