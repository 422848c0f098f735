"""Reads configs that are Python functions: torchtitan's registries, recipes of NeMo 2 and Bridge.

    def llama3_70b() -> Trainer.Config:
        config = llama3_8b()                                   what that function says, then
        config.parallelism.tensor_parallel_degree = 8          this
        return config

The functions are read, never run: a size is a keyword of some call or an attribute that is set, as
a number, or as a parameter with a number for its default. One that stands under an ``if`` or in a
loop is open. torchtitan 0.3 torchtitan/models/*/config_registry.py; Megatron-Bridge
src/megatron/bridge/recipes; NeMo 2 nemo/collections/llm/recipes.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.launch.documents.python_value import Leaf, Values
from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import ConfigValue, Keys, take, too_many
from serried.launch.formats import torchtitan
from serried.launch.formats.megatron import MEANINGS, complete
from serried.limits import CONFIG_VALUES, PYTHON_IMPORTS

FOREIGN = re.compile(r"trainer|\w*_recipe|\w*recipe_performance|\w+_config")
"""Functions of other modules whose config a recipe may take over, its sizes with it."""
ASKED = ("tp", "pp", "cp")
REGISTRY = re.compile(r"(?:.*\.)?config_registry")
"""Modules of torchtitan whose functions make configs, which a registry may take over."""

TITAN = {name.replace("-", "_"): meaning for name, meaning in torchtitan.DEGREES.items()}
MEGATRON = {
    **{
        name.replace("-", "_"): meaning
        for name, meaning in MEANINGS.items()
        if name != "data-parallel-sharding-strategy"
    },
    # What NeMo 2's functions call the sizes of a trainer.
    "tensor_parallelism": Meaning("tp"),
    "pipeline_parallelism": Meaning("pp"),
    "context_parallelism": Meaning("cp"),
    "expert_parallelism": Meaning("ep"),
    "expert_model_parallelism": Meaning("ep"),
    "virtual_pipeline_parallelism": Meaning("virtual_pipeline_model_parallel_size"),
    "num_nodes": Meaning("nodes"),
    "num_gpus_per_node": Meaning("gpus_per_node"),
    "devices": Meaning("gpus_per_node"),
}
RETURNS = {"Trainer.Config": "torchtitan", "ConfigContainer": "megatron"}
"""What a config's function returns, as it is annotated -> the framework that it is for."""

# A module that is started itself is a program, whatever its functions return.
RUNS = re.compile(r"(?m)^if __name__ ==")

NEMO = ("Partial", "Config")
"""What NeMo 2's functions return of ``nemo_run``, where they set a strategy of Megatron-core."""


@dataclass(frozen=True)
class Recipe:
    """Holds one function that makes a config, and the framework that it is for."""

    node: ast.FunctionDef
    framework: str


def recipes(text: str) -> dict[str, Recipe]:
    """Returns the functions of a module that make configs, by name; none where it cannot be read.

    >>> [*recipes("def a() -> Trainer.Config:\\n    return 1\\ndef b():\\n    return 2")]
    ['a']
    """
    found: dict[str, Recipe] = {}
    if RUNS.search(text):
        return found
    for node in _functions(text).values():
        returned = ast.unparse(node.returns) if node.returns else ""
        framework = next((each for end, each in RETURNS.items() if returned.endswith(end)), None)
        if framework is None and returned.split(".")[-1] in NEMO and _sets_sizes(node):
            framework = "megatron"
        if framework and not node.name.startswith("_") and not _takes_config(node, returned):
            found[node.name] = Recipe(node, framework)
    return found


def choose(text: str, file: str) -> str | None:
    """Returns the one config of a module, None where it has none; raises InputError for several."""
    found = recipes(text)
    if len(found) > 1:
        raise InputError(
            "{file} holds {count} configs: {names}; give one of them, such as {example}",
            file=file,
            count=len(found),
            names=listed(found, limit=24),
            example=f"{file}:{next(iter(found))}",
        )
    return next(iter(found), None)


def read(text: str, file: str, name: str) -> Reading:
    """Returns what the function called ``name`` says; raises InputError where there is none."""
    found = recipes(text)
    if name not in found:
        raise InputError(
            "{file} holds no config {name}; those that it holds: {known}",
            file=file,
            name=name,
            known=listed(found, limit=24) or said("none"),
        )
    recipe = found[name]
    table = TITAN if recipe.framework == "torchtitan" else MEGATRON
    keys = Keys(file)
    reader = _Reader(file, _functions(text), table, _taken_over(text))
    made = reader.sizes(recipe.node, {}, 0)
    for key, leaf in made.items():
        keys.add(key, ConfigValue(leaf.value, leaf.line, leaf.via, leaf.why))
    facts = Facts(file)
    take(facts, keys, table, name_of=str)
    if recipe.framework == "torchtitan":
        torchtitan.tidy(facts)
        if reader.foreign:
            torchtitan.lack_sizes(facts, reader.foreign[0])
            torchtitan.ask_once(facts)
        return Reading("torchtitan registry", facts, "torchtitan", product=torchtitan.PRODUCT)
    complete(facts)
    for size in ASKED if reader.foreign else ():
        if not facts.says(size):
            facts.lack(size, reader.foreign[0])
    return Reading("Megatron recipe", facts, "megatron")


def _functions(text: str) -> dict[str, ast.FunctionDef]:
    """Returns the functions at the top of a module, none where it is no Python."""
    return {node.name: node for node in _body(text) if isinstance(node, ast.FunctionDef)}


