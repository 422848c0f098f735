"""Every way in which a schedule cannot run, with its reason."""

from __future__ import annotations

import pytest

from serried.action import Action
from serried.errors import InputError
from serried.pipeline import Schedule, StagePlacement, validate
from serried.pipeline.action_lists import from_actions
from serried.pipeline.placement import loop
from serried.pipeline.validate import faults


def from_text(*ranks: str) -> Schedule:
    """Returns the schedule of actions that stand in a string for each rank."""
    return from_actions("it", [list(map(Action.parse, rank.split())) for rank in ranks])


def reasons(*ranks: str, placement: StagePlacement | None = None) -> list[str]:
    schedule = from_text(*ranks)
    if placement:
        schedule = Schedule("it", placement, 1, schedule.first, schedule.code)
    return [str(fault) for fault in faults(schedule)]


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        (("0F0 0B0", "1F0"), "it lacks 1B0, which rank 1 must run"),
        (("0B0", "1F0 1B0"), "it lacks 0F0, which rank 0 must run"),
        (("0F0 0W0", "1F0 1B0"), "it lacks 0I0, which rank 0 must run"),
        (("0F0 0I0", "1F0 1B0"), "it lacks 0W0, which rank 0 must run"),
        (("0F0 0B0 0B0", "1F0 1B0"), "it runs 0B0 2 times; each action stands once"),
        (("0F0 0I0 0W0 0B0", "1F0 1B0"),
         "it runs 0B0 and a half of it as well; a backward is whole or in two halves"),
        (("0B0 0F0", "1F0 1B0"), "it runs 0B0 on rank 0 before its input, 0F0, is there"),
        (("0F0 0W0 0I0", "1F0 1B0"), "it runs 0W0 on rank 0 before its input, 0I0, is there"),
        (("0F0 2F0 0B0 2B0", "1F0 1B0"), "it runs 0B0"),
        (("0F0 0F1 0B0 (1F0;1B0)OVERLAP_F_B 1F1 1B1 0B1",), "it runs 1B0 on rank 0 before its "
         "input, 1F0, is there"),
    ],
)  # fmt: skip
def test_an_illegal_list_is_told_why(ranks: tuple[str, ...], reason: str) -> None:
    found = reasons(*ranks)
    assert found
    assert found[0].startswith(reason) or "deadlocks" in found[0]


def test_an_action_on_the_wrong_rank_is_told_the_right_one() -> None:
    found = reasons("0F0 0B0", "1F0 1B0", placement=StagePlacement(loop(2).rank_of[:, ::-1]))
    assert found[0] == "it runs 0F0 on rank 0, but stage 0 is on rank 1"


def test_a_circle_of_waiting_ranks_is_shown() -> None:
    ranks = ("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1", "2F0 2B0 2F1 2B1")
    assert reasons(*ranks) == [
        "it deadlocks, each rank waiting for what the next has put behind its own: "
        "rank 0: 0B0 ← 1B0, rank 1: 1F1 ← 0F1"
    ]


def test_validate_raises_the_first_reason() -> None:
    with pytest.raises(InputError, match=r"^it lacks 1B0, which rank 1 must run$"):
        validate(from_text("0F0 0B0", "1F0"))
