"""Reads JSON as plain keys with lines, and keeps both values of a key given twice."""

from __future__ import annotations

import json
import re
from bisect import bisect_left

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.facts.keys import ConfigValue, Keys, Scalar, too_deep
from serried.limits import CONFIG_DEPTH

# JSON has no comments, but configs do: '// …' and '/* … */' count as blanks.
BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.S)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
NEWLINE = re.compile("\n")
WORD = re.compile(r"[-+.\w]+")
WORDS = {"true": True, "false": False, "null": None}


def read(text: str, file: str) -> Keys:
    """Returns the keys of a JSON object; raises InputError naming the line that is none.

    >>> read('{"a": {"b": 2},\\n "c": [1, 2]}', "x.json").entries["c"]
    [ConfigValue(value=(1, 2), line=2, via='', why=None, file='')]
    """
    reader = _Reader(text, file)
    reader.value("", 0)
    reader.skip()
    if reader.at < len(text):
        raise reader.error(said("nothing more may follow"))
    return reader.keys


class _Reader:
    """Reads values one after the other."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.at, self.keys = text, 0, Keys(file)
        self.ends = [found.start() for found in NEWLINE.finditer(text)]

    def skip(self) -> None:
        found = BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    @property
    def line(self) -> int:
        return bisect_left(self.ends, self.at) + 1

    def error(self, problem: Sentence) -> InputError:
        return InputError(
            "{file} line {line} is no JSON: {problem}",
            file=self.keys.file,
            line=self.line,
            problem=problem,
        )

    def _peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def _expect(self, letter: str) -> None:
        if self._peek() != letter:
            raise self.error(said("'{letter}' is missing", letter=letter))
        self.at += 1

    def value(self, key: str, depth: int) -> None:
        """Reads a value into ``key`` and the keys below it."""
        if depth > CONFIG_DEPTH.most:
            raise too_deep(self.keys.file)
        letter = self._peek()
        if letter == "{":
            self._object(key, depth)
        elif letter == "[":
            self._array(key, depth)
        else:
            line = self.line
            self.keys.add(key, ConfigValue(self._scalar(), line))

    def _object(self, key: str, depth: int) -> None:
        self._expect("{")
        while self._peek() != "}":
            name = self._string()
            self._expect(":")
            self.value(f"{key}.{name}" if key else name, depth + 1)
            if self._peek() != "}":
                self._expect(",")
        self.at += 1

    def _array(self, key: str, depth: int) -> None:
        line = self.line
        self._expect("[")
        scalars: list[Scalar] = []
        count = 0
        while self._peek() != "]":
            if self._peek() in "{[":
                self.value(f"{key}.{count}", depth + 1)
            else:
                scalars.append(self._scalar())
            count += 1
            if self._peek() != "]":
                self._expect(",")
        self.at += 1
        # '[2, 4]' is one value. Objects in a list got keys of their own; scalars between them say
        # nothing.
        if len(scalars) == count:
            self.keys.add(key, ConfigValue(tuple(scalars), line))

    def _string(self) -> str:
        self.skip()
        found = STRING.match(self.text, self.at)
        if not found:
            raise self.error(said("a name in double quotes is missing"))
        try:
            text = str(json.loads(found[0]))
        except ValueError as error:
            raise self.error(said("a name has an escape that JSON lacks")) from error
        self.at = found.end()
        return text

    def _scalar(self) -> Scalar:
        self.skip()
        if self.text[self.at : self.at + 1] == '"':
            return self._string()
        found = WORD.match(self.text, self.at)
        if not found:
            raise self.error(said("a value is missing"))
        word = found[0]
        try:
            scalar: Scalar = WORDS[word] if word in WORDS else json.loads(word)
        except ValueError:
            try:
                # '.5', '1.' and '+8' are numbers to people, though not to JSON.
                scalar = float(word)
            except ValueError as error:
                problem = said("'{word}' is no value; put text in double quotes", word=word[:20])
                raise self.error(problem) from error
        self.at = found.end()
        return scalar
