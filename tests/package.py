"""The package's own modules, parsed: once for all tests of a process that read their code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import serried

ROOT = Path(serried.__file__).parent


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Returns what every module is made of, in ``ast.walk``'s order, by its path in the package."""
    return {
        path.relative_to(ROOT).as_posix(): [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        for path in sorted(ROOT.rglob("*.py"))
    }
