"""The second layout of ``--compare``: another launch file, or the same sizes elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import FRAMEWORKS, Sizes
from serried.frameworks.launch import read_path
from serried.mesh import Layout
from serried.views.cli.job import Asked

NAMES_DP = {"accelerate": "dp_shard_size"}
"""Frameworks that must be told the data-parallel size, each with its setting for it."""


def other_layout(asked: Asked, other: str) -> Layout:
    """Returns the layout of a file, or of the sizes asked for under another framework.

    Raises InputError for what is neither, and where that framework would refuse.
    """
    if other.partition("@")[0] in FRAMEWORKS:
        return frameworks.layout(other, _sizes_for(asked, other))
    path = Path(other)
    if not path.exists():
        raise InputError(
            "--compare {other} is neither a file nor a framework; frameworks are {known}",
            other=other,
            known=", ".join(FRAMEWORKS),
        )
    config = read_path(path)
    given = {}
    if config.world_size is None:
        # A config that does not hold its world is compared on the world that was asked for.
        given["world_size"] = asked.sizes().world_size
    return frameworks.layout(config.framework_at, config.sizes(given))


def _sizes_for(asked: Asked, other: str) -> Sizes:
    """Returns the sizes as another framework takes them: without settings it does not have."""
    sizes = asked.sizes()
    if other.partition("@")[0] == asked.framework.partition("@")[0]:
        return sizes
    options: dict[str, str] = {}
    if other.partition("@")[0] in NAMES_DP:
        options = {NAMES_DP[other.partition("@")[0]]: str(asked.layout().sizes.get("dp", 1))}
    return replace(sizes, order=None, zero1=None, nettest=None, options=options)


def named(left: Layout, right: Layout, asked: Asked, other: str) -> tuple[str, str]:
    """Returns what to call two layouts in a sentence: by framework, version, or file."""
    if left.framework != right.framework:
        return left.framework, right.framework
    if left.version != right.version:
        return f"{left.framework} {left.version}", f"{right.framework} {right.version}"
    first = asked.config.file if asked.config else "the options"
    second = Path(other).name
    return (first, second) if first != second else ("the first", "the second")
