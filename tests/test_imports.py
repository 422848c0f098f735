"""Every module says what it holds, and what starts quickly loads no heavy package.

Which room may import which is checked by the contracts in ``pyproject.toml`` (``lint-imports``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import serried

ROOT = Path(serried.__file__).parent
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem != "__init__"
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_opens_with_a_sentence_saying_what_it_holds(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring
    assert docstring.split("\n\n")[0].rstrip().endswith((".", ":"))


@pytest.mark.parametrize(
    "module", ["serried", "serried.views.cli.main", "serried.views.cli.groups.command"]
)
def test_importing_the_core_loads_neither_torch_nor_a_web_stack(module: str) -> None:
    heavy = {"torch", "starlette", "uvicorn", "playwright"}
    code = f"import sys, {module}; print(*({heavy} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []
