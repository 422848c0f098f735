"""Packed lists of actions: joined, alternated, and read back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind
from serried.errors import InputError
from serried.pipeline.packed import pack, texts, unpack

singles = st.builds(
    Action,
    st.sampled_from((ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)),
    st.integers(0, 65_535),
    st.integers(0, 1 << 31),
    st.integers(0, 1),
)


def pair(forward: Action, backward: Action) -> Action:
    return Action.pair(
        Action(ActionKind.F, forward.stage, forward.microbatch, forward.direction),
        Action(ActionKind.B, backward.stage, backward.microbatch, backward.direction),
    )


@given(st.lists(singles | st.builds(pair, singles, singles)))
def test_actions_come_back_as_they_were_packed(actions: list[Action]) -> None:
    codes = pack(actions)
    assert unpack(codes, num_directions=2) == actions
    assert texts(codes, num_directions=2) == [str(action) for action in actions]


def test_an_action_beyond_the_last_stage_is_refused() -> None:
    with pytest.raises(InputError, match=r"^65536F0 is beyond stage 65535 or microbatch "):
        pack([Action(ActionKind.F, 65_536, 0)])
