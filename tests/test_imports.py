"""The rooms import one way, and only ``runtime`` imports torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import serried

ROOT = Path(serried.__file__).parent
LAYERS = (
    {"errors", "units", "finding", "limits"},
    {"user_file"},
    {"mesh"},
    {"frameworks"},
    {"launch"},
    {"action"},
    {"pipeline"},
    {"trace"},
    {"plan", "diagnose"},
    {"runtime"},
    {"views"},
)
LAYER = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem != "__init__"
)


def room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Returns the dotted names that a module imports, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_used(path: Path) -> set[str]:
    parts = (name.split(".") for name in imported(path) if name.startswith("serried."))
    return {each[1] for each in parts if each[1] in LAYER} - {room(path)}


def test_every_module_belongs_to_a_room_of_the_house() -> None:
    assert {room(path) for path in MODULES} <= set(LAYER)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_rooms_before_it(path: Path) -> None:
    back = {used for used in rooms_used(path) if LAYER[used] >= LAYER[room(path)]}
    assert not back - (LAYERS[0] if room(path) in LAYERS[0] else set())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_runtime_imports_torch(path: Path) -> None:
    uses_torch = any(name.split(".")[0] == "torch" for name in imported(path))
    assert not uses_torch or room(path) == "runtime"


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
