"""YAML, JSON, TOML and Python as plain keys with lines: no tag, alias or call is followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from serried.launch.documents import (
    json as json_text,
)
from serried.launch.documents import (
    python as python_text,
)
from serried.launch.documents import (
    toml as toml_text,
)
from serried.launch.documents import (
    yaml as yaml_text,
)
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import ConfigValue, Keys, as_value, take

Pairs = dict[str, tuple[Any, int | None]]


def pairs(keys: Keys) -> Pairs:
    return {key: (entries[0].value, entries[0].line) for key, entries in keys.entries.items()}


def yaml(text: str) -> Pairs:
    keys = yaml_text.read(text, "x.yaml")
    assert keys is not None
    return pairs(keys)


def toml(text: str) -> Pairs:
    return pairs(toml_text.read(text, "x.toml"))


def from_json(text: str) -> Pairs:
    return pairs(json_text.read(text, "x.json"))


def python(text: str) -> Pairs:
    return pairs(python_text.read(text, "x.py")[0])


READ: list[tuple[Callable[[str], Pairs], str, Pairs]] = [
    (yaml, "a:\n  b: 2\n  c: [1, 2]\n", {"a.b": (2, 2), "a.c": ((1, 2), 3)}),
    (yaml, "a: 1\n---\nb: 2\n", {"a": (1, 1), "b": (2, 3)}),
    (yaml, "a: &x {b: 1}\nc: *x\n", {"a.b": (1, 1), "c.b": (1, 1)}),
    (yaml, "a: &x\n  b: 1\nc:\n  <<: *x\n  d: 2\n", {"a.b": (1, 2), "c.b": (1, 2), "c.d": (2, 5)}),
    (yaml, "a: yes\nb: '8'\nc: ~\n", {"a": (True, 1), "b": ("8", 2), "c": (None, 3)}),
    (yaml, "a:\n- b: 1\n- c\n", {"a.0.b": (1, 2), "a.1": ("c", 3)}),
    (from_json, '{"a": {"b": 2},\n "c": [1,\n2]}', {"a.b": (2, 1), "c": ((1, 2), 2)}),
    (
        from_json,
        '{"a": [{"b": 1}], // why\n/* and */ "c": null,}',
        {"a.0.b": (1, 1), "c": (None, 2)},
    ),
    (
        from_json,
        '{"a": 1e3, "b": "auto", "c": true}',
        {"a": (1000.0, 1), "b": ("auto", 1), "c": (True, 1)},
    ),
    (toml, "a = 1\n[b]\nc = 2\n[b.d]\ne = 'x'\n", {"a": (1, 1), "b.c": (2, 3), "b.d.e": ("x", 5)}),
    (toml, "[[a]]\nb = 1\n", {"a.0.b": (1, None)}),
    (python, "a = 4\nb = a * 2 + 1\n", {"a": (4, 1), "b": (9, 2)}),
    (python, "a = dict(b=dict(size=2), c=[1, 2])", {"a.b.size": (2, 1), "a.c": ((1, 2), 1)}),
    (python, "a = 7\nb = f'{a}B-{a + 1}'", {"a": (7, 1), "b": ("7B-8", 2)}),
    (python, "a = {'b': 1}\na['b'] = 2\na.update(c=3)", {"a.b": (2, 2), "a.c": (3, 3)}),
    (
        python,
        "a = 1 << 20\nb = -a // 3\nc = not a",
        {"a": (1048576, 1), "b": (-349526, 2), "c": (False, 3)},
    ),
    (python, "a = 4 if True else 2\nb = a > 3 and 'x'", {"a": (4, 1), "b": ("x", 2)}),
    (python, "a, b = 1, 2\nc: int = 3\nc += 1", {"a": (1, 1), "b": (2, 1), "c": (4, 3)}),
    (python, "x = dict(a=1)\ny = dict(**x, b=2)", {"x.a": (1, 1), "y.a": (1, 1), "y.b": (2, 2)}),
]


@pytest.mark.parametrize(("read", "text", "expected"), READ)
def test_a_text_is_these_keys(read: Callable[[str], Pairs], text: str, expected: Pairs) -> None:
    assert read(text) == expected


def test_a_python_config_takes_names_of_another_that_is_given() -> None:
    keys, notes = python_text.read(
        "from configs.base import *\nb = a * 2", "x.py", {"configs/base.py": "a = 4"}
    )
    assert keys.entries["b"] == [ConfigValue(8, 2, "a * 2")]
    assert keys.entries["a"][0].file == "base.py"
    assert list(notes) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import os\na = os.cpu_count()", "os.cpu_count() on line 2 of x.py is not run"),
        ("a = int(input())", "input() on line 1 of x.py is not run"),
        ("a = [i for i in range(4)]", "on line 1 of x.py is not run"),
        ("a = b", "x.py does not set b before line 1"),
        ("a = 10 ** 10 ** 10", "10 ** 10 ** 10 on line 1 of x.py is not run"),
        ("a = 'x' * 10 ** 9", "on line 1 of x.py is not run"),
        ("a = 1 / 0", "1 / 0 on line 1 of x.py is not run"),
        ("a = __import__('os').system('x')", "on line 1 of x.py is not run"),
    ],
)
def test_what_only_python_would_tell_is_open(text: str, why: str) -> None:
    entry = python_text.read(text, "x.py")[0].entries["a"][0]
    assert entry.value is None
    assert why in str(entry.why)


VALUES = [
    (2, "size", 2),
    (2.0, "size", 2),
    ("8", "size", 8),
    ("auto", "size", "auto"),
    (None, "size", None),
    ("null", "size", None),
    ("", "text", None),
    (True, "yes", "true"),
    (True, "no", "false"),
    ("False", "yes", "false"),
    ((2, 4), "list", "2 4"),
    (3, "text", "3"),
]


@pytest.mark.parametrize(("value", "kind", "expected"), VALUES)
def test_a_value_is_what_its_option_takes(
    value: Any, kind: str, expected: int | str | None
) -> None:
    assert as_value(value, Meaning("name", kind)) == expected


def test_a_reference_to_another_key_is_followed_and_told() -> None:
    keys = yaml_text.read("m:\n  tp: 4\na: ${m.tp}\nb: ${oc.env:PP,2}\nc: ${a}\n", "x.yaml")
    assert keys is not None
    facts = Facts("x.yaml")
    take(facts, keys, {"a": Meaning("tp"), "b": Meaning("pp"), "c": Meaning("cp")})
    assert {name: found.value for name, found in facts.settled().items()} == {
        "tp": 4,
        "pp": 2,
        "cp": 4,
    }
    assert str(facts.settled()["tp"].where) == "x.yaml line 2, a by way of ${m.tp}"
