"""A JSON document read piece by piece: the entries of its arrays, and what stands beside them.

    {"distributedInfo": {…},     a member: its value is decoded whole
     "traceEvents": [            an array: its entries come one by one, and none is kept here
        {"ph": "X", …},
        …  ],
     "traceName": "…"}

The memory holds a piece of the text and one value, however long the document is. Python's own
decoder reads the values; only the brackets and commas around them are read here. On a profile of
torch's that is twice as quick as ijson's C backend, and numbers, odd text and nesting without
end mean what they mean to ``json.loads``.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"[-+.0-9eE]*")


class NotANumberError(ValueError):
    """Says that a document holds NaN or an infinity, which JSON has not."""


class LongValueError(ValueError):
    """Says that a value is longer than the memory is given for."""


def _refuse_constant(name: str) -> NoReturn:
    raise NotANumberError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


class JsonStream:
    """Holds the part of a document that is being read; the rest is fetched when it is asked for.

    What it reads raises JSONDecodeError where the document is none or ends, and ValueError and
    RecursionError where ``json.loads`` does.
    """

    def __init__(self, pieces: Iterable[bytes], longest: int) -> None:
        """Takes the document's ``pieces``; a value has at most ``longest`` letters."""
        self._pieces = iter(pieces)
        self._longest = longest
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._text = ""
        self._at = 0
        self._is_whole = False

    def next(self) -> str:
        """Returns the letter that comes next, spaces apart, and leaves it; "" at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fetch(1):
                return ""

    def members(self) -> Iterator[str]:
        """Yields the keys of an object; whoever asks takes each one's value before the next."""
        for _ in self._between("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self._unexpected("a key")
            self._take(":")
            yield key

    def entries(self) -> Iterator[Any]:
        """Yields the entries of an array."""
        for _ in self._between("[", "]"):
            yield self.value()

    def value(self) -> Any:
        """Takes a value, whole."""
        self.next()
        # A number shows its end only by what follows it.
        while _NUMBER.match(self._text, self._at).end() == len(self._text):  # type: ignore[union-attr]
            if not self._fetch(max(1, len(self._text) - self._at)):
                break
        while True:
            try:
                found, self._at = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                # Its end may not have been fetched. So much again is: were it a little at a
                # time, a long value would be tried so often that the time grew as its square.
                if not self._fetch(len(self._text) - self._at):
                    raise
            else:
                return found

    def _between(self, opening: str, closing: str) -> Iterator[None]:
        """Yields before each thing that stands between two brackets, with commas between."""
        self._take(opening)
        if self.next() == closing:
            self._take(closing)
            return
        while True:
            yield
            if self.next() != ",":
                self._take(closing)
                return
            self._take(",")

    def _take(self, letter: str) -> None:
        if self.next() != letter:
            raise self._unexpected(repr(letter))
        self._at += 1

    def _unexpected(self, wanted: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(f"{wanted} is expected", self._text, self._at)

    def _fetch(self, letters: int) -> bool:
        """Fetches ``letters`` or more, and drops what was taken; tells whether there were any."""
        if self._is_whole:
            return False
        found, count = [self._text[self._at :]], 0
        # Nothing of this was taken yet, so it is one value that is so long.
        if len(found[0]) > self._longest:
            raise LongValueError
        while count < letters and not self._is_whole:
            piece = next(self._pieces, b"")
            self._is_whole = not piece
            found.append(self._decode(piece, self._is_whole))
            count += len(found[-1])
        self._text, self._at = "".join(found), 0
        return count > 0
