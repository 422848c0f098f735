"""Reads a Python config as plain keys with lines, without running any of it.

Assignments of numbers, text, names, arithmetic, ``dict(…)``, lists and f-strings are worked
out (``python_value``); an import, a loop, a call or anything else makes the names it sets
unknown, with the reason and its line.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from pathlib import PurePosixPath

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.documents.python_value import Leaf, Open, Tree, Values
from serried.launch.facts.keys import ConfigValue, Keys, too_deep, too_many
from serried.launch.facts.remarks import Remarks
from serried.limits import CONFIG_DEPTH, CONFIG_VALUES, PYTHON_FILES, PYTHON_IMPORTS


@dataclass
class _Module:
    """Holds what the names of a file stand for, and remarks."""

    names: dict[str, Tree] = field(default_factory=dict)
    notes: Remarks = field(default_factory=Remarks)
    stars: list[tuple[str, int]] = field(default_factory=list)
    """Modules whose names all come in, ``from x import *``, and which are not followed."""


@dataclass
class _Others:
    """Holds the configs that may be imported, and counts how often one is."""

    beside: Mapping[str, str]
    num_taken: int = 0

    def take(self, wanted: str, file: str) -> str | None:
        """Returns the text of a config; raises InputError when too many are taken in."""
        for name, text in self.beside.items():
            if PurePosixPath(name).name == wanted:
                self.num_taken += 1
                if self.num_taken > PYTHON_FILES.most:
                    raise InputError(
                        "{file} takes in other configs more than {limit} times; write out what "
                        "it takes from them",
                        file=file,
                        limit=PYTHON_FILES.most,
                    )
                return text
        return None


def read(text: str, file: str, beside: Mapping[str, str] | None = None) -> tuple[Keys, Remarks]:
    """Returns the keys of a Python config, and remarks on what was not followed.

    ``beside`` holds other configs, for ``from base import *``. Raises InputError when the
    text is no Python.

    >>> keys, _ = read("TP = 4\\nparallel = dict(tensor=dict(size=TP * 2))", "x.py")
    >>> keys.entries["parallel.tensor.size"]
    [ConfigValue(value=8, line=2, via='TP * 2', why=None, file='')]
    """
    module = _module(text, file, _Others(beside or {}))
    keys = Keys(file)
    visits = count()
    for name, tree in module.names.items():
        _flatten(keys, name, tree, 0, visits)
    return keys, module.notes


def is_python(text: str) -> bool:
    """Tells whether a text reads as Python."""
    try:
        _body(text)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return False
    return True


def is_program(text: str) -> bool:
    """Tells whether a text is Python that does more than set names, or at least imports."""
    try:
        body = _body(text)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return False
    told = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(each, told) for each in body)


@lru_cache(maxsize=1)
def _body(text: str) -> list[ast.stmt]:
    """Returns the statements of a text; what Python would warn of is its author's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text).body


def _module(text: str, file: str, others: _Others, depth: int = 0) -> _Module:
    try:
        reader = _Reader(file, others, depth)
        reader.block(_body(text))
        return reader.module
    except SyntaxError as error:
        raise InputError(
            "{file} line {line} is no Python: {problem}",
            file=file,
            line=error.lineno or 1,
            problem=error.msg,
        ) from error
    except (RecursionError, MemoryError) as error:
        raise too_deep(file) from error
    except ValueError as error:
        raise InputError(
            "{file} line {line} is no Python: {problem}", file=file, line=1, problem=error
        ) from error


