"""The parts of a shell script as read: words with their expansions, and commands.

Most are named tuples: a launch file of any form waits until all these kinds are defined, and a
dataclass takes ten times as long.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from serried.launch.facts.words import Choice, Line, Piece, Unknown, Value

NEWLINE = re.compile("\n")
HELD = 0xE000
"""First code point that stands, in text made by a script, for a piece that is not known."""
HELD_LETTERS = 6400
"""How many of them there are, up to U+F8FF; a text with more such pieces is no command."""


@dataclass(frozen=True)
class Text:
    """Holds script text, the line of the file that each part of it stands on, and what is held.

    Text made by the script itself (``eval "$CMD"``) keeps the lines its parts came from;
    pieces of it that are not known stand as single letters from ``HELD`` on.
    """

    text: str
    starts: tuple[int, ...]
    lines: tuple[Line, ...]
    vias: tuple[str, ...]
    held: tuple[Unknown | Choice, ...] = ()

    @classmethod
    def of(cls, text: str, file: str, first: int = 1) -> Text:
        """Wraps the text of ``file``, counting lines from ``first``."""
        starts = (0, *(found.end() for found in NEWLINE.finditer(text)))
        lines = tuple(Line(file, first + i) for i in range(len(starts)))
        return cls(text, starts, lines, ("",) * len(starts))

    @classmethod
    def made(cls, value: Value, line: Line) -> Text:
        """Wraps the value of an expansion on ``line`` as text to be read as a script."""
        parts, starts, lines, vias = [""], [0], [line], [""]
        held: list[Unknown | Choice] = []
        for piece in value:
            starts.append(starts[-1] + len(parts[-1]))
            lines.append(piece.line)
            if isinstance(piece, Piece):
                vias.append(piece.via)
                parts.append(piece.text)
            else:
                vias.append("")
                parts.append(chr(HELD + len(held) % HELD_LETTERS))
                held.append(piece)
        return cls("".join(parts), tuple(starts), tuple(lines), tuple(vias), tuple(held))

    @cached_property
    def _turns(self) -> list[int]:
        """The starts at which another line begins than the one before."""
        pairs = zip(self.starts[1:], pairwise(self.lines), strict=True)
        return [start for start, (before, after) in pairs if before != after]

    def line_end(self, position: int) -> int:
        """Returns where the text goes over to another line than that of ``position``."""
        at = bisect_right(self._turns, position)
        return self._turns[at] if at < len(self._turns) else len(self.text)

    def part(self, start: int, end: int) -> Text:
        """Returns the text from ``start`` to ``end`` with its lines."""
        # The part may begin within a line, so that line comes first, then those that begin inside.
        inner = slice(bisect_right(self.starts, start), bisect_left(self.starts, end))
        starts = (0, *(offset - start for offset in self.starts[inner]))
        lines = (self.line(start), *self.lines[inner])
        vias = (self.via(start), *self.vias[inner])
        return Text(self.text[start:end], starts, lines, vias, self.held)

    def line(self, position: int) -> Line:
        """Returns the line of the file that the letter at ``position`` came from."""
        return self.lines[bisect_right(self.starts, position) - 1]

    def via(self, position: int) -> str:
        """Returns the variable that the letter at ``position`` came through, if any."""
        return self.vias[bisect_right(self.starts, position) - 1]


class Literal(NamedTuple):
    """Holds text as it stands; ``quoted`` text is never split into words."""

    text: str
    line: Line
    quoted: bool = False
    via: str = ""


@dataclass(frozen=True)
class Parameter:
    """Holds ``$NAME`` or ``${NAME…}`` with its operator and argument, such as ``:-`` and ``8``."""

    name: str
    line: Line
    quoted: bool
    source: str
    operator: str = ""
    argument: Word = ()
    index: str = ""
    is_length: bool = False


class Substitution(NamedTuple):
    """Holds ``$(command)``, a backtick or ``<(command)``: reported, never run."""

    command: str
    line: Line
    quoted: bool = False


class Arithmetic(NamedTuple):
    """Holds ``$((expression))``."""

    expression: Word
    line: Line
    quoted: bool
    source: str


class HeldPart(NamedTuple):
    """Holds a piece that was not known where this text was made."""

    piece: Unknown | Choice
    quoted: bool = False


Part = Literal | Parameter | Substitution | Arithmetic | HeldPart
Word = tuple[Part, ...]


@dataclass(frozen=True)
class Assign:
    """Holds ``NAME=value``, ``NAME+=value``, ``NAME[i]=value`` or ``NAME=(values)``."""

    name: str
    line: Line
    value: Word = ()
    elements: tuple[Word, ...] | None = None
    index: str = ""
    appends: bool = False


@dataclass
class Heredoc:
    """Holds the text below ``<<EOF``; it is read when the line that opens it ends."""

    delimiter: str
    is_plain: bool
    strips_tabs: bool
    line: Line
    body: Word = ()


class Redirect(NamedTuple):
    """Holds ``> file`` and its kin; a heredoc has no target."""

    operator: str
    target: Word
    heredoc: Heredoc | None = None


class Simple(NamedTuple):
    """Holds a plain command: assignments before it, its words, and where its output goes."""

    assigns: tuple[Assign, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    line: Line


class If(NamedTuple):
    """Holds ``if`` with its ``elif`` branches and ``else``."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script
    line: Line


