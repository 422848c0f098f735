"""Groups written as JSON without a Python number per rank read back as they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.mesh import Groups
from serried.views.layout import groups_json

RANKS = st.integers(0, 1_100_000) | st.integers(0, 12)


@given(st.lists(st.lists(RANKS, max_size=5), max_size=9), st.integers(1, 7))
def test_the_text_is_that_of_json(lists: list[list[int]], part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups_json, "PART_RANKS", part)
        assert "".join(groups_json.parts(Groups.of(lists))) == json.dumps(lists)


def test_no_rank_becomes_a_python_number(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Groups.of([[0, 1], [2, 3]])
    monkeypatch.setattr(Groups, "lists", None)
    assert "".join(groups_json.parts(groups)) == "[[0, 1], [2, 3]]"
