"""Reads a shell script line by line: blanks, comments, heredocs, and plain commands."""

from __future__ import annotations

import re

from serried.finding import said
from serried.launch.shell.cursor import part_of
from serried.launch.shell.syntax import (
    Assign,
    Heredoc,
    Literal,
    Redirect,
    Simple,
    Substitution,
    Text,
    Word,
)
from serried.launch.shell.words import BLANKS, Words

ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]*)\])?(\+?)=")
REDIRECT = re.compile(r"(?:\d+|\{\w+\})?(&>>|&>|<<<|<<-|<<|<>|>>|>\||>&|<&|>|<)")
DECLARES = frozenset(["export", "declare", "local", "readonly", "typeset"])


class Lines(Words):
    """Reads plain commands one after the other; heredocs are read when their line ends."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self._pending: list[Heredoc] = []

    def rest(self) -> str:
        """Returns the beginning of what comes next, for an error."""
        return self.text[self.at : self.at + 20].split("\n")[0].strip()

    # ------------------------------------------------------------------- blanks

    def skip_blanks(self) -> None:
        """Skips blanks, continued lines and a comment."""
        while self.at < len(self.text):
            if self.text[self.at] in BLANKS:
                self.at += 1
            elif self.peek("\\\n"):
                self.at += 2
            elif self.peek("#") and (self.at == 0 or self.text[self.at - 1] in " \t\n;&|()"):
                newline = self.text.find("\n", self.at)
                self.at = len(self.text) if newline < 0 else newline
            else:
                return

    def skip_lines(self) -> None:
        """Skips blanks, comments, line ends and the heredocs that begin after them."""
        while True:
            self.skip_blanks()
            if not self.peek("\n"):
                return
            self._line_end()

    def _line_end(self) -> None:
        self.at += 1
        for heredoc in self._pending:
            start = self.at
            end, self.at = self._heredoc_end(heredoc)
            part = part_of(self.source, start, end)
            if heredoc.strips_tabs:
                first = self.source.line(start)
                untabbed = re.sub(r"(?m)^\t+", "", part.text)
                part = Text.of(untabbed, first.file, first.number)
            reader = Words(part, 0, self.parts)
            heredoc.body = reader.plain() if heredoc.is_plain else reader.all()
        self._pending = []

    def _heredoc_end(self, heredoc: Heredoc) -> tuple[int, int]:
        at = self.at
        while at < len(self.text):
            newline = self.text.find("\n", at)
            stop = len(self.text) if newline < 0 else newline
            row = self.text[at:stop]
            if (row.lstrip("\t") if heredoc.strips_tabs else row) == heredoc.delimiter:
                return at, min(stop + 1, len(self.text))
            at = stop + 1
        problem = said(
            "a heredoc opens here and never closes; add a line that holds only {delimiter}",
            delimiter=heredoc.delimiter,
        )
        raise self.error(problem, heredoc.line)

    def words_to_line_end(self) -> list[Word]:
        """Reads words up to the line's end or an operator."""
        words: list[Word] = []
        while True:
            self.skip_blanks()
            if self.at >= len(self.text) or self.text[self.at] in "\n;&|)":
                return words
            words.append(self.word() or self.odd_letter())

    def odd_letter(self) -> Word:
        """Reads a letter that begins no word, such as a lone '<', so that reading goes on."""
        letter = Literal(self.text[self.at], self.line)
        self.at += 1
        return (letter,)

    # ------------------------------------------------------------------- simple commands

    def simple(self) -> Simple:
        """Reads a plain command: assignments, words and redirections up to the line's end."""
        line, start = self.line, self.at
        assigns: list[Assign] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self.skip_blanks()
            if self.at >= len(self.text) or self.text[self.at] in "\n;|)":
                break
            if self.peek("&") and not self.peek("&>"):
                break
            found = REDIRECT.match(self.text, self.at)
            if found and not self._is_substitution():
                redirects.append(self._redirect(found))
                continue
            is_declare = bool(words) and _literal(words[0]) in DECLARES
            assign = ASSIGN.match(self.text, self.at)
            if assign and (not words or is_declare):
                assigns.append(self._assign(assign))
                continue
            words.append(self._argument())
        if self.at == start:
            problem = said("'{word}' stands where a command should", word=self.rest())
            raise self.error(problem, line)
        return Simple(tuple(assigns), tuple(words), tuple(redirects), line)

    def _argument(self) -> Word:
        if self._is_substitution():
            line = self.line
            self.at += 1
            return (Substitution(self.balanced(self.at), line),)
        return self.word() or self.odd_letter()

    def _is_substitution(self) -> bool:
        return self.peek("<(") or self.peek(">(")

    def redirects(self) -> tuple[Redirect, ...]:
        """Reads the redirections after a block."""
        redirects: list[Redirect] = []
        while True:
            self.skip_blanks()
            found = REDIRECT.match(self.text, self.at)
            if not found:
                return tuple(redirects)
            redirects.append(self._redirect(found))

    def _redirect(self, found: re.Match[str]) -> Redirect:
        operator = found[1]
        line, self.at = self.line, found.end()
        self.skip_blanks()
        start = self.at
        target = self._argument() if start < len(self.text) and not self.peek("\n") else ()
        if operator not in ("<<", "<<-"):
            return Redirect(operator, target)
        is_plain = any(mark in self.text[start : self.at] for mark in "'\"\\")
        heredoc = Heredoc(_literal(target), is_plain, operator == "<<-", line)
        self._pending.append(heredoc)
        return Redirect("<<", (), heredoc)

    def _assign(self, found: re.Match[str]) -> Assign:
        line, self.at = self.line, found.end()
        name, index, appends = found[1], found[2] or "", bool(found[3])
        if not self.peek("("):
            return Assign(name, line, self.word(), None, index, appends)
        self.at += 1
        elements: list[Word] = []
        while True:
            self.skip_lines()
            if self.peek(")"):
                self.at += 1
                return Assign(name, line, (), tuple(elements), index, appends)
            if self.at >= len(self.text):
                problem = said("a ( opens here and never closes; add the closing )")
                raise self.error(problem, line)
            elements.append(self.word() or self.odd_letter())


def _literal(word: Word) -> str:
    return "".join(part.text for part in word if isinstance(part, Literal))
