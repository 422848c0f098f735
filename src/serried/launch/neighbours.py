"""Files that stand near a launch config and are none: which file to give instead."""

from __future__ import annotations

from serried.errors import InputError
from serried.launch.facts.keys import Keys


def refuse_python(file: str) -> None:
    """Raises InputError for a Python program, which the command that starts it goes with."""
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