class _Reader:
    """Walks through statements, working out what they set."""

    def __init__(self, file: str, others: _Others, depth: int) -> None:
        self.file, self.others, self.depth = file, others, depth
        self.module = _Module()
        self.values = Values(file, self.module.names, self.module.stars)

    def _note(self, line: int, remark: Sentence) -> None:
        self.module.notes.add(
            said("{file} line {line}: {remark}", file=self.file, line=line, remark=remark)
        )

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            tree = self.values.tree(node.value)
            for target in node.targets:
                self._set(target, tree)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._set(node.target, self.values.tree(node.value))
        elif isinstance(node, ast.AugAssign):
            # 'TP *= 2' is worked out as 'TP * 2'.
            joined = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self._set(node.target, self.values.tree(joined))
        elif isinstance(node, ast.Expr):
            self._expression(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.With):
            # 'with read_base():' runs its body once, as any such block does.
            self.block(node.body)
        elif not isinstance(node, ast.Pass):
            self._skip(node)

    def _set(self, target: ast.expr, tree: Tree) -> None:
        names = self.module.names
        if isinstance(target, ast.Name):
            if target.id == "parallel" and isinstance(names.get(target.id), dict):
                again = said("parallel is set once more and replaces the one before")
                self._note(target.lineno, again)
            names[target.id] = tree
        elif isinstance(target, ast.Subscript):
            owner, key = self._owner(target.value), self.values.key(target.slice)
            if owner is not None and key is not None:
                owner[key] = tree
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(tree, list):
            # In 'TP, PP = 2, 4' each has its own. A target such as 'cfg.tp' is of an object that is
            # never built, so it sets nothing.
            for each, value in zip(target.elts, tree, strict=False):
                self._set(each, value)

    def _owner(self, node: ast.expr) -> dict[str, Tree] | None:
        """Returns the mapping that ``a["b"]`` or ``a`` names, to be changed in place."""
        if isinstance(node, ast.Name):
            found = self.module.names.get(node.id)
        elif isinstance(node, ast.Subscript):
            owner, key = self._owner(node.value), self.values.key(node.slice)
            found = owner.get(key) if owner is not None and key is not None else None
        else:
            found = None
        return found if isinstance(found, dict) else None

    def _expression(self, node: ast.Expr) -> None:
        """Follows ``name.update(…)``; any other expression alone sets nothing."""
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        owner = self._owner(call.func.value)
        if owner is None or call.func.attr != "update":
            return
        try:
            owner |= self.values.mapping(call)
        except Open as stopped:
            self._note(node.lineno, stopped.why)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        why = said(
            "line {line} of {file} imports it, and imports are not followed",
            line=node.lineno,
            file=self.file,
        )
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if alias.name == "*":
                self._import_all(module, node.lineno)
            else:
                # 'import torch.nn' sets the name torch.
                name = (alias.asname or alias.name).split(".")[0]
                self.module.names[name] = Leaf(None, node.lineno, why=why)

    def _import_all(self, module: str, line: int) -> None:
        """Takes all names of a config that is given beside this one; says so when it is not."""
        # 'from configs.base_7B import *' means base_7B.py: files given beside have no folders.
        wanted = module.split(".")[-1] + ".py"
        text = None
        if self.depth >= PYTHON_IMPORTS.most:
            why = said(
                "all names of {module} come in here, and imports are followed through {limit} "
                "files at most",
                module=module,
                limit=PYTHON_IMPORTS.most,
            )
        else:
            text = self.others.take(wanted, self.file)
            why = said(
                "all names of {module} come in here, and imports are not followed; "
                "give {wanted} beside it",
                module=module,
                wanted=wanted,
            )
        if text is None:
            self.module.stars.append((module, line))
            self._note(line, why)
            return
        other = _module(text, wanted, self.others, self.depth + 1)
        made: dict[int, Tree] = {}
        self.module.names |= {name: _from(wanted, tree, made) for name, tree in other.names.items()}
        self.module.notes.add(*other.notes)

    def _if(self, node: ast.If) -> None:
        tree = self.values.tree(node.test)
        if isinstance(tree, Leaf) and tree.why is None:
            self.block(node.body if tree.value else node.orelse)
        else:
            self._skip(node)

    def _skip(self, node: ast.stmt) -> None:
        """Makes every name that a statement may set unknown, and says why."""
        kind = KINDS.get(type(node)) or said("'{word}'", word=ast.unparse(node).split()[0])
        why = said(
            "{kind} on line {line} of {file} sets it, and is not run",
            kind=kind,
            line=node.lineno,
            file=self.file,
        )
        names = _stored(node)
        for name in names:
            self.module.names[name] = Leaf(None, node.lineno, why=why)
        if names:
            self._note(node.lineno, said("{kind} is not run", kind=kind))


KINDS: Mapping[type[ast.stmt], Sentence] = {
    ast.For: said("a loop"),
    ast.While: said("a loop"),
    ast.FunctionDef: said("a function"),
    ast.ClassDef: said("a class"),
    ast.If: said("an 'if' that the file does not settle"),
}


def _stored(node: ast.stmt) -> set[str]:
    """Returns the names that a statement may set, or whose entries it may."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    names: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Subscript) and isinstance(each.ctx, ast.Store):
            # 'a["b"]["c"] = 1' changes a.
            base: ast.expr = each
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                names.add(base.id)
    return names


def _from(file: str, tree: Tree, made: dict[int, Tree]) -> Tree:
    """Returns a value with the file it stands in; ``made`` holds those that are done."""
    # A value in many places is done once: 'b = [a, a]', 'c = [b, b]' would double line by line.
    if id(tree) not in made:
        if isinstance(tree, Leaf):
            made[id(tree)] = replace(tree, file=tree.file or file)
        elif isinstance(tree, dict):
            made[id(tree)] = {name: _from(file, each, made) for name, each in tree.items()}
        else:
            made[id(tree)] = [_from(file, each, made) for each in tree]
    return made[id(tree)]


def _flatten(keys: Keys, key: str, tree: Tree, depth: int, visits: Iterator[int]) -> None:
    """Adds a tree to ``keys``; one that holds another in several places is visited in each."""
    if depth > CONFIG_DEPTH.most:
        raise too_deep(keys.file)
    if next(visits) > CONFIG_VALUES.most:
        raise too_many(keys.file)
    if isinstance(tree, Leaf):
        keys.add(key, ConfigValue(tree.value, tree.line, tree.via, tree.why, tree.file))
    elif isinstance(tree, dict):
        for name, value in tree.items():
            _flatten(keys, f"{key}.{name}", value, depth + 1, visits)
    elif all(isinstance(each, Leaf) and each.why is None for each in tree):
        # 'sizes = [2, 4]' is one value. Of a list that holds mappings, or what is not known, each
        # place has a key of its own.
        leaves = [each for each in tree if isinstance(each, Leaf)]
        line = leaves[0].line if leaves else None
        keys.add(key, ConfigValue(tuple(each.value for each in leaves), line))
    else:
        for i, each in enumerate(tree):
            _flatten(keys, f"{key}.{i}", each, depth + 1, visits)
