"""The job that a command line asks for: its options, settings, launch file and hostfile, read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.mesh.sizes import TABLE, read_settings

if TYPE_CHECKING:
    from serried.launch.facts.config import LaunchConfig
    from serried.launch.facts.found import Facts


def request_of(file: Path | None, options: Mapping[str, Any]) -> LayoutRequest:
    """Returns what options ask for with the launch file and the hostfile; of several worlds, one.

    Raises InputError for what cannot be read.
    """
    worlds = options["world_size"]
    sizes = {name: options[name] for name in TABLE} | {"world_size": worlds and worlds[0]}
    return LayoutRequest.of(
        sizes,
        framework=options["framework"],
        settings=read_settings(options["settings"]),
        config=_read(file) if file else None,
        hosts=_hosts(options),
    )


def _read(file: Path) -> LaunchConfig:
    from serried.launch.read import read_path

    return read_path(file)


def _hosts(options: Mapping[str, Any]) -> Facts | None:
    """Returns the ranks and GPUs per node that a hostfile leaves after its filters."""
    path, include, exclude = (options[name] for name in ("hostfile", "include", "exclude"))
    if path is None:
        if include or exclude:
            raise InputError("--include and --exclude filter a hostfile; give --hostfile too")
        return None
    from serried.launch.facts.found import Facts
    from serried.launch.facts.source import text_at
    from serried.launch.formats import hostfile

    facts = Facts(path.name)
    hosts = hostfile.read(text_at(path), path.name)
    hostfile.count(facts, hosts, include=include, exclude=exclude)
    return facts
