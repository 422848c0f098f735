"""Classes have names of their own, and docstrings are sentences, throughout the package."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.package import nodes

FRAGMENTS = {"Are", "Is", "Its", "Of", "Was", "Were", "Whose"}
"""Words that begin a piece of a sentence, not a sentence in the third person."""
VERB = re.compile(r"[A-Z][a-z]+s\b")
"""A verb in the third person, as far as its letters tell."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def below_fields(walked: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of every docstring below a field or a constant."""
    for node in walked:
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else []):
            is_field = isinstance(before, ast.Assign | ast.AnnAssign)
            if is_field and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                yield after.lineno, str(after.value.value)


def of_classes_and_functions(walked: list[ast.AST]) -> Iterator[tuple[int, str, bool]]:
    """Yields the line and the text of other docstrings, and whether it says what is done."""
    for node in walked:
        if isinstance(node, ast.ClassDef | Function) and (text := ast.get_docstring(node)):
            yield node.lineno, text, not any(map(is_property, node.decorator_list))


def is_property(decorator: ast.expr) -> bool:
    return "property" in ast.unparse(decorator)


def test_no_two_public_classes_of_the_package_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, walked in nodes().items():
        for node in walked:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_docstring_begins_as_a_piece_of_a_sentence() -> None:
    found = [
        (path, line, text)
        for path, walked in nodes().items()
        for line, text in (
            *((line, text) for line, text, _ in of_classes_and_functions(walked)),
            *below_fields(walked),
        )
    ]
    assert found
    assert [each for each in found if each[2].split(" ", 1)[0] in FRAGMENTS] == []


def test_a_class_or_function_is_described_by_a_verb() -> None:
    found = [
        (path, line, text)
        for path, walked in nodes().items()
        for line, text, does in of_classes_and_functions(walked)
        if does
    ]
    assert found
    assert [each for each in found if not VERB.match(each[2])] == []
