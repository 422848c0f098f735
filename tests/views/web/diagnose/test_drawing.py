from __future__ import annotations

from serried.diagnose.diagnosis import Cause, CauseClass, Waiting
from serried.finding import said
from serried.views.web.diagnose.drawing import (
    MOST_BOXES,
    MOST_LEVELS,
    MOST_RANKS,
    chain_boxes,
    drawing,
)


def cause(ranks: tuple[int, ...] | None, *waiting: Waiting) -> Cause:
    return Cause(CauseClass.HANG, "never_arrived", ranks, said("it hangs"), 0.9, waiting=waiting)


def test_without_anybody_who_waits_nothing_is_drawn() -> None:
    assert chain_boxes(cause((3,))) == ()


def test_a_culprit_that_waits_in_a_circle_is_drawn_once_with_its_own_wait() -> None:
    root, other = chain_boxes(
        cause((3,), Waiting(3, (5,), said("a send to rank 5")), Waiting(5, (3,), said("a receive")))
    )
    assert (root.ranks, root.level, root.waits_for) == ((3,), 0, (1,))
    assert str(root.what[0]) == "a send to rank 5"
    assert (other.ranks, other.level, other.waits_for) == ((5,), 1, (0,))


def test_those_who_wait_for_each_other_beside_the_culprit_are_drawn_all_the_same() -> None:
    boxes = chain_boxes(cause((9,), Waiting(0, (1,), said("a")), Waiting(1, (0,), said("b"))))
    assert {rank for box in boxes for rank in box.ranks} == {9, 0, 1}


def test_where_no_culprit_can_be_named_the_first_box_says_so() -> None:
    told = drawing(cause(None, Waiting(0, (7,), said("all_reduce 1 of dp_0"))), "en")
    assert [box["named"] for box in told] == ["no rank can be named", "rank 0"]
    assert told[1]["waits_for"] == [0]


def test_a_level_of_many_boxes_ends_in_one_for_all_others() -> None:
    waiting = [Waiting(rank, (0,), said("all_reduce {rank}", rank=rank)) for rank in range(1, 513)]
    boxes = chain_boxes(cause((0,), *waiting))
    assert len(boxes) == 1 + MOST_BOXES
    assert sum(len(box.ranks) for box in boxes) == 513
    assert len(boxes[-1].ranks) == 513 - MOST_BOXES
    assert [str(each) for each in boxes[-1].what] == ["all_reduce 6", "all_reduce 512"]


def test_a_chain_of_thousands_ends_in_one_box_and_tells_the_first_ranks_of_it() -> None:
    waiting = [Waiting(rank, (rank - 1,), said("recv")) for rank in range(1, 3000)]
    *_, last = drawing(cause((0,), *waiting), "en")
    assert last["level"] == MOST_LEVELS
    assert last["num_ranks"] == 3000 - MOST_LEVELS - MOST_BOXES + 1
    assert last["ranks"] == list(range(MOST_LEVELS + MOST_BOXES - 1, 3000))[:MOST_RANKS]
