"""What each framework shards under a ZeRO stage: a module of rules for each, loaded when asked.

``settled`` turns a stage into the framework's own settings and refuses one that it does not know;
``sharding`` says what the layout's ranks then share.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from serried.mesh import Layout
from serried.mesh.sizes import Sizes

if TYPE_CHECKING:
    from serried.mesh.sharding import Sharding

MODULES = {
    "megatron": "megatron",
    "deepspeed": "deepspeed",
    "accelerate": "torch",
    "fsdp": "torch",
    "torchtitan": "torch",
    "internlm": "internlm",
    "internevo": "internlm",
    "colossalai": "colossalai",
    "nanotron": "nanotron",
    "paddle": "paddle",
}
"""Frameworks that know ZeRO in some form, each with the module that holds its rules."""


class _Rules(Protocol):
    """Names what each module of rules has."""

    def settled(self, framework: str, version: str, sizes: Sizes) -> Sizes:
        """Returns the sizes with the settings that their stage asks for."""

    def sharding(self, layout: Layout) -> Sharding:
        """Returns what the ranks of a layout share."""


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns ``sizes`` with the settings that the framework asks for by their ZeRO stage.

    Raises InputError for a stage that the framework does not know, or not with these sizes.

    >>> settled("fsdp", "2.13.0", Sizes(8, zero=2)).options
    {'sharding_strategy': 'SHARD_GRAD_OP'}
    """
    if sizes.zero is None or framework not in MODULES:
        return sizes
    return _rules(framework).settled(framework, version, sizes)


def sharding(layout: Layout) -> Sharding | None:
    """Returns what the ranks of ``layout`` share; None where a program of the user's decides."""
    if layout.framework not in MODULES:
        return None
    return _rules(layout.framework).sharding(layout)


def _rules(framework: str) -> _Rules:
    rules: _Rules = import_module(f"{__name__}.{MODULES[framework]}")
    return rules
