"""Works out expressions of a Python config on the names set so far, without running them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from serried.finding import Sentence, said
from serried.launch.facts.keys import Scalar, too_many
from serried.limits import CONFIG_VALUES, PYTHON_POWER, PYTHON_TEXT, WORD

BINARY: Mapping[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARE: Mapping[type[ast.cmpop], Callable[..., object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
CALLS: Mapping[str, Callable[..., object]] = {
    each.__name__: each for each in (int, float, str, bool, round, abs, max, min)
}


@dataclass(frozen=True)
class Leaf:
    """Holds a value of the config: a scalar, or why it is not known."""

    value: Scalar
    line: int
    via: str = ""
    why: Sentence | None = None
    file: str = ""
    """The file it stands in, where that is another one than the config read."""


Tree = Leaf | dict[str, "Tree"] | list["Tree"]


class Open(Exception):
    """Carries out of an expression why it is not known."""

    def __init__(self, why: Sentence) -> None:
        self.why = why


class Values:
    """Works out expressions; ``names`` is what the file has set, ``stars`` what may set more."""

    def __init__(self, file: str, names: dict[str, Tree], stars: list[tuple[str, int]]) -> None:
        self.file, self.names, self.stars = file, names, stars
        self._num_copied = 0

    def tree(self, node: ast.expr) -> Tree:
        """Returns what an expression stands for, or a leaf that says why it is not known."""
        try:
            return self._tree(node)
        except Open as stopped:
            return Leaf(None, node.lineno, why=stopped.why)
        except (ArithmeticError, TypeError, ValueError, LookupError):
            return Leaf(None, node.lineno, why=self.not_run(node))

    def key(self, node: ast.expr) -> str | None:
        """Returns the index of ``a["b"]`` as text, or None when it is not known."""
        tree = self.tree(node)
        return str(tree.value) if isinstance(tree, Leaf) and tree.why is None else None

    def mapping(self, node: ast.Call) -> dict[str, Tree]:
        """Returns what ``dict(base, a=1, **more)`` holds; raises Open when a part is not known."""
        made: dict[str, Tree] = {}
        for each in node.args:
            made |= self._mapping(each)
        for keyword in node.keywords:
            if keyword.arg is None:
                made |= self._mapping(keyword.value)
            else:
                made[keyword.arg] = self.tree(keyword.value)
        return made

    def not_run(self, node: ast.expr) -> Sentence:
        """Says that an expression would have to be run."""
        source = ast.unparse(node)
        return said(
            "{source} on line {line} of {file} is not run",
            source=source if len(source) <= 60 else source[:57] + "...",
            line=node.lineno,
            file=self.file,
        )

    # ------------------------------------------------------------------- trees

    def _mapping(self, node: ast.expr) -> dict[str, Tree]:
        base = self.tree(node)
        if isinstance(base, dict):
            # Whoever asks copies it, and a chain of copies would take a quadratic time.
            self._num_copied += len(base)
            if self._num_copied > CONFIG_VALUES.most:
                raise too_many(self.file)
            return base
        raise Open(base.why if isinstance(base, Leaf) and base.why else self.not_run(node))

    def _tree(self, node: ast.expr) -> Tree:
        if isinstance(node, ast.Constant):
            value = node.value if isinstance(node.value, int | float | bool | str) else None
            return Leaf(value, node.lineno)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Dict):
            return self._literal(node)
        if isinstance(node, ast.List | ast.Tuple):
            return [self.tree(each) for each in node.elts]
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.IfExp):
            return self.tree(node.body if self._scalar(node.test) else node.orelse)
        # '-1' is as good as a number, so no expression is named as where it came from.
        is_sign = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
        return Leaf(self._scalar(node), node.lineno, "" if is_sign else ast.unparse(node))

    def _name(self, node: ast.Name) -> Tree:
        if node.id not in self.names:
            raise Open(self._not_set(node))
        found = self.names[node.id]
        if isinstance(found, Leaf):
            return replace(found, line=node.lineno, via=found.via or node.id, file="")
        return found

    def _not_set(self, node: ast.Name) -> Sentence:
        if self.stars:
            module, line = self.stars[-1]
            return said(
                "{name} may come from {module}, which line {line} of {file} imports and which is "
                "not followed",
                name=node.id,
                module=module,
                line=line,
                file=self.file,
            )
        return said(
            "{file} does not set {name} before line {line}",
            file=self.file,
            name=node.id,
            line=node.lineno,
        )

    def _literal(self, node: ast.Dict) -> Tree:
        made: dict[str, Tree] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made |= self._mapping(value)
            elif (name := self.key(key)) is not None:
                made[name] = self.tree(value)
        return made

    def _call(self, node: ast.Call) -> Tree:
        if isinstance(node.func, ast.Name) and node.func.id == "dict":
            return self.mapping(node)
        # Nothing else is called: these make numbers and texts, and reach nothing outside.
        if isinstance(node.func, ast.Name) and node.func.id in CALLS and not node.keywords:
            values = [self._scalar(each) for each in node.args]
            return Leaf(_limited(CALLS[node.func.id](*values)), node.lineno, ast.unparse(node))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            owner, key = self.tree(node.func.value), self.key(node.args[0])
            if isinstance(owner, dict) and key is not None:
                default = self.tree(node.args[1]) if len(node.args) > 1 else Leaf(None, node.lineno)
                return owner.get(key, default)
        raise Open(self.not_run(node))

    def _subscript(self, node: ast.Subscript) -> Tree:
        owner, key = self.tree(node.value), self.key(node.slice)
        # Keys are text, as they are in 'parallel.tensor.size', so a[1] finds what a["1"] holds.
        if isinstance(owner, dict) and key in owner:
            found = owner[key]
        elif isinstance(owner, list) and key is not None and key.lstrip("-").isdecimal():
            found = owner[int(key)]
        else:
            raise Open(self.not_run(node))
        if isinstance(found, Leaf):
            return replace(found, line=node.lineno, via=ast.unparse(node), file="")
        return found

    # ------------------------------------------------------------------- scalars

    def _scalar(self, node: ast.expr) -> Scalar:
        """Returns an expression as one number or text; raises Open when it is not known."""
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.UnaryOp):
            value = self._scalar(node.operand)
            if isinstance(node.op, ast.Not):
                return not value
            if isinstance(value, int | float) and isinstance(node.op, ast.USub | ast.UAdd):
                return -value if isinstance(node.op, ast.USub) else +value
        if isinstance(node, ast.JoinedStr):
            return _limited("".join(self._piece(each) for each in node.values))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
            rule = COMPARE[type(node.ops[0])]
            return bool(rule(self._scalar(node.left), self._scalar(node.comparators[0])))
        if isinstance(node, ast.BoolOp):
            return self._first(node.values, is_or=isinstance(node.op, ast.Or))
        # These may stand for a mapping as well; only what comes to one value counts here.
        if isinstance(node, ast.Constant | ast.Name | ast.Call | ast.Subscript | ast.IfExp):
            tree = self.tree(node)
            if isinstance(tree, Leaf):
                if tree.why is not None:
                    raise Open(tree.why)
                return tree.value
        raise Open(self.not_run(node))

    def _first(self, nodes: Sequence[ast.expr], *, is_or: bool) -> Scalar:
        """Returns what ``a or b``, or ``a and b``, stands for: the value that settles it."""
        value: Scalar = None
        for each in nodes:
            value = self._scalar(each)
            if bool(value) == is_or:
                break
        return value

    def _binary(self, node: ast.BinOp) -> Scalar:
        left, right = self._scalar(node.left), self._scalar(node.right)
        rule = BINARY.get(type(node.op))
        # "ab" * 10**12 and 2 ** 10**12 would fill the memory before their size could be looked at.
        grows = isinstance(node.op, ast.Mult | ast.Mod) and (
            isinstance(left, str) or isinstance(right, str)
        )
        explodes = isinstance(node.op, ast.Pow | ast.LShift) and not (
            isinstance(right, int) and abs(right) <= PYTHON_POWER.most
        )
        if rule is None or grows or explodes:
            raise Open(self.not_run(node))
        return _limited(rule(left, right))

    def _piece(self, node: ast.expr) -> str:
        if isinstance(node, ast.FormattedValue):
            if node.format_spec is not None:
                raise Open(self.not_run(node.value))
            return str(self._scalar(node.value))
        return str(self._scalar(node))


def _limited(value: object) -> Scalar:
    """Returns a result that is a number or text of a size that a config has."""
    if isinstance(value, int | float) and abs(value) < WORD.most:
        return value
    if isinstance(value, str) and len(value) < PYTHON_TEXT.most:
        return value
    raise OverflowError
