"""The job that a command line asks for: its options, settings, launch file and hostfile, read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serried.errors import InputError
from serried.launch import read_path
from serried.launch.facts.facts import Facts
from serried.launch.facts.source import text_at
from serried.launch.formats import hostfile
from serried.views.cli.options import settings_of
from serried.views.job.job import Asked


def asked_of(file: Path | None, options: Mapping[str, Any]) -> Asked:
    """Reads the launch file and the hostfile; raises InputError for what cannot be read."""
    config = read_path(file) if file else None
    settings = settings_of(options["settings"])
    return Asked.of(config, options, settings=settings, hosts=_hosts(options))


def _hosts(options: Mapping[str, Any]) -> Facts:
    """Returns the ranks and GPUs per node that a hostfile leaves after its filters."""
    path, include, exclude = (options[name] for name in ("hostfile", "include", "exclude"))
    if path is None:
        if include or exclude:
            raise InputError("--include and --exclude filter a hostfile; give --hostfile too")
        return Facts("")
    facts = Facts(path.name)
    hosts = hostfile.read(text_at(path), path.name)
    hostfile.count(facts, hosts, include=include, exclude=exclude)
    return facts
