"""One file per framework: its meshes, orders, group kinds and validity rules, as a table.

A table is loaded when its framework is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module

from serried.errors import InputError, listed, nearest
from serried.frameworks import sharding
from serried.frameworks.framework import Framework
from serried.mesh import Layout
from serried.mesh.sizes import Sizes

NAMES = (
    *("megatron", "internlm", "internevo", "deepspeed", "torchtitan", "devicemesh", "accelerate"),
    *("fsdp", "colossalai", "nanotron", "paddle", "custom"),
)
"""Every framework serried knows, by the name the command line takes."""


class _Frameworks(Mapping[str, Framework]):
    """Holds every framework by its name, each loaded from the module that is called so."""

    def __getitem__(self, name: str) -> Framework:
        if name not in NAMES:
            raise KeyError(name)
        return _loaded(name)

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@cache
def _loaded(name: str) -> Framework:
    module = import_module(f"serried.frameworks.{name}")
    framework: Framework = getattr(module, name.upper())
    return framework


FRAMEWORKS: Mapping[str, Framework] = _Frameworks()

__all__ = ["FRAMEWORKS", "NAMES", "Framework", "Sizes", "find", "layout"]


def find(name: str) -> Framework:
    """Returns the framework called ``NAME`` or ``NAME@VERSION``; raises InputError otherwise."""
    bare, _, version = name.partition("@")
    if bare not in FRAMEWORKS:
        if near := nearest(bare, FRAMEWORKS):
            raise InputError(
                "framework '{name}' is not known; those that are: {known}; did you mean {near}?",
                name=bare[:40],
                known=listed(FRAMEWORKS, limit=40),
                near=near,
            )
        raise InputError(
            "framework '{name}' is not known; those that are: {known}",
            name=bare,
            known=listed(FRAMEWORKS, limit=40),
        )
    found = FRAMEWORKS[bare]
    return found.at(version) if version else found


def layout(name: str, sizes: Sizes) -> Layout:
    """Returns the layout that framework ``name`` makes from ``sizes``.

    >>> layout("megatron", Sizes(16, tp=2, pp=4)).groups("dp").lists()[:2]
    [[0, 2], [1, 3]]
    >>> layout("internlm", Sizes(16, tp=2, pp=4)).groups("data").lists()[:2]
    [[0, 8], [1, 9]]
    """
    framework = find(name)
    made = framework.layout(sharding.settled(framework.name, framework.version, sizes))
    return replace(made, sharding_of=sharding.sharding)
