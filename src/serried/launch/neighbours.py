"""Files that stand near a launch config and are none: which file to give instead."""

from __future__ import annotations

import re

from serried.errors import InputError
from serried.launch.facts.keys import Keys

REGISTRY = re.compile(r"(?m)^def (\w+)\(\)\s*->\s*(?:\w+\.)*Trainer\.Config\s*:")
"""A config of torchtitan 0.3, which is a function of a Python module."""


def refuse_python(text: str, file: str) -> None:
    """Raises InputError for a Python program, which the command that starts it goes with."""
    found = REGISTRY.search(text)
    if found:
        raise InputError(
            "{file} is a Python registry of torchtitan, which serried does not run; give its "
            "command line, or the sizes as options: --framework torchtitan --tp 8",
            file=file,
        )
    raise InputError(
        "{file} is a Python program, which serried does not run; give the command or script "
        "that starts it",
        file=file,
    )


def refuse_yaml(keys: Keys, file: str) -> None:
    """Raises InputError for YAML that wraps a command, or only names another config."""
    kind = keys.value("kind")
    if "apiVersion" in keys and isinstance(kind, str):
        raise InputError(
            "{file} is a Kubernetes {kind}; give the command or script that its containers run",
            file=file,
            kind=kind,
        )
    named = keys.value("deepspeed")
    if isinstance(named, str) and named.endswith(".json"):
        raise InputError(
            "{file} holds arguments of a trainer, and names {config} for DeepSpeed; give that "
            "file, with the ranks as an option: --world-size 8",
            file=file,
            config=named,
        )
