"""Reads the words of a shell script: quotes, escapes, the kinds of ``$``, and heredocs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.facts.words import Line
from serried.launch.shell.syntax import (
    HELD,
    Arithmetic,
    HeldPart,
    Heredoc,
    Literal,
    Parameter,
    Part,
    Substitution,
    Text,
    Word,
)
from serried.limits import SCRIPT_ARITHMETIC, SCRIPT_EXPANSIONS, SCRIPT_WORDS

BLANKS = " \t"
BREAKS = frozenset(" \t\n;&|<>()")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DIGITS = re.compile(r"\d+")
SPECIAL = frozenset("@*#?$!-0123456789")
# In ${TP:-8}, ${FILE##*/} or ${A^^}; longer ones go first, or '##' would be read as '#'.
OPERATOR = re.compile(r":[-=?+]|##|%%|//|\^\^|,,|[-=?+#%/:^,@]")
STOPS = (r"\\$`\"'}\])" + re.escape("".join(BREAKS)), r"\\$`\"}\])")
"""Letters that end plain text, outside quotes and within."""


class Lexer:
    """Reads words from ``text`` at ``at``; raises InputError for what opens and never closes.

    ``parts`` counts what was read so far, in the text around this one as well; ``depth`` says in
    how many expansions the text stands. A heredoc is read when the line that opens it ends.
    """

    def __init__(self, text: Text, depth: int = 0, parts: Iterator[int] | None = None) -> None:
        self.source = text
        self.text = text.text
        self.at = 0
        self.parts = parts or count(1)
        self.pending: list[Heredoc] = []
        """Heredocs that the line has opened."""
        self._depth = depth
        held = f"{chr(HELD)}-{chr(HELD + len(text.held) - 1)}" if text.held else ""
        self._stops = tuple(re.compile(f"[{letters}{held}]") for letters in STOPS)

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
                # A comment may hold a bracket or an apostrophe that closes nothing.
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
            raise self.error(_never_closes(quote), self.source.line(opening))
        return end

    def _closing_double(self, opening: int) -> int:
        at = opening + 1
        while at < len(self.text) and self.text[at] != '"':
            if self.text.startswith("$(", at):
                # A quote inside "$(…)" opens anew, so what is inside is skipped as a whole.
                here = self.at
                self.balanced(at + 1)
                at, self.at = self.at, here
                continue
            at += 2 if self.text[at] == "\\" else 1
        if at >= len(self.text):
            raise self.error(_never_closes('"'), self.source.line(opening))
        return at

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
        self.count()
        letter = self.text[self.at]
        # Between double quotes an apostrophe is a letter like others, and in a heredoc a double
        # quote as well; backslash, '$' and '`' keep their meaning.
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
        line, end = self.source.line(start), self.source.line_end(start)
        found = self._stops[quoted].search(self.text, start + 1, end)
        stop = found.start() if found else end
        newline = self.text.find("\n", start, stop)
        self.at = stop if newline < 0 else newline + 1
        return Literal(self.text[start : self.at], line, quoted, self.source.via(start))

    def _escape(self, quoted: bool) -> list[Part]:
        line = self.line
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following == "\n":
            return []
        # Within double quotes the backslash of "\n" is a letter itself.
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
        """Reads what ``$`` begins; raises InputError where expansions nest without end."""
        self._depth += 1
        if self._depth > SCRIPT_EXPANSIONS.most:
            problem = said("expansions are nested too deeply to be a launch script")
            raise self.error(problem, self.line)
        parts = self._expansion(quoted)
        self._depth -= 1
        return parts

    def _expansion(self, quoted: bool) -> list[Part]:
        start, line = self.at, self.line
        # '$((' is arithmetic only where '))' closes it; '$((a); b)' is a command in brackets.
        # '$[N * 8]' is how '$((N * 8))' was written before.
        for opens in ("((", "["):
            if self.peek(f"${opens}") and (inner := self.balanced_arithmetic(opens)) is not None:
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
        # '${#NAME}' is a length, '${#}' the number of arguments; '${!NAME}' is what NAME names.
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
        operator = self.matched(OPERATOR)
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
        return self.matched(DIGITS) or self.text[self.at : self.at + 1]

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
        # A backslash before a backtick makes it a letter of the command inside.
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise self.error(_never_closes("`"), line)
        command = self.text[self.at + 1 : end]
        self.at = end + 1
        return Substitution(command, line, quoted)

    def balanced_arithmetic(self, opens: str = "((") -> Word | None:
        """Reads ``$((…))``, ``((…))`` or ``$[…]``; None, reading nothing, when it is none."""
        begin, end_letter = ("(", ")") if opens == "((" else ("[", "]")
        closing, opening = end_letter * len(opens), self.text.index(opens, self.at) + len(opens)
        depth, at = 0, opening
        end = min(len(self.text), opening + SCRIPT_ARITHMETIC.most)
        while at < end:
            letter = self.text[at]
            if letter == begin:
                depth += 1
            elif letter == end_letter:
                if not depth:
                    break
                depth -= 1
            at += 1
        # The scan stops at the ')' that nothing inside opened: in '((a); (b))' a ';' follows it, so
        # these are brackets around commands.
        if self.text[at : at + len(closing)] != closing:
            return None
        inner = Lexer(self.source.part(opening, at), self._depth, self.parts).all()
        self.at = at + len(closing)
        return inner

    # ------------------------------------------------------------------- blanks

    def skip_blanks(self) -> None:
        """Skips blanks, continued lines and a comment."""
        while self.at < len(self.text):
            if self.text[self.at] in BLANKS:
                self.at += 1
            elif self.peek("\\\n"):
                self.at += 2
            elif self.peek("#") and (self.at == 0 or self.text[self.at - 1] in " \t\n;&|()"):
                # A '#' inside a word, as in 'a#b', begins no comment.
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
        for heredoc in self.pending:
            start = self.at
            end, self.at = self._heredoc_end(heredoc)
            part = self.source.part(start, end)
            # Without its tabs no letter stands where it did, so this text counts its lines anew.
            if heredoc.strips_tabs:
                first = self.source.line(start)
                untabbed = re.sub(r"(?m)^\t+", "", part.text)
                part = Text.of(untabbed, first.file, first.number)
            reader = Lexer(part, 0, self.parts)
            heredoc.body = reader.plain() if heredoc.is_plain else reader.all()
        self.pending = []

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


def _never_closes(quote: str) -> Sentence:
    """Says of a quote that it has no end."""
    return said("a {quote} quote opens here and never closes; add the closing {quote}", quote=quote)
