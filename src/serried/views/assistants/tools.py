"""The tools that an assistant is offered: commands that only answer, their options as a schema.

A tool takes what the command's options and arguments take, under their own names, and answers with
the document that ``--format json`` prints. The schema is made of the command, so that none of it
is written twice.

    serried groups --world-size 16 --tp 2      groups {"world_size": 16, "tp": 2}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click

from serried.errors import InputError, listed
from serried.limits import ASSISTANT_CALL

OFFERED: Mapping[str, tuple[str, ...]] = {
    "groups": ("groups",),
    "schedule": ("schedule",),
    "collective": ("collective",),
    "plan": ("plan",),
    "search": ("search",),
    "trace_stats": ("trace", "stats"),
    "diagnose": ("diagnose",),
}
"""The path of the command behind each tool: those that read and answer, and start nothing."""

KEPT_BACK = frozenset(
    {
        *("help", "help_settings", "format", "output"),  # the answer is JSON
        *("explain", "emit", "advice", "sources"),  # other answers, in prose
        *("watch", "still", "every", "once", "try", "device"),  # they wait, or start ranks
        *("metrics", "export", "pid"),  # they go with watch
        *("trace", "calibrate"),  # they write files
    }
)
"""What no tool takes, by the names of the options."""


@dataclass(frozen=True)
class CommandTool:
    """Holds one command as a tool: its name, what it does, and what it may be given."""

    name: str
    path: tuple[str, ...]
    about: str
    parameters: tuple[click.Parameter, ...]

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of what the tool takes; unknown names are refused."""
        return {
            "type": "object",
            "properties": {key_of(each): _property(each) for each in self.parameters},
            "required": [key_of(each) for each in self.parameters if each.required],
            "additionalProperties": False,
        }

    def words(self, given: Mapping[str, Any]) -> list[str]:
        """Returns the words of the command line that says what ``given`` says.

        Raises InputError for a name that the tool does not take, for a value that no command line
        holds, and for an address: a tool reads files of this machine and asks no other.

        >>> from serried.views.cli.main import serried
        >>> tool_named("groups", serried).words({"world_size": 16, "tp": 2})
        ['groups', '--world-size', '16', '--tp', '2', '--format', 'json']
        """
        if (size := sum(map(_size, given.values()))) > ASSISTANT_CALL.most:
            raise InputError(
                "the call holds {bytes} bytes; an assistant may give at most {most}",
                bytes=f"{size:,}",
                most=f"{ASSISTANT_CALL.most:,}",
            )
        known = {key_of(each): each for each in self.parameters}
        options: list[str] = []
        arguments: list[str] = []
        for key, value in given.items():
            if key not in known:
                raise InputError(
                    "{tool} takes no '{key}'; nearest: {names}",
                    tool=self.name,
                    key=key[:40],
                    names=listed(get_close_matches(key, known) or known),
                )
            parameter = known[key]
            _refuse_unsayable(key, value, _is_many(parameter))
            if isinstance(parameter, click.Option):
                options += _option_words(parameter, value)
            else:
                arguments += _texts(value)
        # What follows "--" is a place, even where a file's name begins with a dash.
        places = ["--", *arguments] if arguments else []
        return [*self.path, *options, "--format", "json", *places]


def tools(root: click.Group) -> tuple[CommandTool, ...]:
    """Returns the tools made of the commands of ``root``, which is ``serried`` itself."""
    return tuple(tool_named(name, root) for name in OFFERED)


def tool_named(name: str, root: click.Group) -> CommandTool:
    """Returns one tool; raises InputError for a name that none has."""
    if name not in OFFERED:
        raise InputError(
            "there is no tool '{name}'; there are {names}", name=name[:40], names=listed(OFFERED)
        )
    command = _command(root, OFFERED[name])
    context = click.Context(command)
    taken = [each for each in command.get_params(context) if key_of(each) not in KEPT_BACK]
    about = (command.help or command.short_help or "").partition("\b")[0]
    return CommandTool(name, OFFERED[name], " ".join(about.split()), tuple(taken))


def key_of(parameter: click.Parameter) -> str:
    """Returns what a parameter is called in a call: its long option, with underscores."""
    if isinstance(parameter, click.Option):
        longest = max(parameter.opts, key=len)
        return longest.lstrip("-").replace("-", "_")
    return (parameter.name or "").lower()


def _command(root: click.Group, path: Sequence[str]) -> click.Command:
    """Returns the command at a path such as ("trace", "stats")."""
    found: click.Command = root
    for word in path:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return found


def _property(parameter: click.Parameter) -> dict[str, Any]:
    """Returns the schema of one parameter."""
    kind = _kind(parameter)
    made: dict[str, Any] = {"type": "array", "items": kind} if _is_many(parameter) else kind
    about = getattr(parameter, "help", None)
    return made | ({"description": about} if about else {})


def _is_many(parameter: click.Parameter) -> bool:
    return parameter.multiple or parameter.nargs == -1


def _kind(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type
    if getattr(parameter, "is_flag", False):
        return {"type": "boolean"}
    if isinstance(kind, click.Choice):
        return {"type": "string", "enum": [str(each) for each in kind.choices]}
    if kind.name in ("number", "integer", "integer range"):
        return {"type": "integer"}
    if kind.name == "float":
        return {"type": "number"}
    # Sizes such as 8192 or 15T are read as text; an assistant gives them as numbers too.
    return {"type": ["string", "number"]} if kind.name == "text" else {"type": "string"}


def _refuse_unsayable(key: str, value: Any, is_many: bool) -> None:
    """Raises InputError for what the words of a command line cannot hold, and for an address."""
    texts = _texts(value)
    if isinstance(value, dict) or (len(texts) > 1 and not is_many):
        raise InputError("{key} takes one value, not several", key=key)
    if any("\0" in text for text in texts):
        raise InputError("{key} holds a NUL character, which no name and no number has", key=key)
    if address := next((text for text in texts if "://" in text), None):
        raise InputError(
            "{key} is {address}; an assistant reads files of this machine only",
            key=key,
            address=address[:80],
        )


def _option_words(option: click.Option, value: Any) -> list[str]:
    """Returns the words of one option; a flag stands alone, or with its no, or not at all."""
    name = max(option.opts, key=len)
    if option.is_flag:
        off = list(option.secondary_opts[:1])
        return [name] if value is True else off if value is False else [name, *_texts(value)]
    return [f"{name}={text}" for text in _texts(value)] if _dashed(value) else _paired(name, value)


def _paired(name: str, value: Any) -> list[str]:
    return [word for text in _texts(value) for word in (name, text)]


def _dashed(value: Any) -> bool:
    """Says whether a value begins with a dash, which must not be taken for an option."""
    return any(text.startswith("-") for text in _texts(value))


def _size(value: Any) -> int:
    return sum(len(text.encode()) for text in _texts(value))


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    if value is None:
        return []
    return [str(value).lower() if isinstance(value, bool) else str(value)]
