"""Reads TOML as plain keys with lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from serried.errors import InputError
from serried.launch.facts.keys import Keys, too_deep, unfold
from serried.limits import CONFIG_KEY, TOML_ROW

if TYPE_CHECKING:
    import tomllib

# '[parallelism]', but not '[[runs]]', a list of tables.
SECTION = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
DEEP = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]{1,80}[ \t]*\.[ \t]*){61}")
"""A dotted key of many parts, whose reading takes a time that grows with their square."""
# 'tensor_parallel_degree = 2  # …', up to the comment.
PAIR = re.compile(r"""\s*([\w.\-"']+)\s*=\s*([^#]*)""")


def read(text: str, file: str) -> Keys:
    """Returns the keys of a TOML file; raises InputError where it is none, or says a key twice.

    >>> read("[a]\\nb = 2 # two", "x.toml").entries
    {'a.b': [ConfigValue(value=2, line=2, via='', why=None, file='')]}
    """
    import tomllib  # few launch files are TOML

    places: dict[str, list[tuple[int, str]]] = {}
    section = ""
    if DEEP.search(text):
        raise too_deep(file)
    for number, row in enumerate(text.split("\n"), 1):
        if len(row) > TOML_ROW.most:
            continue
        if found := SECTION.match(row):
            section = _bare(found[1])
        elif found := PAIR.match(row):
            key = f"{section}.{_bare(found[1])}" if section else _bare(found[1])
            # Rows below a long section would repeat its name; such a key is refused in any case.
            if len(key) <= CONFIG_KEY.most:
                places.setdefault(key, []).append((number, found[2].strip()))
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refusal(file, places, error) from error
    except RecursionError as error:
        raise too_deep(file) from error
    except ValueError as error:
        # Of a whole number of more digits than Python reads.
        raise InputError("{file} is no TOML: {problem}", file=file, problem=error) from error
    keys = Keys(file)
    unfold(keys, tree, lambda key: places[key][0][0] if key in places else None)
    return keys


def _bare(key: str) -> str:
    return re.sub(r"[\"'\s]", "", key)


def _refusal(
    file: str, places: dict[str, list[tuple[int, str]]], error: tomllib.TOMLDecodeError
) -> InputError:
    # tomllib says that a key was given twice, but not where it was given first.
    for key, found in places.items():
        if len(found) > 1:
            return InputError(
                "{file} gives {key} twice: {first} on line {line} and {second} on line {again}; "
                "keep one",
                file=file,
                key=key,
                first=found[0][1],
                line=found[0][0],
                second=found[1][1],
                again=found[1][0],
            )
    return InputError("{file} is no TOML: {problem}", file=file, problem=error)
