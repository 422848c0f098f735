"""Actions are read and written as PyTorch writes them, overlapped pairs and directions included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind
from serried.errors import InputError

TEXTS = [
    "0F0",
    "12B345",
    "3I2",
    "3W2",
    "3SEND_F2",
    "3RECV_F2",
    "3SEND_B2",
    "3RECV_B2",
    "3REDUCE_GRAD",
    "3UNSHARD",
    "3RESHARD",
    "3RING2",
    "3ALL_TO_ALL2",
    "OPTIMIZER",
    "(3F2;0B0)OVERLAP_F_B",
    "1:3F2",
    "(1:1F1;0:0B0)OVERLAP_F_B",
]
NO_ACTIONS = [
    "", "F", "3F", "F2", "3X2", "3f2", "3F-2", "2:3F2", "3F2B", "OPTIMIZER3", "3REDUCE_GRAD2",
    "3F2;0B0", "(3F2;0B0)", "3OVERLAP_F_B2", "(3F2;0B0;1B0)OVERLAP_F_B",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_an_action_is_written_as_it_was_read(text: str) -> None:
    assert str(Action.parse(text)) == text


@pytest.mark.parametrize("text", NO_ACTIONS)
def test_what_is_no_action_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not an action; one reads <stage><kind><microbatch>"):
        Action.parse(text)


@pytest.mark.parametrize("text", ["(3B2;0F0)OVERLAP_F_B", "(3F2;0I0)OVERLAP_F_B"])
def test_only_a_forward_and_a_whole_backward_overlap(text: str) -> None:
    with pytest.raises(InputError, match="is not an overlapped pair; one joins a forward and a "):
        Action.parse(text)


def test_a_pair_gives_its_two_halves() -> None:
    assert [str(part) for part in Action.parse(" (3F2;0B0)OVERLAP_F_B ").each] == ["3F2", "0B0"]
    single = Action(ActionKind.F, 3, 2)
    assert single.each == (single,)


@given(st.text())
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        action = Action.parse(text)
    except InputError:
        return
    assert Action.parse(str(action)) == action


def test_the_numbers_of_kinds_stand_in_trace_files_and_never_change() -> None:
    assert [(kind.name, kind.value) for kind in ActionKind] == [
        ("F", 1), ("B", 2), ("I", 3), ("W", 4), ("SEND_F", 5), ("RECV_F", 6), ("SEND_B", 7),
        ("RECV_B", 8), ("REDUCE_GRAD", 9), ("OPTIMIZER", 10), ("OVERLAP_F_B", 11),
        ("UNSHARD", 12), ("RESHARD", 13), ("RING", 14), ("ALL_TO_ALL", 15), ("ALL_GATHER", 16),
        ("REDUCE_SCATTER", 17), ("SPAN", 18), ("ALL_REDUCE", 19), ("BROADCAST", 20),
        ("IN_FLIGHT", 21),
    ]  # fmt: skip
