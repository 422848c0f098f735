"""Reads one plain command of a shell script: assignments, words, and where its output goes.

A=1 B=(2 3) cmd x=4 > log <<EOF     assigns A and B, has words cmd and x=4, and two redirects
"""

from __future__ import annotations

import re

from serried.finding import said
from serried.launch.shell.lexer import Lexer
from serried.launch.shell.syntax import (
    Assign,
    Heredoc,
    Literal,
    Redirect,
    Simple,
    Substitution,
    Word,
)

# TP=2, ARGS+=(--x), GPUS[0]=8.
ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]*)\])?(\+?)=")
# '>', '2>&1', '{fd}>', '<<EOF'; longer operators go before those they begin with.
REDIRECT = re.compile(r"(?:\d+|\{\w+\})?(&>>|&>|<<<|<<-|<<|<>|>>|>\||>&|<&|>|<)")
DECLARES = frozenset(["export", "declare", "local", "readonly", "typeset"])


class PlainCommands(Lexer):
    """Reads plain commands, and the redirections that blocks end with too."""

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
            # 'A=1 cmd' assigns, 'cmd A=1' hands a word over, 'export A=1' assigns too.
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
        # Any quote in the delimiter, as in <<'EOF', keeps '$' in the text below as a letter.
        is_plain = any(mark in self.text[start : self.at] for mark in "'\"\\")
        heredoc = Heredoc(_literal(target), is_plain, operator == "<<-", line)
        self.pending.append(heredoc)
        return Redirect("<<", (), heredoc)

    def _assign(self, found: re.Match[str]) -> Assign:
        line, self.at = self.line, found.end()
        name, index, appends = found[1], found[2] or "", bool(found[3])
        if not self.peek("("):
            return Assign(name, line, self.word(), None, index, appends)
        self.at += 1
        elements: list[Word] = []
        while True:
            # Between the brackets of ARGS=( … ) a line end or a comment is a blank.
            self.skip_lines()
            if self.peek(")"):
                self.at += 1
                return Assign(name, line, (), tuple(elements), index, appends)
            if self.at >= len(self.text):
                problem = said("a ( opens here and never closes; add the closing )")
                raise self.error(problem, line)
            elements.append(self.word() or self.odd_letter())

    def words_to_line_end(self) -> list[Word]:
        """Reads words up to the line's end or an operator."""
        words: list[Word] = []
        while True:
            self.skip_blanks()
            if self.at >= len(self.text) or self.text[self.at] in "\n;&|)":
                return words
            words.append(self.word() or self.odd_letter())

    def rest(self) -> str:
        """Returns the beginning of what comes next, for an error."""
        return self.text[self.at : self.at + 20].split("\n")[0].strip()

    def odd_letter(self) -> Word:
        """Reads a letter that begins no word, such as a lone '<', so that reading goes on."""
        letter = Literal(self.text[self.at], self.line)
        self.at += 1
        return (letter,)


def _literal(word: Word) -> str:
    return "".join(part.text for part in word if isinstance(part, Literal))
