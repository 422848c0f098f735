"""Stands at a place in the text of a script: looks ahead, and skips what is in brackets."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import count

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.facts.words import Line
from serried.launch.shell.syntax import Text
from serried.limits import SCRIPT_WORDS


class Cursor:
    """Stands in ``text`` at ``at``; raises InputError for what opens and never closes.

    ``parts`` counts what was read so far, in the text around this one as well.
    """

    def __init__(self, text: Text, parts: Iterator[int] | None = None) -> None:
        self.source = text
        self.text = text.text
        self.at = 0
        self.parts = parts or count(1)

    def count(self) -> None:
        """Counts a word or a part of one; raises InputError when there are too many."""
        if next(self.parts) > SCRIPT_WORDS.most:
            problem = said(
                "it has more words and expansions than a launch script, {limit}",
                limit=SCRIPT_WORDS.most,
            )
            raise self.error(problem, self.line)

    def peek(self, text: str) -> bool:
        """Tells whether ``text`` stands next."""
        return self.text.startswith(text, self.at)

    @property
    def line(self) -> Line:
        """The line that comes next."""
        return self.source.line(self.at)

    def error(self, problem: Sentence, line: Line) -> InputError:
        """Returns the error that says ``problem`` of ``line``."""
        return InputError(
            "{file} line {line}: {problem}", file=line.file, line=line, problem=problem
        )

    def matched(self, pattern: re.Pattern[str]) -> str:
        """Returns what ``pattern`` finds next, or nothing."""
        found = pattern.match(self.text, self.at)
        return found[0] if found else ""

    def balanced(self, opening: int) -> str:
        """Skips ``( … )`` from ``opening`` on, quotes respected, and returns what is inside."""
        line = self.source.line(opening)
        depth, at = 0, opening
        while at < len(self.text):
            letter = self.text[at]
            if letter == "\\":
                at += 1
            elif letter == "'":
                at = self._closing("'", at)
            elif letter == '"':
                at = self._closing_double(at)
            elif letter == "#" and self.text[at - 1] in " \t\n":
                end = self.text.find("\n", at)
                at = end if end >= 0 else len(self.text)
            elif letter == "(":
                depth += 1
            elif letter == ")":
                depth -= 1
                if not depth:
                    self.at = at + 1
                    return self.text[opening + 1 : at].strip()
            at += 1
        raise self.error(said("a ( opens here and never closes; add the closing )"), line)

    def _closing(self, quote: str, opening: int) -> int:
        end = self.text.find(quote, opening + 1)
        if end < 0:
            raise self.error(never_closes(quote), self.source.line(opening))
        return end

    def _closing_double(self, opening: int) -> int:
        at = opening + 1
        while at < len(self.text) and self.text[at] != '"':
            if self.text.startswith("$(", at):
                here = self.at
                self.balanced(at + 1)
                at, self.at = self.at, here
                continue
            at += 2 if self.text[at] == "\\" else 1
        if at >= len(self.text):
            return self._closing('"', opening)
        return at


def part_of(source: Text, start: int, end: int) -> Text:
    """Returns the text from ``start`` to ``end`` with its lines."""
    inner = slice(bisect_right(source.starts, start), bisect_left(source.starts, end))
    starts = (0, *(offset - start for offset in source.starts[inner]))
    lines = (source.line(start), *source.lines[inner])
    vias = (source.via(start), *source.vias[inner])
    return Text(source.text[start:end], starts, lines, vias, source.held)


def never_closes(quote: str) -> Sentence:
    """Says of a quote that it has no end."""
    return said("a {quote} quote opens here and never closes; add the closing {quote}", quote=quote)
