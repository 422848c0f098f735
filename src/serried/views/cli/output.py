"""Where a command's answer goes: the terminal, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.cells import cell_len

from serried.errors import InputError, listed
from serried.mesh import Groups
from serried.views.cli.language import current_language
from serried.views.sentences import tell
from serried.views.table import Table, folds

if TYPE_CHECKING:
    from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., object])

FORMATS = ("table", "json", "csv")
"""Forms that the groups of a layout have."""
TABLE_OR_JSON = ("table", "json")
"""Forms that most answers have."""
PATH = click.Path(path_type=Path)
_HEX = re.compile(r"#[0-9a-f]{6}")
_COLUMNS = re.compile(r"^.*\S\s{2,}(?=\S)")
"""All columns of a line but its last."""
_LEAST_ROOM = 20
"""Cells that a column has at least where it folds."""
NO_TERMINAL = 100
"""Columns of an answer that no terminal shows."""


@dataclass(frozen=True)
class OutputChoice:
    """Holds how an answer is given: its language, its form, and the file that it goes into."""

    lang: str
    form: str | None = None
    """None takes the form that the file's ending says, else a table."""
    path: Path | None = None
    """None prints it."""
    endings: tuple[str, ...] = FORMATS
    """Forms of the command that a file's ending can say."""

    @classmethod
    def of(cls, options: Mapping[str, Any], endings: tuple[str, ...] = FORMATS) -> OutputChoice:
        """Returns what ``--lang``, ``--format`` and ``--output`` say, of those the command has."""
        path = options.get("output")
        return cls(options["lang"], options["form"], path, endings)

    def form_among(self, forms: tuple[str, ...] = FORMATS) -> str:
        """Returns the form of the answer; raises InputError where it has no such form."""
        form = self.form or self._form_of_ending()
        if form not in forms:
            raise InputError(
                "this answer has no {form} form; it has {forms}", form=form, forms=listed(forms)
            )
        return form

    def _form_of_ending(self) -> str:
        if self.path is None:
            return "table"
        suffix = self.path.suffix.lower().lstrip(".")
        # A table has no suffix of its own; as a file it is plain text.
        known = {"txt": "table"} | {name: name for name in self.endings if name != "table"}
        if suffix not in known:
            raise InputError(
                "{path} has no suffix that says what to write; those that do: {suffixes}",
                path=self.path,
                suffixes=listed(f".{name}" for name in known),
            )
        return known[suffix]

    def show(self, *parts: str | Text | Table) -> None:
        """Prints lines and tables, or writes them as plain text."""
        self.write(rendered(*parts, plain=self.path is not None))

    def write(self, text: str | bytes) -> None:
        """Prints ``text``, or writes it whole or not at all."""
        write(text, self.path)


def output_option(command: Command) -> Command:
    """Adds ``--output``, the file for an answer whose ending says its form."""
    return click.option(
        "-o",
        "--output",
        type=PATH,
        help="Write the answer into this file; its ending says the form, such as .json.",
    )(command)


def form_option(forms: Sequence[str]) -> Callable[[Command], Command]:
    """Adds ``--format``, which goes before what the ending of ``--output`` says."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        help="Form of the answer; by default by the ending of --output, else a table.",
    )


def printed_form_option(command: Command) -> Command:
    """Adds ``--format`` to a command whose answer is always printed, as the argument ``form``."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(TABLE_OR_JSON),
        default="table",
        show_default=True,
        help="Form of the answer.",
    )(command)


def width() -> int:
    """Returns the terminal's width in columns, or what COLUMNS says; 100 where there is neither."""
    # shutil.get_terminal_size does the same, but its module loads all that packs archives.
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or NO_TERMINAL
    except (OSError, ValueError):
        return NO_TERMINAL


def rendered(*parts: str | Text | Table, plain: bool = False) -> str:
    """Returns lines and tables as text: with colours and bold for a terminal unless ``plain``.

    On a terminal nothing is wider than it, or it would break lines anywhere, within a number too:
    sentences fold at their words, and a table whose numbers do not fit goes on below.
    """
    is_shown = not plain and is_terminal()
    return "\n".join(chain.from_iterable(_lines(part, is_shown) for part in parts))


