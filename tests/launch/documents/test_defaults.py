"""YAML that takes in others: which keys go first, where they stand, and what is not given."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from serried.errors import InputError
from serried.launch.documents import yaml as yaml_text
from serried.launch.documents.defaults import composed
from serried.launch.facts.keys import Keys


def taken(text: str, beside: Mapping[str, str]) -> Keys:
    keys = yaml_text.read(text, "run.yaml")
    assert keys is not None
    return composed(keys, beside)


def test_keys_below_a_group_stand_below_its_name() -> None:
    whole = taken("defaults:\n  - train: 7b\n  - _self_\na: 1", {"train/7b.yaml": "tp: 2"})
    assert (whole.value("train.tp"), whole.value("a"), whole.missing) == (2, 1, ())
    assert whole.entries["train.tp"][0].file == "7b.yaml"


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("actor@policy.actor: dp", "policy.actor.x"),
        ("override /actor: dp", "actor.x"),
        ("optional actor@_global_: dp", "x"),
        ("actor/dp", "x"),
    ],
)
def test_a_package_says_where_keys_stand(entry: str, key: str) -> None:
    assert taken(f"defaults:\n  - {entry}\n", {"actor/dp.yaml": "x: 3"}).value(key) == 3


def test_the_file_goes_before_what_it_takes_in_and_the_last_before_the_first() -> None:
    beside = {"one.yaml": "a: 1\nb: 1\nc: 1", "two.yaml": "b: 2\nc: 2"}
    whole = taken("defaults: [one, two]\nc: 3", beside)
    assert [whole.value(key) for key in "abc"] == [1, 2, 3]


def test_what_stands_behind_self_goes_before_the_file() -> None:
    assert taken("defaults: [_self_, one]\na: 3", {"one.yaml": "a: 1"}).value("a") == 1


def test_a_base_may_take_in_another() -> None:
    beside = {"conf/base.yaml": "defaults: root.yaml\na: 2", "root.yaml": "a: 1\nb: 1"}
    whole = taken("defaults: ../conf/base.yaml\n", beside)
    assert (whole.value("a"), whole.value("b")) == (2, 1)


def test_what_is_not_given_is_named_once() -> None:
    assert taken("defaults: [x, y, x]\na: 1", {}).missing == ("x.yaml", "y.yaml")


def test_files_that_take_in_one_another_are_refused() -> None:
    beside = {"a.yaml": "defaults: b.yaml\nx: 1", "b.yaml": "defaults: a.yaml\ny: 2"}
    with pytest.raises(InputError) as caught:
        taken("defaults: a.yaml\n", beside)
    assert str(caught.value) == (
        "run.yaml takes in other configs more than 64 times; write out what it takes from them"
    )
