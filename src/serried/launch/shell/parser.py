"""Reads the commands of a shell script: plain ones, lists, ``if``, loops, ``case``, functions."""

# Why not a library: of 1,019 public launch scripts that `bash -n` accepts, this reads each one;
# tree-sitter-bash 0.25.1 marks errors in 64 and, unmarked, takes words or commands of 105 apart
# in other places than bash does (`DIR=$A/logs_$B/x` is an assignment and the command `B/x`).

from __future__ import annotations

import re

from serried.finding import Sentence, said
from serried.launch.facts.words import Line
from serried.launch.shell.lexer import BREAKS
from serried.launch.shell.plain import PlainCommands
from serried.launch.shell.syntax import (
    AndOr,
    ArithmeticCommand,
    Case,
    Command,
    Condition,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Pipeline,
    Script,
    Text,
    Word,
)
from serried.limits import SCRIPT_BLOCKS

# 'run_job ()' of 'run_job () { …; }'.
FUNCTION = re.compile(r"([A-Za-z_][\w:.-]*)[ \t]*\([ \t]*\)")
RESERVED = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "in", "}"])


def parse(text: Text) -> Script:
    """Returns the commands of ``text``; raises InputError where a quote or block never ends."""
    parser = _Parser(text)
    script = parser.script(())
    if parser.at < len(parser.text):
        problem = said("'{word}' stands where nothing is open", word=parser.rest())
        raise parser.error(problem, parser.line)
    return script


