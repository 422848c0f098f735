"""What the page asks of a trace: moments, ranks and wishes, each refused where it is none."""

from __future__ import annotations

import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.measure.find import Wish
from serried.views.web.trace.questions import read_moment, read_moments, read_ranks, read_wish


def test_moments_are_whole_nanoseconds_of_any_length() -> None:
    assert read_moments({"from": ["-5"], "to": ["172800000000000"]}) == (-5, 172_800_000_000_000)
    assert read_moment({"after": ["7"]}, "after") == 7
    assert read_moment({}, "after") == 0


@pytest.mark.parametrize("words", [("5", "5"), ("9", "3"), ("x", "3"), ("", "3"), ("1e3", "2e3")])
def test_a_stretch_that_is_none_is_refused(words: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="is no stretch of time; one reads from=1000000 to="):
        read_moments({"from": [words[0]], "to": [words[1]]})


@pytest.mark.parametrize("text", ["soon", "1.5", "9" * 20])
def test_a_moment_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a moment; one reads in whole nanoseconds"):
        read_moment({"start": [text]}, "start")


def test_ranks_are_runs_and_all_where_none_are_given() -> None:
    assert read_ranks({"ranks": ["8-9,0-2,1"]}, 16).tolist() == [0, 1, 2, 8, 9]
    assert read_ranks({}, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("text", ["0-16", "16", "a", "1-", "1,,2", "-1"])
def test_ranks_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="are no ranks of 16; some read 0-15 or 0,15"):
        read_ranks({"ranks": [text]}, 16)


def test_a_wish_holds_what_was_asked_and_nothing_else() -> None:
    assert read_wish({}) == Wish()
    asked = {"kinds": ["F,SEND_B"], "rank": ["3"], "step": ["0"], "called": ["load"]}
    kinds = frozenset({ActionKind.F, ActionKind.SEND_B})
    assert read_wish(asked) == Wish(kinds=kinds, rank=3, step=0, name="load")


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="'Q' is no kind of action; there are F, B, I"):
        read_wish({"kinds": ["F,Q"]})
