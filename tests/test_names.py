"""Classes have names of their own, and docstrings are sentences, throughout the package."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import serried

ROOT = Path(serried.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
EVERY_MODULE = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(ROOT))
)
FRAGMENTS = {"Are", "Is", "Its", "Of", "Was", "Were", "Whose"}
"""Words that begin a piece of a sentence, not a sentence in the third person."""
VERB = re.compile(r"[A-Z][a-z]+s\b")
"""A verb in the third person, as far as its letters tell."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def below_fields(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of every docstring below a field or a constant."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else []):
            is_field = isinstance(before, ast.Assign | ast.AnnAssign)
            if is_field and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                yield after.lineno, str(after.value.value)


def of_classes_and_functions(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yields the line and the text of other docstrings, and whether it says what is done."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | Function) and (text := ast.get_docstring(node)):
            yield node.lineno, text, not any(map(is_property, node.decorator_list))


def is_property(decorator: ast.expr) -> bool:
    return "property" in ast.unparse(decorator)


def test_no_two_public_classes_of_the_package_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


@EVERY_MODULE
def test_no_docstring_begins_as_a_piece_of_a_sentence(path: Path) -> None:
    tree = parsed(path)
    found = [(line, text) for line, text, _ in of_classes_and_functions(tree)]
    found += below_fields(tree)
    assert [(line, text) for line, text in found if text.split(" ", 1)[0] in FRAGMENTS] == []


@EVERY_MODULE
def test_a_class_or_function_is_described_by_a_verb(path: Path) -> None:
    found = of_classes_and_functions(parsed(path))
    assert [(line, text) for line, text, does in found if does and not VERB.match(text)] == []
