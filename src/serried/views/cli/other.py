"""The second layout of ``--compare``: another launch file, or the same sizes elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from serried import frameworks
from serried.errors import InputError, listed
from serried.frameworks import FRAMEWORKS, Sizes
from serried.launch import read_path
from serried.mesh import Layout
from serried.views.cli.options import settings_of
from serried.views.job.job import OPTIONS, Asked
from serried.views.sentences import tell

NAMES_DP = {"accelerate": "dp_shard_size"}
"""Frameworks that must be told the data-parallel size, each with its setting for it."""


NAMES = {"world_size": "world_size"} | {
    option.lstrip("-").replace("-", "_"): name for name, option in OPTIONS.items()
}
"""Sizes as ``--compare-set`` takes them, called as their options are."""


def other_layout(asked: Asked, other: str) -> Layout:
    """Returns the layout of a file, or of the sizes asked for under another framework.

    Raises InputError for what is neither, and where that framework would refuse.
    """
    if other.partition("@")[0] in FRAMEWORKS:
        given, settings = _told(asked)
        sizes = _sizes_for(asked, other)
        options = {**sizes.options, **settings}
        return frameworks.layout(other, replace(sizes, **given, options=options))
    path = Path(other)
    if not path.exists():
        raise InputError(
            "--compare {other} is neither a file nor a framework; frameworks are {known}",
            other=other,
            known=listed(FRAMEWORKS, limit=len(FRAMEWORKS)),
        )
    config = read_path(path)
    given, settings = _told(asked)
    if config.world_size is None and "world_size" not in given:
        # A config that does not hold its world is compared on the world that was asked for.
        given["world_size"] = asked.sizes().world_size
    return frameworks.layout(config.framework_at, config.sizes(given, settings))


def _told(asked: Asked) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the sizes and the settings that ``--compare-set`` gives for the second layout."""
    given: dict[str, Any] = {}
    settings = settings_of(asked.options["compare_set"])
    for key in [key for key in settings if key in NAMES]:
        text = settings.pop(key)
        if key != "order" and not text.isdecimal():
            raise InputError(
                "{key}={value} is not a size; it is a whole number of at least {least}",
                key=key,
                value=text,
                least=1,
            )
        given[NAMES[key]] = text if key == "order" else int(text)
    return given, settings


def _sizes_for(asked: Asked, other: str) -> Sizes:
    """Returns the sizes as another framework takes them: without settings it does not have."""
    sizes = asked.sizes()
    if other.partition("@")[0] == asked.framework.partition("@")[0]:
        return sizes
    options: dict[str, str] = {}
    if other.partition("@")[0] in NAMES_DP:
        options = {NAMES_DP[other.partition("@")[0]]: str(asked.layout().sizes.get("dp", 1))}
    return replace(sizes, order=None, zero1=None, nettest=None, options=options)


def named(
    left: Layout, right: Layout, asked: Asked, other: str, lang: str = "en"
) -> tuple[str, str]:
    """Returns what to call two layouts in a sentence: by framework, version, or file."""
    if left.framework != right.framework:
        return left.framework, right.framework
    if left.version != right.version:
        return f"{left.framework} {left.version}", f"{right.framework} {right.version}"
    first = asked.config.file if asked.config else tell("the options", lang)
    second = " ".join([Path(other).name, *asked.options["compare_set"]])
    if first != second:
        return first, second
    return tell("the first", lang), tell("the second", lang)
