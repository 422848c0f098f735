"""Decides ``[ … ]`` and ``[[ … ]]`` of a shell script: yes, no, or not to be known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from serried.launch.facts.whole_number import whole
from serried.launch.facts.words import Field, Unknown

FILE_TESTS = frozenset("-" + letter for letter in "efdrwxsLhtSpbcgukOGN")
NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Verdict:
    """Says how a condition turns out; None when only running the script would tell.

    ``is_assumed`` marks a verdict that takes variables of the environment, and arguments of
    the script, as not given: what ``${NAME:-default}`` says in other words. ``is_command``
    marks the outcome of a program, which goes well unless an ``if`` asks.
    """

    outcome: bool | None
    is_assumed: bool = False
    is_command: bool = False

    def negated(self) -> Verdict:
        """Returns the verdict of ``!`` before the condition."""
        outcome = None if self.outcome is None else not self.outcome
        return replace(self, outcome=outcome)

    @property
    def asked(self) -> Verdict:
        """The verdict where an ``if`` or a loop asks: a program's outcome is open."""
        return OPEN if self.is_command else self


OPEN = Verdict(None)
RAN = Verdict(True, is_assumed=True, is_command=True)


def both(left: Verdict, right: Verdict) -> Verdict:
    """Returns the verdict of ``left && right``."""
    # A 'no' decides even where the other side is open. It is assumed only if every 'no' is; a 'yes'
    # needs both sides, so it is assumed if either is.
    if left.outcome is False or right.outcome is False:
        decided = [each for each in (left, right) if each.outcome is False]
        is_command = all(each.is_command for each in decided)
        return Verdict(False, all(each.is_assumed for each in decided), is_command)
    if left.outcome is None or right.outcome is None:
        return OPEN
    is_command = left.is_command or right.is_command
    return Verdict(True, left.is_assumed or right.is_assumed, is_command)


def either(left: Verdict, right: Verdict) -> Verdict:
    """Returns the verdict of ``left || right``."""
    return both(left.negated(), right.negated()).negated()


def decide(words: Sequence[Field], *, is_double: bool) -> Verdict:
    """Returns the verdict of the words between ``[`` and ``]``, or ``[[`` and ``]]``."""
    reader = _Reader(list(words), is_double)
    verdict = reader.any_of()
    return verdict if reader.at == len(reader.words) else OPEN


class _Reader:
    """Reads conditions joined by && || -a -o and parentheses."""

    def __init__(self, words: list[Field], is_double: bool) -> None:
        self.words, self.is_double, self.at = words, is_double, 0

    def _text(self, offset: int = 0) -> str | None:
        place = self.at + offset
        return self.words[place].text if place < len(self.words) else ""

    def any_of(self) -> Verdict:
        verdict = self._all_of()
        while self.at < len(self.words) and self._text() in ("||", "-o"):
            self.at += 1
            verdict = either(verdict, self._all_of())
        return verdict

    def _all_of(self) -> Verdict:
        verdict = self._one()
        while self.at < len(self.words) and self._text() in ("&&", "-a"):
            self.at += 1
            verdict = both(verdict, self._one())
        return verdict

    def _one(self) -> Verdict:
        if self.at >= len(self.words):
            return Verdict(False)
        if self._text() == "!":
            self.at += 1
            return self._one().negated()
        if self._text() == "(":
            self.at += 1
            verdict = self.any_of()
            self.at += 1
            return verdict
        # An operator in the middle of three words goes before one in front: in '[ -n = "$A" ]' the
        # '-n' is text to be compared.
        left = len(self.words) - self.at
        if left >= 3 and self._is_binary(self._text(1)):
            self.at += 3
            return self._binary(*self.words[self.at - 3 : self.at])
        first = self._text() or ""
        if left >= 2 and first.startswith("-") and len(first) == 2:
            self.at += 2
            return self._unary(first, self.words[self.at - 1])
        self.at += 1
        return _is_given(self.words[self.at - 1])

    def _is_binary(self, text: str | None) -> bool:
        return text in ("=", "==", "!=", "=~", "<", ">") or text in NUMBERS

    def _unary(self, operator: str, word: Field) -> Verdict:
        # '[ -f data.bin ]' asks for a file of the machine that the script will run on.
        if operator in FILE_TESTS or operator not in ("-n", "-z", "-v"):
            return OPEN
        given = _is_given(word)
        return given.negated() if operator == "-z" else given

    def _binary(self, left: Field, middle: Field, right: Field) -> Verdict:
        operator, a, b = middle.text or "", left.text, right.text
        if operator in NUMBERS:
            return self._numbers(operator, left, right)
        # '[ "$A" = "" ]' asks the same as '[ -z "$A" ]', and is answered the same.
        if operator in ("=", "==", "!=") and (a == "" or b == ""):
            given = _is_given(right if a == "" else left)
            return given if operator == "!=" else given.negated()
        if a is None or b is None or operator in ("=~", "<", ">"):
            return OPEN
        is_pattern = self.is_double and any(mark in b for mark in "*?[")
        same = fnmatchcase(a, b) if is_pattern else a == b
        return Verdict(same if operator != "!=" else not same)

    def _numbers(self, operator: str, left: Field, right: Field) -> Verdict:
        a, b = (each.text for each in (left, right))
        first, second = whole(a), whole(b)
        # '[ $# -lt 1 ] && usage': the script is read as it runs without arguments.
        if a is None and _counts_arguments(left) and second is not None:
            return Verdict(NUMBERS[operator](0, second), is_assumed=True)
        if first is None or second is None:
            return OPEN
        return Verdict(NUMBERS[operator](first, second))


def _is_given(word: Field) -> Verdict:
    """Tells whether a word is not empty; a variable never set counts as empty, by assumption."""
    if word.text is not None:
        return Verdict(bool(word.text))
    known_letters = word.start
    pieces = word.pieces
    if known_letters:
        # Whatever the rest is, the word is not empty.
        return Verdict(True)
    if all(isinstance(piece, Unknown) and piece.name for piece in pieces):
        return Verdict(False, is_assumed=True)
    return OPEN


def _counts_arguments(word: Field) -> bool:
    piece = word.pieces[0]
    return len(word.pieces) == 1 and isinstance(piece, Unknown) and piece.name == "#"
