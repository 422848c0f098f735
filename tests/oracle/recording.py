"""Runs a package's own initialiser with process groups recorded instead of made.

``torch.distributed.new_group`` is collective over the world, so every rank declares every
group: one recorded pass at one rank yields all of them.
"""

from __future__ import annotations

import ast
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest import mock

Lists = list[list[int]]


@dataclass(eq=False)
class Recorded:
    """Stands for a process group: its ranks as declared, and its description."""

    ranks: list[int]
    group_desc: str | None = None

    def size(self) -> int:
        return len(self.ranks)

    def rank(self) -> int:
        return 0


@dataclass
class Recorder:
    """Stands for ``torch.distributed`` at one rank of a world."""

    world: int
    rank: int = 0
    calls: list[Recorded] = field(default_factory=list)

    def new_group(self, ranks: Sequence[int] | None = None, *_: object, **more: object) -> Recorded:
        members = range(self.world) if ranks is None else ranks
        desc = more.get("group_desc")
        group = Recorded([int(r) for r in members], desc if isinstance(desc, str) else None)
        self.calls.append(group)
        return group

    def get_world_size(self, group: Recorded | None = None) -> int:
        return self.world if group is None else len(group.ranks)

    def get_rank(self, group: Recorded | None = None) -> int:
        if group is None:
            return self.rank
        return group.ranks.index(self.rank) if self.rank in group.ranks else -1

    @contextmanager
    def patched(self, module: types.ModuleType) -> Iterator[Recorder]:
        """Puts this in the place of ``module``'s functions."""
        stand_ins: dict[str, Callable[..., object]] = {
            "new_group": self.new_group,
            "get_world_size": self.get_world_size,
            "get_rank": self.get_rank,
            "is_initialized": lambda: True,
            "is_available": lambda: True,
            "barrier": lambda *_, **__: None,
            "destroy_process_group": lambda *_, **__: None,
            "get_backend": lambda *_: "nccl",
        }
        with ExitStack() as stack:
            for name, stand_in in stand_ins.items():
                stack.enter_context(mock.patch.object(module, name, stand_in, create=True))
            yield self


class Silent:
    """Stands for a logger, a device or a decorator: takes any call and says nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Silent()

    def __call__(self, *_: object, **__: object) -> Any:
        return None


def loaded(path: Path, name: str) -> types.ModuleType:
    """Runs one source file as module ``name``; what it imports must be stubbed before."""
    module = types.ModuleType(name)
    module.__package__, module.__file__ = name.rpartition(".")[0], str(path)
    sys.modules[name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def methods(
    path: Path, within: str, names: tuple[str, ...], around: dict[str, Any]
) -> dict[str, Any]:
    """Returns methods of the class ``within`` of a file that imports too much to be loaded.

    They run in ``around`` alone; annotations are left out, for they name what is not imported.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == within
    )
    found: dict[str, ast.stmt] = {}
    for node in inside.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            each = node.args
            for argument in (*each.posonlyargs, *each.args, *each.kwonlyargs):
                argument.annotation = None
            node.returns, node.decorator_list = None, []
            found[node.name] = node
    exec(compile(ast.Module([*found.values()], []), str(path), "exec"), around)
    return around


def stub(name: str, **attributes: object) -> types.ModuleType:
    """Registers an empty package called ``name`` that holds ``attributes``."""
    module = types.ModuleType(name)
    module.__path__ = []
    module.__spec__ = ModuleSpec(name, None)
    for key, value in attributes.items():
        setattr(module, key, value)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
    return module


def refusal(error: BaseException) -> dict[str, str]:
    """Returns the error as goldens hold it."""
    return {"type": type(error).__name__, "message": str(error)}