def _lines(part: str | Text | Table, is_shown: bool) -> Iterable[str]:
    if isinstance(part, Table):
        tables = part.blocks(width()) if is_shown else [part]
        parts = (table.lines(width(), bold=is_shown) for table in tables)
        return chain.from_iterable(["", *lines] if i else lines for i, lines in enumerate(parts))
    text = part if isinstance(part, str) else _coloured(part) if is_shown else part.plain
    lines = [line.rstrip() for line in text.split("\n")]
    if not is_shown or not isinstance(part, str):
        return lines
    return chain.from_iterable(map(_folded, lines))


def _folded(line: str) -> Iterator[str]:
    """Yields a line in lines that fit: its last column folds, and what stands before it stays."""
    columns = _COLUMNS.match(line)
    before = columns[0] if columns else line[: len(line) - len(line.lstrip())]
    room = width() - cell_len(before)
    if cell_len(line) <= width() or room < _LEAST_ROOM or "\033" in line:
        yield line
        return
    first, *others = folds(line[len(before) :], room)
    yield before + first
    yield from (" " * cell_len(before) + each for each in others)


def is_terminal() -> bool:
    """Tells whether what is printed goes to a terminal that knows bold and colours."""
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _coloured(text: Text) -> str:
    from rich.console import Console

    screen = Console(highlight=False, markup=False)
    if screen.color_system == "standard":
        text = _in_sixteen(text)
    with screen.capture() as shown:
        screen.print(text, soft_wrap=True)
    return shown.get().removesuffix("\n")


def _in_sixteen(text: Text) -> Text:
    """Returns a text whose kinds of work stay apart in 16 colours."""
    from serried.views.colours import ACTIONS, OF_SIXTEEN

    names = {ACTIONS[kind]: name for kind, name in OF_SIXTEEN.items()}
    shown = text.copy()
    shown.spans = [
        span._replace(style=_HEX.sub(lambda found: names.get(found[0], found[0]), str(span.style)))
        for span in text.spans
    ]
    return shown


def show(*parts: str | Text | Table) -> None:
    """Prints lines and tables."""
    write(rendered(*parts), None)


def as_json(document: Mapping[str, Any], *, depth: int = 2) -> str:
    """Returns a document as JSON, its outer ``depth`` levels of mappings one entry a line.

    >>> print(as_json({"schema": "x/1", "groups": {"tp": [[0, 1]]}}))
    {
      "schema": "x/1",
      "groups": {
        "tp": [[0, 1]]
      }
    }
    """
    return "".join(json_parts(document, depth=depth))


def json_parts(value: object, *, depth: int = 2, indent: str = "") -> Iterator[str]:
    """Yields what ``as_json`` returns in parts; groups of ranks are never text all at once."""
    import json

    from serried.views.layout import groups_json

    if isinstance(value, Groups):
        yield from groups_json.parts(value)
    elif not isinstance(value, Mapping) or not depth or not value:
        yield json.dumps(value, ensure_ascii=False)
    else:
        deeper = indent + "  "
        before = "{\n"
        for key, item in value.items():
            yield f"{before}{deeper}{json.dumps(key)}: "
            yield from json_parts(item, depth=depth - 1, indent=deeper)
            before = ",\n"
        yield f"\n{indent}}}"


def write(text: str | bytes, path: Path | None) -> None:
    """Prints ``text``, or writes it to ``path``, whole or not at all."""
    if isinstance(text, str):
        text = text.rstrip("\n") + "\n"
    write_parts([text], path)


def write_parts(parts: Iterable[str | bytes], path: Path | None) -> None:
    """Prints parts as they come, or writes them to ``path``, whole or not at all."""
    if path is None:
        for part in parts:
            click.echo(part, nl=False)
        return
    from serried.whole_file import whole_file

    with whole_file(path) as file:
        for part in parts:
            file.write(part.encode() if isinstance(part, str) else part)
    click.echo(tell("wrote {path}", current_language(), path=path), err=True)