class Loop(NamedTuple):
    """Holds ``for``, ``while``, ``until`` or ``select``; C-style ``for`` has no ``words``."""

    kind: str
    line: Line
    body: Script
    variable: str = ""
    words: tuple[Word, ...] | None = None
    condition: Script = ()


class Case(NamedTuple):
    """Holds ``case WORD in pattern) … esac``."""

    word: Word
    arms: tuple[tuple[tuple[Word, ...], Script], ...]
    line: Line


class Function(NamedTuple):
    """Holds the definition of a function."""

    name: str
    body: Command
    line: Line


class Group(NamedTuple):
    """Holds ``{ …; }`` or ``( … )``; assignments in the latter do not outlive it."""

    body: Script
    is_subshell: bool
    redirects: tuple[Redirect, ...]
    line: Line


class Condition(NamedTuple):
    """Holds the words of ``[[ … ]]`` in order."""

    words: tuple[Word, ...]
    line: Line


class ArithmeticCommand(NamedTuple):
    """Holds ``(( … ))``."""

    expression: Word
    line: Line


Command = Simple | If | Loop | Case | Function | Group | Condition | ArithmeticCommand


class Pipeline(NamedTuple):
    """Holds commands joined by ``|``; ``!`` before them turns the outcome round."""

    commands: tuple[Command, ...]
    is_negated: bool


class AndOr(NamedTuple):
    """Holds pipelines joined by ``&&`` and ``||``; the first operator is empty."""

    parts: tuple[tuple[str, Pipeline], ...]


Script = tuple[AndOr, ...]


def assigned(script: Script) -> set[str]:
    """Returns the names that plain assignments in a script, and in its blocks, may set."""
    plain = (command for command in inside(script) if isinstance(command, Simple))
    return {each.name for command in plain for each in command.assigns}


def inside(script: Script) -> Iterator[Command]:
    """Yields the commands of a script and, after each that holds others, those."""
    for item in script:
        for _, pipeline in item.parts:
            for command in pipeline.commands:
                yield command
                for body in _bodies(command):
                    yield from inside(body)


def _bodies(command: Command) -> tuple[Script, ...]:
    """Returns the scripts that a command holds."""
    if isinstance(command, If):
        return (*(body for _, body in command.branches), command.otherwise)
    if isinstance(command, Loop | Group):
        return (command.body,)
    return tuple(body for _, body in command.arms) if isinstance(command, Case) else ()
