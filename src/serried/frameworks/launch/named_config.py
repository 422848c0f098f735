"""Config files that a command names: written by the script, given beside it, or missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from serried.finding import said
from serried.frameworks.launch import accelerate_config, yaml_text
from serried.frameworks.launch.config import Reading
from serried.frameworks.launch.flags import Flag, take
from serried.frameworks.launch.found import Facts
from serried.frameworks.launch.launchers import Launch
from serried.frameworks.launch.shell_files import ending
from serried.frameworks.launch.shell_values import Field, Piece, Value

FLAGS = (
    *("config", "config-file", "job.config-file", "deepspeed-config", "deepspeed", "ds-config"),
    *("yaml-cfg", "config-yaml", "config-name"),
)
"""Options that name a config file."""

FILE = re.compile(r"\.(py|ya?ml|json|toml)$")
ReadOther = Callable[[str, str], "Reading | None"]
"""Reads a config file that a script names: text and name in, what it says out."""


@dataclass(frozen=True)
class Shelf:
    """Holds the files that a command may mean, and how a config among them is read."""

    written: Mapping[str, Value]
    beside: Mapping[str, str]
    read: ReadOther

    def text(self, path: str) -> str | None:
        """Returns the text of the file a path means; ``null`` stands for what is not known."""
        short = PurePosixPath(path).name
        for name, value in self.written.items():
            if PurePosixPath(name).name == short:
                pieces = (each.text if isinstance(each, Piece) else "null" for each in value)
                return "".join(pieces)
        return next(
            (text for name, text in self.beside.items() if PurePosixPath(name).name == short), None
        )


def readings(launch: Launch, flags: Sequence[Flag], shelf: Shelf) -> list[Reading]:
    """Returns what the config files that a command names say, missing ones included."""
    named = [(flag.name, flag.values[0]) for flag in flags if flag.values and flag.name in FLAGS]
    named += [("", each) for each in launch.arguments[:2] if FILE.search(each.text or "")]
    found: list[Reading] = []
    for flag, word in named:
        name = ending(word) + (".yaml" if flag == "config-name" else "")
        if not FILE.search(name):
            continue
        text = shelf.text(name)
        if text is None:
            found.append(_not_given(name, word, launch, flag))
        elif other := shelf.read(text, PurePosixPath(name).name):
            found.append(other)
    return found


def accelerate(launch: Launch, flags: Sequence[Flag], shelf: Shelf) -> Reading:
    """Returns what ``accelerate launch`` says: its options, then the config it names."""
    facts = Facts(launch.run.line.file)
    take(facts, flags, accelerate_config.FLAGS)
    for flag in flags:
        if kind := accelerate_config.KINDS.get(flag.name):
            facts.add("_type", kind, flag.word.line.number, flag.key)
    for flag in flags:
        if flag.name == "config-file" and flag.values:
            name = ending(flag.values[0])
            text = shelf.text(name)
            keys = yaml_text.read(text, PurePosixPath(name).name) if text is not None else None
            if keys is None:
                missing = _not_given(name, flag.values[0], launch, flag.name)
                facts.join(missing.facts)
                return Reading(missing.format, facts)
            facts.give_way(accelerate_config.facts_of(keys))
    return accelerate_config.settle(facts, launch.format)


def _not_given(name: str, word: Field, launch: Launch, flag: str) -> Reading:
    """Returns a reading that says which config file is missing, and asks what it would tell."""
    facts = Facts(word.line.file)
    facts.note(
        said(
            "{file} line {line} names {config}, which is not given beside it; "
            "what it says is not known",
            file=facts.file,
            line=word.line,
            config=name,
        )
    )
    if "deepspeed" in flag or (launch.launcher == "deepspeed" and name.endswith(".json")):
        return Reading(launch.format, facts, "deepspeed")
    if name.endswith(".py") or launch.launcher == "accelerate":
        why = said(
            "line {line} names {config}, which is not given beside it", line=word.line, config=name
        )
        facts.lack("framework", why)
    return Reading(launch.format, facts)
