"""Errors are sentences with values, and carry the exit code."""

from __future__ import annotations

import pickle

import pytest

from serried.errors import EnvironmentProblem, InputError, SerriedError, listed


def test_an_error_reads_as_its_template_with_the_values_in_place() -> None:
    assert str(InputError("tp={tp} of {world}", tp=3, world=64)) == "tp=3 of 64"


@pytest.mark.parametrize(
    ("kind", "code"), [(SerriedError, 1), (InputError, 2), (EnvironmentProblem, 3)]
)
def test_each_kind_of_error_has_its_exit_code(kind: type[SerriedError], code: int) -> None:
    assert kind("x").exit_code == code


def test_a_long_list_is_cut_and_says_so() -> None:
    assert listed(range(5), limit=3) == "0, 1, 2, …"
    assert listed(range(3), limit=3) == "0, 1, 2"


def test_the_last_of_a_list_is_joined_by_a_word() -> None:
    assert listed(["tp", "pp", "dp"], last="or") == "tp, pp or dp"
    assert listed(["tp"], last="and") == "tp"
    assert listed([], last="and") == ""


def test_a_list_keeps_its_items_when_it_is_pickled() -> None:
    made = pickle.loads(pickle.dumps(listed([1, 2, 4], last="and")))
    assert (made, made.items, made.last) == ("1, 2 and 4", (1, 2, 4), "and")
