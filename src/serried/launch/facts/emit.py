"""What a writer of launch files is handed, and the lines that several of them share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from serried.errors import InputError
from serried.launch.facts import mark
from serried.launch.facts.flags import Meanings
from serried.mesh import Layout, Placement
from serried.mesh.sizes import COUNTS, Sizes


@dataclass(frozen=True)
class LaunchJob:
    """Holds the job to be written: its layout, the sizes that made it, and its nodes."""

    layout: Layout
    sizes: Sizes
    placement: Placement

    @property
    def framework(self) -> str:
        """The framework that the file is for."""
        return self.layout.framework

    @property
    def version(self) -> str:
        """The version of that framework."""
        return self.layout.version

    @property
    def mark(self) -> str:
        """The comment that says what a format has no place for."""
        name = f"{self.framework}@{self.version}"
        return mark.line(name, self.sizes.world_size, self.placement.gpus_per_node)

    @property
    def ranks_per_node(self) -> int:
        """Ranks that a launcher starts on each node; raises InputError when nodes differ."""
        per_node = self.placement.ranks_per_node
        world = self.sizes.world_size
        if world <= per_node:
            return world
        if world % per_node:
            raise InputError(
                "{world} ranks do not fill nodes of {per_node}; a launcher starts the same number "
                "on each node: give --gpus-per-node that divides {world}",
                world=world,
                per_node=per_node,
            )
        return per_node

    @property
    def num_nodes(self) -> int:
        """Nodes that a launcher starts ranks on."""
        return self.sizes.world_size // self.ranks_per_node

    def width(self, kind: str) -> int:
        """Returns how many ranks a group of ``kind`` has, 1 where the layout makes no such kind."""
        if all(each.name != kind for each in self.layout.kinds):
            return 1
        return len(self.layout.groups(kind).lists()[0])

    def size(self, name: str) -> int | None:
        """Returns a size by its neutral name, or an option that is a number."""
        value = getattr(self.sizes, name, None) if name in COUNTS else None
        if value is None and name in self.sizes.options:
            text = self.sizes.options[name]
            return int(text) if text.lstrip("-").isdecimal() else None
        return value

    def is_on(self, name: str) -> bool | None:
        """Returns a switch among the options, or None when it is not set."""
        text = self.sizes.options.get(name)
        return None if text is None else text.lower() in ("true", "1")


ALWAYS = ("tp", "pp")
"""Sizes that are written even when they are one, as launch files do."""


def options(job: LaunchJob, meanings: Meanings, *, dashes: bool = True) -> list[str]:
    """Returns the sizes and settings of a job as command line options, one line each."""
    lines: list[str] = []
    written: set[str] = set()
    for key, meaning in meanings.items():
        name = meaning.name
        # Where two options mean one name, the first is written. Names with '_' are notes of a
        # reader, and no job holds them.
        if name.startswith("_") or name in written:
            continue
        words = _words(job, name, meaning.kind)
        if words is None:
            continue
        written.add(name)
        flag = key if dashes else key.replace("-", "_")
        lines.append(f"--{flag} {words}".rstrip())
    return lines


def settings(job: LaunchJob, meanings: Meanings) -> dict[str, object]:
    """Returns the sizes and settings of a job as keys of a config, switches as true."""
    made: dict[str, object] = {}
    for line in options(job, meanings, dashes=False):
        key, _, words = line.removeprefix("--").partition(" ")
        made[key] = words or True
    return made


def torchrun(job: LaunchJob, program: str, arguments: Iterable[str]) -> str:
    """Returns a script that has torchrun start ``program`` on each node."""
    words = [
        f"torchrun --nnodes {job.num_nodes} --nproc_per_node {job.ranks_per_node} {program}",
        *(f"    {each}" for each in arguments),
    ]
    return "\n".join(["#!/bin/bash", job.mark, ADD_THE_REST, " \\\n".join(words), ""])


ADD_THE_REST = "# Layout only: add the model, its data and its training options."


def _words(job: LaunchJob, name: str, kind: str) -> str | None:
    """Returns the value of an option as it is written, '' for a switch, None to leave it out."""
    if kind in ("yes", "no"):
        # An option that turns a setting off is written where the setting is off, and else left out.
        is_on = job.is_on(name)
        return "" if is_on is not None and is_on == (kind == "yes") else None
    if kind == "size":
        number = job.size(name)
        if number is None or (number == 1 and name not in ALWAYS and name in ("cp", "ep")):
            return None
        return str(number)
    return job.sizes.options.get(name)


def array(name: str, lines: Iterable[str]) -> list[str]:
    """Returns the lines of a shell array.

    >>> array("ARGS", ["--tp 2"])
    ['ARGS=(', '    --tp 2', ')']
    """
    return [f"{name}=(", *(f"    {line}" for line in lines), ")"]


def yaml_lines(tree: Mapping[str, object], depth: int = 0) -> list[str]:
    """Returns nested mappings of plain values as YAML.

    >>> yaml_lines({"parallelism": {"dp": 2, "flag": True}})
    ['parallelism:', '  dp: 2', '  flag: true']
    """
    lines: list[str] = []
    for key, value in tree.items():
        indent = "  " * depth
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}:", *yaml_lines(value, depth + 1)]
        else:
            shown = str(value).lower() if isinstance(value, bool) else value
            lines.append(f"{indent}{key}: {shown}")
    return lines
