"""Docstrings are sentences, throughout the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import serried

ROOT = Path(serried.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
FRAGMENTS = {"Are", "Is", "Its", "Of", "Was", "Were", "Whose"}
"""Words that begin a piece of a sentence, not a sentence in the third person."""

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of every docstring, those below fields and constants too."""
    for node in ast.walk(tree):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield node.lineno, text
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else []):
            is_field = isinstance(before, ast.Assign | ast.AnnAssign)
            if is_field and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                yield after.lineno, str(after.value.value)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_docstring_begins_as_a_piece_of_a_sentence(path: Path) -> None:
    found = docstrings(parsed(path))
    assert [(line, text) for line, text in found if text.split(" ", 1)[0] in FRAGMENTS] == []