class _Parser(PlainCommands):
    """Reads commands one after the other, those inside others as they come."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self._blocks = 0

    # ------------------------------------------------------------------- lists

    def script(self, stops: tuple[str, ...]) -> Script:
        """Reads commands until one of the words ``stops``, which is left unread."""
        self._blocks += 1
        if self._blocks > SCRIPT_BLOCKS.most:
            problem = said("blocks are nested too deeply to be a launch script")
            raise self.error(problem, self.line)
        items: list[AndOr] = []
        while True:
            self.skip_lines()
            if self.at >= len(self.text) or self._stops_at(stops):
                break
            if self.text[self.at] in ";&" and not self.peek("&>"):
                self.at += 1
                continue
            # A 'fi' or ')' that was not waited for: whoever opened a block says what it misses.
            if self._reserved() or self.text[self.at] == ")":
                break
            items.append(self._and_or())
        self._blocks -= 1
        return tuple(items)

    def _stops_at(self, stops: tuple[str, ...]) -> bool:
        return any(
            self.peek(stop) if stop in (")", ";;") else self._word_is(stop) for stop in stops
        )

    def _word_is(self, word: str) -> bool:
        end = self.at + len(word)
        return self.peek(word) and (end >= len(self.text) or self.text[end] in BREAKS)

    def _reserved(self) -> str:
        return next((word for word in RESERVED if word != "in" and self._word_is(word)), "")

    def _and_or(self) -> AndOr:
        parts = [("", self._pipeline())]
        while True:
            self.skip_blanks()
            if not (self.peek("&&") or self.peek("||")):
                return AndOr(tuple(parts))
            operator = self.text[self.at : self.at + 2]
            self.at += 2
            self.skip_lines()
            parts.append((operator, self._pipeline()))

    def _pipeline(self) -> Pipeline:
        is_negated = False
        # Both may stand more than once, in any order: '! time cmd', 'time ! cmd'.
        while self._word_is("!") or self._word_is("time"):
            is_negated ^= self.peek("!")
            self.at += 1 if self.peek("!") else 4
            self.skip_blanks()
        commands = [self._command()]
        while True:
            self.skip_blanks()
            if not self.peek("|") or self.peek("||"):
                return Pipeline(tuple(commands), is_negated)
            self.at += 2 if self.peek("|&") else 1
            self.skip_lines()
            commands.append(self._command())

    # ------------------------------------------------------------------- commands

    def _command(self) -> Command:
        self.count()
        for word, read in (
            ("if", self._if),
            ("for", self._for),
            ("select", self._for),
            ("while", self._while),
            ("until", self._while),
            ("case", self._case),
            ("function", self._function),
            ("{", self._braces),
            ("[[", self._condition),
        ):
            if self._word_is(word):
                return read()
        # '((a); (b))' also begins like arithmetic; what is none is read as brackets around
        # commands.
        if self.peek("((") and (line := self.line):
            inner = self.balanced_arithmetic()
            if inner is not None:
                return ArithmeticCommand(inner, line)
        if self.peek("("):
            return self._parentheses()
        if found := FUNCTION.match(self.text, self.at):
            return self._function_body(found[1], found.end())
        return self.simple()

    def _expect(self, word: str, opened: str, line: Line) -> None:
        self.skip_lines()
        if not (self.peek(word) if word in (")", ";;") else self._word_is(word)):
            raise self.error(_is_missing(opened, word), line)
        self.at += len(word)

    def _if(self) -> Command:
        line = self.line
        self.at += 2
        branches = []
        otherwise: Script = ()
        while True:
            condition = self.script(("then",))
            self._expect("then", "if", line)
            branches.append((condition, self.script(("elif", "else", "fi"))))
            if self._word_is("elif"):
                self.at += 4
                continue
            if self._word_is("else"):
                self.at += 4
                otherwise = self.script(("fi",))
            self._expect("fi", "if", line)
            return If(tuple(branches), otherwise, line)

    def _for(self) -> Command:
        line, kind = self.line, "for" if self.peek("for") else "select"
        self.at += len(kind)
        self.skip_blanks()
        if self.peek("(("):
            # The turns of 'for ((i = 0; i < N; i++))' are not counted, so its head is passed over.
            self.balanced_arithmetic()
            return Loop(kind, line, self._do(kind, line))
        variable = self._bare_word()
        self.skip_lines()
        words: list[Word] | None = None
        if self._word_is("in"):
            self.at += 2
            words = self.words_to_line_end()
        return Loop(kind, line, self._do(kind, line), variable, tuple(words or ()))

    def _do(self, kind: str, line: Line) -> Script:
        self.skip_lines()
        while self.peek(";"):
            self.at += 1
            self.skip_lines()
        self._expect("do", kind, line)
        body = self.script(("done",))
        self._expect("done", kind, line)
        self.redirects()
        return body

    def _while(self) -> Command:
        line, kind = self.line, "while" if self.peek("while") else "until"
        self.at += 5
        condition = self.script(("do",))
        return Loop(kind, line, self._do(kind, line), condition=condition)

    def _case(self) -> Command:
        line = self.line
        self.at += 4
        self.skip_blanks()
        word = self.word()
        self._expect("in", "case", line)
        arms = []
        while True:
            self.skip_lines()
            if self._word_is("esac") or self.at >= len(self.text):
                break
            patterns = self._patterns(line)
            arms.append((patterns, self.script((";;", "esac"))))
            self.skip_lines()
            if self.peek(";;"):
                # ';;&' would try further patterns; it is read as the end of the arm all the same.
                self.at += 3 if self.peek(";;&") else 2
        self._expect("esac", "case", line)
        return Case(word, tuple(arms), line)

    def _patterns(self, line: Line) -> tuple[Word, ...]:
        patterns: list[Word] = []
        while True:
            self.skip_blanks()
            if self.at >= len(self.text):
                raise self.error(_is_missing("case", "esac"), line)
            # '(a|b)' is the same as 'a|b)': the bracket in front may be left out.
            if self.text[self.at] in "(|":
                self.at += 1
            elif self.peek(")"):
                self.at += 1
                return tuple(patterns)
            else:
                patterns.append(self.word() or self.odd_letter())

    def _function(self) -> Command:
        self.at += len("function")
        self.skip_blanks()
        name = self._bare_word()
        self.skip_blanks()
        if found := re.compile(r"\([ \t]*\)").match(self.text, self.at):
            self.at = found.end()
        return self._function_body(name, self.at)

    def _function_body(self, name: str, at: int) -> Command:
        line, self.at = self.line, at
        self.skip_lines()
        return Function(name, self._command(), line)

    def _bare_word(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in BREAKS:
            self.at += 1
        return self.text[start : self.at]

    def _braces(self) -> Command:
        line = self.line
        self.at += 1
        body = self.script(("}",))
        self._expect("}", "{", line)
        return Group(body, False, self.redirects(), line)

    def _parentheses(self) -> Command:
        line = self.line
        self.at += 1
        body = self.script((")",))
        self._expect(")", "(", line)
        return Group(body, True, self.redirects(), line)

    def _condition(self) -> Command:
        line = self.line
        self.at += 2
        words: list[Word] = []
        while True:
            self.skip_lines()
            if self._word_is("]]"):
                self.at += 2
                return Condition(tuple(words), line)
            if self.at >= len(self.text):
                raise self.error(_is_missing("[[", "]]"), line)
            # In here '(', '<' and '&&' are words of the condition, no operators between commands.
            if self.text[self.at : self.at + 2] in ("&&", "||"):
                words.append((Literal(self.text[self.at : self.at + 2], self.line),))
                self.at += 2
            else:
                words.append(self.word() or self.odd_letter())


def _is_missing(opened: str, word: str) -> Sentence:
    return said("'{opened}' opens here and its '{word}' is missing", opened=opened, word=word)
