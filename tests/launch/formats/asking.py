"""What tests of launch formats ask of a file: its settled answer, its groups, its refusal."""

from __future__ import annotations

from typing import Any

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read
from serried.launch.request import LayoutRequest


def told(text: str, name: str = "x.yaml", **beside: str) -> LaunchConfig:
    """Returns what a text says, files beside it named ``base_yaml`` or ``conf__base_yaml``."""
    files = {key.replace("__", "/").replace("_", "."): text for key, text in beside.items()}
    return read(text, name=name, beside=files)


def settled(config: LaunchConfig) -> dict[str, Any]:
    """Returns every field and option that a file settles."""
    return {name: each.value for name, each in {**config.fields, **config.options}.items()}


def groups(config: LaunchConfig, world_size: int | None = None) -> dict[str, list[list[int]]]:
    """Returns the groups of every kind, for a world that the file may leave open."""
    given = {} if world_size is None else {"world_size": world_size}
    layout = LayoutRequest.of(given, config=config).layout()
    return {kind.name: layout.groups(kind.name).lists() for kind in layout.kinds}


def open_of(config: LaunchConfig) -> dict[str, str]:
    """Returns what a file leaves open, with the reasons."""
    return {each.name: str(each.because) for each in config.missing}


def refusal(config: LaunchConfig, world_size: int) -> str:
    """Returns the sentence that a world of some size is refused with."""
    with pytest.raises(InputError) as caught:
        groups(config, world_size)
    return str(caught.value)