def _taken_over(text: str) -> frozenset[str]:
    """Returns the names that a module takes from another registry."""
    return frozenset(
        each.asname or each.name
        for node in _body(text)
        if isinstance(node, ast.ImportFrom) and REGISTRY.fullmatch(node.module or "")
        for each in node.names
    )


def _body(text: str) -> list[ast.stmt]:
    """Returns the statements at the top of a module, none where it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _takes_config(node: ast.FunctionDef, returned: str) -> bool:
    """Tells whether a function changes a config that it is handed, and so makes none."""
    arguments = (*node.args.posonlyargs, *node.args.args)
    return any(each.annotation and ast.unparse(each.annotation) == returned for each in arguments)


def _sets_sizes(node: ast.FunctionDef) -> bool:
    """Tells whether a function of NeMo 2 makes a whole job, with nodes or Megatron's sizes."""
    names = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
    return {"num_nodes", "num_gpus_per_node"} <= names and node.name != "trainer"


class _Reader:
    """Goes through functions, statement by statement, for the sizes that they leave set."""

    def __init__(
        self,
        file: str,
        functions: Mapping[str, ast.FunctionDef],
        table: Mapping[str, Meaning],
        taken_over: frozenset[str],
    ) -> None:
        self.file, self.functions, self.table = file, functions, table
        self.taken_over = taken_over
        self.num_read = 0
        self.foreign: list[Sentence] = []
        """Configs of other modules that are taken over, and are not followed."""

    def sizes(
        self, node: ast.FunctionDef, given: Mapping[str, Leaf], depth: int
    ) -> dict[str, Leaf]:
        """Returns the sizes that a function leaves set, called with what is ``given``."""
        values = Values(self.file, {}, [])
        arguments = [*node.args.args, *node.args.kwonlyargs]
        defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + [
            *node.args.defaults,
            *node.args.kw_defaults,
        ]
        for argument, default in zip(arguments, defaults, strict=True):
            if argument.arg in given:
                values.names[argument.arg] = given[argument.arg]
            elif default is not None:
                values.names[argument.arg] = values.tree(default)
        made: dict[str, Leaf] = {}
        self._block(node.body, values, made, depth)
        return made

    def _block(
        self, body: list[ast.stmt], values: Values, made: dict[str, Leaf], depth: int
    ) -> None:
        for each in body:
            if isinstance(each, ast.If):
                self._if(each, values, made, depth)
            elif isinstance(each, ast.For | ast.While | ast.Try | ast.With):
                self._perhaps(each, values, made, depth)
            elif not isinstance(each, ast.FunctionDef | ast.ClassDef):
                self._statement(each, values, made, depth)

    def _if(self, node: ast.If, values: Values, made: dict[str, Leaf], depth: int) -> None:
        test = values.tree(node.test)
        if isinstance(test, Leaf) and test.why is None:
            self._block(node.body if test.value else node.orelse, values, made, depth)
        else:
            self._perhaps(node, values, made, depth)

    def _perhaps(self, node: ast.stmt, values: Values, made: dict[str, Leaf], depth: int) -> None:
        """Leaves open what a statement sets that runs only if something holds."""
        inner: dict[str, Leaf] = {}
        for part in ("body", "orelse", "finalbody"):
            self._block(getattr(node, part, []), values, inner, depth)
        for name, leaf in inner.items():
            if name in made and made[name].value == leaf.value and leaf.why is None:
                continue
            why = said(
                "the statement on line {line} of {file} sets it, and is not run",
                line=node.lineno,
                file=self.file,
            )
            made[name] = Leaf(None, leaf.line, why=why)

    def _statement(self, node: ast.stmt, values: Values, made: dict[str, Leaf], depth: int) -> None:
        for each in ast.walk(node):
            self.num_read += 1
            if self.num_read > CONFIG_VALUES.most:
                raise too_many(self.file)
            if isinstance(each, ast.Call):
                self._call(each, values, made, depth)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr in self.table:
                    self._set(target.attr, node.value, values, made)
                elif isinstance(target, ast.Name):
                    values.names[target.id] = values.tree(node.value)

    def _call(self, node: ast.Call, values: Values, made: dict[str, Leaf], depth: int) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        # 'config = llama3_8b()' begins with what that function says, and goes on from there.
        if name in self.functions and depth < PYTHON_IMPORTS.most:
            given = {
                each.arg: leaf
                for each in node.keywords
                if each.arg and isinstance(leaf := values.tree(each.value), Leaf) and not leaf.why
            }
            made |= self.sizes(self.functions[name], given, depth + 1)
            return
        called = node.func.attr if isinstance(node.func, ast.Attribute) else name
        # torchtitan's registries name what they take over; functions called so are parts there.
        is_recipe = self.table is MEGATRON and FOREIGN.fullmatch(called)
        if (is_recipe and not called.startswith("default_")) or name in self.taken_over:
            self.foreign.append(
                said(
                    "line {line} of {file} takes over {name}, which stands in another module",
                    line=node.lineno,
                    file=self.file,
                    name=called,
                )
            )
        for each in node.keywords:
            if each.arg in self.table:
                self._set(str(each.arg), each.value, values, made)

    def _set(self, name: str, node: ast.expr, values: Values, made: dict[str, Leaf]) -> None:
        leaf = values.tree(node)
        if isinstance(leaf, list):
            leaf = Leaf(
                " ".join(str(each.value) for each in leaf if isinstance(each, Leaf)), node.lineno
            )
        if isinstance(leaf, Leaf):
            made[name] = leaf
