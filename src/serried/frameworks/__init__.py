"""One file per framework: its meshes, orders, group kinds and validity rules, as a table."""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.accelerate import ACCELERATE
from serried.frameworks.colossalai import COLOSSALAI
from serried.frameworks.custom import CUSTOM
from serried.frameworks.deepspeed import DEEPSPEED
from serried.frameworks.devicemesh import DEVICEMESH
from serried.frameworks.framework import Framework
from serried.frameworks.fsdp import FSDP
from serried.frameworks.internevo import INTERNEVO
from serried.frameworks.internlm import INTERNLM
from serried.frameworks.megatron import MEGATRON
from serried.frameworks.nanotron import NANOTRON
from serried.frameworks.paddle import PADDLE
from serried.frameworks.torchtitan import TORCHTITAN
from serried.mesh import Layout
from serried.mesh.sizes import Sizes

FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    for framework in (
        *(MEGATRON, INTERNLM, INTERNEVO, DEEPSPEED, TORCHTITAN, DEVICEMESH, ACCELERATE, FSDP),
        *(COLOSSALAI, NANOTRON, PADDLE, CUSTOM),
    )
}
"""Every framework serried knows, by the name the command line takes."""

__all__ = ["FRAMEWORKS", "Framework", "Sizes", "find", "layout"]


def find(name: str) -> Framework:
    """Returns the framework called ``NAME`` or ``NAME@VERSION``; raises InputError otherwise."""
    bare, _, version = name.partition("@")
    if bare not in FRAMEWORKS:
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
    return find(name).layout(sizes)
