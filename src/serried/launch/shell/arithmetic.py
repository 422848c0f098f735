"""Works out ``$((…))`` of a shell script on whole numbers, and says when a name is not known."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from serried.launch.facts.words import Unknown
from serried.limits import WORD

Lookup = Callable[[str], int | Unknown]

# Longer operators go first, or '**' would be two '*'. Any other letter is a token by itself.
TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||.)", re.S
)
BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a or b))),
    "&&": (2, lambda a, b: int(bool(a and b))),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    ">": (7, lambda a, b: int(a > b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">=": (7, lambda a, b: int(a >= b)),
    # A shift or power beyond 64 leaves a word in any case; cut off there, it takes no time.
    "<<": (8, lambda a, b: a << min(b, 64)),
    ">>": (8, lambda a, b: a >> min(b, 64)),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    # int(a / b) rounds towards zero; the float on the way is exact enough below 2**50.
    "/": (10, lambda a, b: int(a / b) if abs(a) < 2**50 else a // b),
    "%": (10, lambda a, b: a - b * int(a / b) if abs(a) < 2**50 else a % b),
    "**": (11, lambda a, b: _power(a, b)),
}
"""Binding strength and rule of each operator; division rounds towards zero, as C does."""


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueError  # bash refuses it; Python would make a fraction
    made: int = base ** min(exponent, 64)
    return made


class _Open(Exception):
    """Carries out of the reading what is not known."""

    def __init__(self, unknown: Unknown | None) -> None:
        self.unknown = unknown


def evaluate(text: str, lookup: Lookup) -> int | Unknown | None:
    """Returns the number an expression makes, what it lacks, or None when it is no expression.

    >>> evaluate("(8 * NODES > 8) ? 1 : 0", lambda name: 2), evaluate("-2**2", lambda name: 2)
    (1, 4)
    >>> evaluate("i++", lambda name: 2) is None
    True
    """
    tokens = [found[1] for found in TOKEN.finditer(text.strip())]
    try:
        # Tokens left over ('2 3'), or too few ('8 *', an IndexError), make no expression.
        reader = _Reader(tokens, lookup)
        value = reader.expression(0)
        return None if reader.at < len(tokens) or abs(value) >= WORD.most else value
    except _Open as stopped:
        return stopped.unknown
    except (ZeroDivisionError, IndexError, OverflowError, RecursionError, ValueError):
        return None


class _Reader:
    """Reads tokens by binding strength."""

    def __init__(self, tokens: list[str], lookup: Lookup) -> None:
        self.tokens, self.lookup, self.at = tokens, lookup, 0

    def _next(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def expression(self, strength: int) -> int:
        left = self._operand()
        while True:
            token = self._peek()
            if token == "?" and strength == 0:
                left = self._conditional(left)
            elif token in BINARY and BINARY[token][0] > strength:
                self.at += 1
                binds, rule = BINARY[token]
                # '**' alone groups from the right: the right side of 2**3**2 is 3**2 as a whole.
                left = rule(left, self.expression(binds - (token == "**")))
                if abs(left) >= WORD.most:
                    raise OverflowError
            else:
                return left

    def _conditional(self, condition: int) -> int:
        self.at += 1
        yes = self.expression(0)
        if self._next() != ":":
            raise _Open(None)
        no = self.expression(0)
        return yes if condition else no

    def _operand(self) -> int:
        token = self._next()
        if token == "(":
            value = self.expression(0)
            if self._next() != ")":
                raise _Open(None)
            return value
        if token in ("-", "+", "!", "~"):
            # In bash a sign binds before everything, '**' too: -2**2 is 4.
            value = self._operand()
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token[0].isdigit():
            # As in C, '010' is eight; '08' is no number, and 'evaluate' takes the ValueError as
            # that.
            return int(token, 16 if token[:2] in ("0x", "0X") else 8 if token[0] == "0" else 10)
        if token[0].isalpha() or token[0] == "_":
            value_or_why = self.lookup(token)
            if isinstance(value_or_why, Unknown):
                raise _Open(value_or_why)
            return value_or_why
        raise _Open(None)
