"""Reads words of a shell script: quotes, escapes, and the kinds of ``$``."""

from __future__ import annotations

import re
from collections.abc import Callable

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.frameworks.launch.shell_syntax import (
    HELD,
    Arithmetic,
    HeldPart,
    Literal,
    Parameter,
    Part,
    Substitution,
    Text,
    Word,
)
from serried.frameworks.launch.shell_values import Line

BLANKS = " \t"
BREAKS = frozenset(" \t\n;&|<>()")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DIGITS = re.compile(r"\d+")
SPECIAL = frozenset("@*#?$!-0123456789")
OPERATOR = re.compile(r":[-=?+]|##|%%|//|\^\^|,,|[-=?+#%/:^,@]")


class Words:
    """Reads words from ``text`` at ``at``; raises InputError for a quote that never ends."""

    def __init__(self, text: Text) -> None:
        self.source = text
        self.text = text.text
        self.at = 0

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

    # ------------------------------------------------------------------- words

    def word(self) -> Word:
        """Reads one word, up to a blank or an operator."""
        return self._until(lambda: self.text[self.at] in BREAKS)

    def all(self) -> Word:
        """Reads the whole text as the inside of double quotes."""
        return self._until(lambda: False, quoted=True)

    def plain(self) -> Word:
        """Reads the whole text as it stands, as the shell reads below ``<<'EOF'``."""
        return self._lines(0, len(self.text))

    def _until(self, ends: Callable[[], bool], *, quoted: bool = False) -> Word:
        parts: list[Part] = []
        while self.at < len(self.text) and not ends():
            parts += self._part(quoted)
        return tuple(parts)

    def _part(self, quoted: bool) -> list[Part]:
        letter = self.text[self.at]
        if letter == "\\":
            return self._escape(quoted)
        if letter == "'" and not quoted:
            return self._single()
        if letter == '"' and not quoted:
            return self._double()
        if letter == "$":
            return self._dollar(quoted)
        if letter == "`":
            return [self._backtick(quoted)]
        held = ord(letter) - HELD
        if 0 <= held < len(self.source.held):
            self.at += 1
            return [HeldPart(self.source.held[held], quoted)]
        return [self._plain(quoted)]

    def _plain(self, quoted: bool) -> Literal:
        """Reads letters up to the next one that means something, within one line."""
        start = self.at
        stops = '\\$`"' if quoted else "\\$`'\""
        limit = len(self.text)
        line = self.source.line(start)
        self.at += 1
        while self.at < limit and self.text[self.at - 1] != "\n":
            letter = self.text[self.at]
            if letter in stops:
                break
            if not quoted and letter in BREAKS:
                break
            if HELD <= ord(letter) < HELD + len(self.source.held):
                break
            if self.source.line(self.at) != line or letter in "}])":
                break
            self.at += 1
        text = self.text[start : self.at]
        return Literal(text, line, quoted, self.source.via(start))

    def _escape(self, quoted: bool) -> list[Part]:
        line = self.line
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following == "\n":
            return []
        if quoted and following not in tuple('"\\$`'):
            return [Literal("\\" + following, line, True)]
        return [Literal(following, line, True)]

    def _single(self) -> list[Part]:
        line = self.line
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise self.error(_never_closes("'"), line)
        start, self.at = self.at + 1, end + 1
        return list(self._lines(start, end))

    def _lines(self, start: int, end: int) -> tuple[Literal, ...]:
        """Returns the text from ``start`` to ``end`` as quoted literals, one a line."""
        parts: list[Literal] = []
        while start < end:
            newline = self.text.find("\n", start, end)
            stop = end if newline < 0 else newline + 1
            text = self.text[start:stop]
            parts.append(Literal(text, self.source.line(start), True, self.source.via(start)))
            start = stop
        return tuple(parts) or (Literal("", self.line, True),)

    def _double(self) -> list[Part]:
        line = self.line
        self.at += 1
        parts = list(self._until(lambda: self.text[self.at] == '"', quoted=True))
        if self.at >= len(self.text):
            raise self.error(_never_closes('"'), line)
        self.at += 1
        return parts or [Literal("", line, True)]

    # ------------------------------------------------------------------- expansions

    def _dollar(self, quoted: bool) -> list[Part]:
        start, line = self.at, self.line
        if self.peek("$((") and (inner := self.balanced_arithmetic()) is not None:
            return [Arithmetic(inner, line, quoted, self.text[start : self.at])]
        if self.peek("$("):
            command = self.balanced(self.at + 1)
            return [Substitution(command, line, quoted)]
        if self.peek("${"):
            return [self._braced(quoted)]
        if self.peek("$'") and not quoted:
            self.at += 1
            return self._single()
        if self.peek('$"') and not quoted:
            self.at += 1
            return self._double()
        self.at += 1
        found = NAME.match(self.text, self.at)
        name = found[0] if found else self.text[self.at : self.at + 1]
        if not found and name not in SPECIAL:
            return [Literal("$", line, quoted)]
        if not name:
            return [Literal("$", line, quoted)]
        self.at += len(name)
        return [Parameter(name, line, quoted, self.text[start : self.at])]

    def _braced(self, quoted: bool) -> Parameter:
        start, line = self.at, self.line
        self.at += 2
        is_length = self.peek("#") and not self.peek("#}")
        if is_length or self.peek("!"):
            is_indirect = not is_length
            self.at += 1
        else:
            is_indirect = False
        found = NAME.match(self.text, self.at)
        name = found[0] if found else self._special_name()
        self.at += len(name)
        index = self._index()
        operator = self._matched(OPERATOR)
        self.at += len(operator)
        argument = self._argument_of_braces(quoted)
        if self.at >= len(self.text):
            problem = said("a ${{ opens here and never closes; add the closing }}")
            raise self.error(problem, line)
        self.at += 1
        source = self.text[start : self.at]
        if is_indirect:
            operator, argument = "!", ()
        return Parameter(name, line, quoted, source, operator, argument, index, is_length)

    def _special_name(self) -> str:
        """Returns the digits, or the one letter, that name an argument of the script."""
        return self._matched(DIGITS) or self.text[self.at : self.at + 1]

    def _matched(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        return found[0] if found else ""

    def _argument_of_braces(self, quoted: bool) -> Word:
        """Reads up to ``}``; double quotes inside count as quotes even within quotes."""
        parts: list[Part] = []
        while self.at < len(self.text) and not self.peek("}"):
            parts += self._double() if self.peek('"') else self._part(quoted)
        return tuple(parts)

    def _index(self) -> str:
        if not self.peek("["):
            return ""
        end = self.text.find("]", self.at)
        if end < 0:
            problem = said("a [ opens here and never closes; add the closing ]")
            raise self.error(problem, self.line)
        index = self.text[self.at + 1 : end]
        self.at = end + 1
        return index

    def _backtick(self, quoted: bool) -> Substitution:
        line = self.line
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise self.error(_never_closes("`"), line)
        command = self.text[self.at + 1 : end]
        self.at = end + 1
        return Substitution(command, line, quoted)

    def balanced_arithmetic(self) -> Word | None:
        """Reads ``$((…))`` or ``((…))``; None, reading nothing, when it is no arithmetic."""
        start = self.at
        opening = self.text.index("((", start) + 2
        depth, at = 0, opening
        while at < len(self.text):
            letter = self.text[at]
            if letter == "(":
                depth += 1
            elif letter == ")":
                if not depth:
                    break
                depth -= 1
            at += 1
        if self.text[at : at + 2] != "))":
            return None
        inner = Words(part_of(self.source, opening, at)).all()
        self.at = at + 2
        return inner

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
                at = self.text.find("\n", at) if "\n" in self.text[at:] else len(self.text)
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
            raise self.error(_never_closes(quote), self.source.line(opening))
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
    starts, lines, vias = [0], [source.line(start)], [source.via(start)]
    for offset, line, via in zip(source.starts, source.lines, source.vias, strict=True):
        if start < offset < end:
            starts.append(offset - start)
            lines.append(line)
            vias.append(via)
    return Text(source.text[start:end], tuple(starts), tuple(lines), tuple(vias), source.held)


def _never_closes(quote: str) -> Sentence:
    return said("a {quote} quote opens here and never closes; add the closing {quote}", quote=quote)
