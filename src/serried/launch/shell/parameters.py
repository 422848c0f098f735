"""What ``$NAME``, ``${NAME:-default}`` and ``$((…))`` stand for in a shell script."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase

from serried.finding import Sentence, said
from serried.launch.facts.whole_number import count, whole
from serried.launch.facts.words import (
    Choice,
    Line,
    Piece,
    Unknown,
    Value,
    known,
    reason_of,
    text_of,
    unknown,
)
from serried.launch.shell import arithmetic as shell_arithmetic
from serried.launch.shell.lexer import Lexer
from serried.launch.shell.scope import Scope
from serried.launch.shell.syntax import Parameter, Text, Word
from serried.limits import SCRIPT_EDITED, SCRIPT_VALUE

OF_THE_MACHINE = re.compile(
    "HOME|(OLD)?PWD|USER|LOGNAME|HOSTNAME|PATH|SHELL|RANDOM|SECONDS|LINENO|E?UID|PPID|TMPDIR|"
    "BASH(_SOURCE|PID)?|FUNCNAME|IFS|LANG|PYTHONPATH|LD_LIBRARY_PATH"
)
"""Variables that every machine sets, so that they never count as left out."""


class Parameters:
    """Looks parameters up in one scope; ``value`` expands the words inside them."""

    def __init__(self, scope: Scope, value: Callable[[Word], Value]) -> None:
        self.scope, self.value = scope, value

    def look_up(self, name: str, line: Line) -> Value:
        """Returns the value of a variable or an argument, or why it is not known."""
        if name.isdecimal() or name in ("@", "*", "#"):
            return self._argument(name, line)
        found = self.scope.variables.get(name)
        if isinstance(found, list):
            return found[0] if found else known("", line)
        if found is not None:
            return found
        # An Unknown with a name counts as not set, and gives way to a default. These are always
        # set: '${HOME:-/root}' is not /root.
        if OF_THE_MACHINE.fullmatch(name) or not (name[0].isalpha() or name[0] == "_"):
            return unknown(_of_a_run(name, line), line)
        if name.startswith(("SLURM_", "SLURMD_")):
            because = said(
                "{name} on line {line} comes from Slurm, and no #SBATCH line settles it",
                name=name,
                line=line,
            )
            # Under Slurm '${SLURM_NTASKS:-8}' is open, for it is set there; outside of a job the 8
            # counts.
            return (Unknown(because, line, "" if self.scope.is_slurm else name),)
        because = said("{name} on line {line} is not set in the file", name=name, line=line)
        return (Unknown(because, line, name),)

    def _argument(self, name: str, line: Line) -> Value:
        arguments = self.scope.arguments
        if name == "0":
            return unknown(_of_a_run(name, line), line)
        if name in ("@", "*"):
            return tuple(piece for each in arguments or [] for piece in (*each, Piece(" ", line)))
        # The script's own arguments come from outside, so '${1:-8}' counts as 8. A call's are
        # known, and one that it leaves out is empty.
        if arguments is None:
            if name == "#":
                because = said("the number of arguments on line {line} is not known", line=line)
            else:
                because = said("it is argument {n} of the script on line {line}", n=name, line=line)
            return (Unknown(because, line, name),)
        if name == "#":
            return known(str(len(arguments)), line)
        place = count(name)
        is_given = place is not None and place <= len(arguments)
        return arguments[place - 1] if place and is_given else known("", line)

    def parameter(self, part: Parameter) -> Value:
        """Returns what ``$NAME`` or ``${NAME…}`` stands for."""
        if part.is_length:
            return self._length(part)
        if part.operator == "!":
            pointed = text_of(self._indexed(replace(part, operator="")))
            if pointed and re.fullmatch(r"[A-Za-z_]\w*", pointed):
                return self.look_up(pointed, part.line)
            return unknown(_not_known(part), part.line)
        value = self._indexed(part)
        return self._operated(part, value) if part.operator else value

    def _indexed(self, part: Parameter) -> Value:
        if not part.index:
            return self.look_up(part.name, part.line)
        index = self.index(part.index, part.line)
        array = self.scope.variables.get(part.name)
        if isinstance(array, list) and (place := count(index)) is not None:
            if any(isinstance(piece, Choice) for each in array for piece in each):
                why = said("{source} on line {line} is open", source=part.source, line=part.line)
                return unknown(why, part.line)
            if place < len(array):
                return array[place]
            beyond = self.scope.variables.get(f"{part.name}[{index}]")
            return beyond if isinstance(beyond, tuple) else known("", part.line)
        if isinstance(array, tuple) and index == "0":
            # A plain variable is an array of one element.
            return array
        entry = self.scope.variables.get(f"{part.name}[{index}]")
        if isinstance(entry, tuple):
            return entry
        name = "" if index is None else f"{part.name}[{index}]"
        return (Unknown(_not_known(part), part.line, name),)

    def index(self, index: str, line: Line) -> str | None:
        """Returns the index between ``[`` and ``]`` as text, or None when it is not known."""
        self.scope.steps.spend(1 + len(index) // 4)
        text = text_of(self.value(Lexer(Text.of(index, line.file, line.number)).all()))
        # The index of an array is arithmetic, where I stands for the value of $I; the key of
        # 'declare -A' is text. A name counts as an index where its variable holds a number.
        if (
            text is not None
            and re.fullmatch(r"[A-Za-z_]\w*", text)
            and text in self.scope.variables
        ):
            number = text_of(self.look_up(text, line))
            return number if number and number.isdecimal() else text
        return text

    def _length(self, part: Parameter) -> Value:
        if part.name in ("@", "*"):
            return self._argument("#", part.line)
        if part.index in ("@", "*"):
            elements = self.scope.elements(part.name)
            why = reason_of(elements[0]) if len(elements) == 1 else None
            # HOSTS=($(scontrol show hostnames …)): nobody knows the hosts, but ${#HOSTS[@]} is the
            # number of nodes.
            if isinstance(why, Unknown) and why.counted_by:
                return self.look_up(why.counted_by, part.line)
            if all(reason_of(each) is None for each in elements):
                number = self.scope.num_elements(part.name)
                return known(str(number), part.line, part.source)
            return unknown(_not_known(part), part.line)
        text = text_of(self._indexed(part))
        if text is None:
            return unknown(_not_known(part), part.line)
        return known(str(len(text)), part.line, part.source)

    def _operated(self, part: Parameter, value: Value) -> Value:
        operator = part.operator
        if operator in (":-", "-", ":=", "=", ":?", "?", ":+", "+"):
            return self._defaulted(part, value)
        text = text_of(value)
        # A part of what is not known is not known for the same reason.
        if text is None:
            return value
        argument = text_of(self.value(part.argument))
        is_short = argument is not None and max(len(text), len(argument)) <= SCRIPT_EDITED.most
        self.scope.steps.spend(2 * len(text) if is_short else 1)
        made = _edited(text, operator, argument or "") if is_short else None
        if made is None:
            return unknown(_not_known(part), part.line)
        return known(made, part.line, part.source)

    def _defaulted(self, part: Parameter, value: Value) -> Value:
        text = text_of(value)
        why = reason_of(value)
        is_unset = len(value) == 1 and isinstance(why, Unknown) and bool(why.name)
        # What is not known for another reason than that nothing sets it may well be set.
        is_empty = is_unset or (text == "" and ":" in part.operator)
        if "+" in part.operator:
            return self.value(part.argument) if text and not is_empty else known("", part.line)
        if not is_empty or "?" in part.operator:
            return value
        default = tuple(
            replace(piece, via=part.source) if isinstance(piece, Piece) and not piece.via else piece
            for piece in self.value(part.argument)
        ) or known("", part.line)
        if "=" in part.operator:
            self.scope.variables[part.name] = default
        return default

    # ------------------------------------------------------------------- arithmetic

    def arithmetic(self, expression: Word, line: Line, source: str) -> Value:
        """Returns what ``$((expression))`` makes, or why it is not known."""
        value = self.value(expression)
        why = reason_of(value)
        if why is not None:
            return unknown(why.because, why.line)
        text = text_of(value) or "0"
        self.scope.steps.spend(1 + len(text) // 2)
        result = shell_arithmetic.evaluate(text, lambda n: self._number(n, line))
        if isinstance(result, Unknown):
            return (result,)
        if result is None:
            return unknown(
                said("{source} on line {line} is not worked out", source=short(source), line=line),
                line,
            )
        return known(str(result), line, source)

    def _number(self, name: str, line: Line) -> int | Unknown:
        # The shell goes on from name to name: with A=B and B=2, $((A)) is 2. A=A has no end.
        for _ in range(8):
            value = self.look_up(name, line)
            why = reason_of(value)
            if why is not None:
                return Unknown(why.because, why.line)
            text = text_of(value) or ""
            if (number := whole(text)) is not None:
                return number
            if not text.strip():
                return 0
            if not re.fullmatch(r"[A-Za-z_]\w*", text):
                break
            name = text
        because = said("{name} on line {line} is not a number", name=name, line=line)
        return Unknown(because, line)


def _of_a_run(name: str, line: Line) -> Sentence:
    return said("${name} on line {line} differs from run to run", name=name, line=line)


def _not_known(part: Parameter) -> Sentence:
    return said("{source} on line {line} is not known", source=part.source, line=part.line)


def short(text: str) -> str:
    """Returns text on one line, cut to what a sentence can hold."""
    words = " ".join(text[:1000].split())
    return words if len(words) <= 60 else words[:57] + "..."


def _edited(text: str, operator: str, argument: str) -> str | None:
    """Returns ``text`` after ``%``, ``#``, ``/``, ``:`` and case operators; None if not known."""
    # '%' and '#' cut the least that matches, so the shortest cut is tried first; '%%' and '##' the
    # most. Each try looks through the text again, hence the limit SCRIPT_EDITED.
    if operator in ("%", "%%"):
        ends = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
        cut = next((i for i in ends if fnmatchcase(text[i:], argument)), len(text))
        return text[:cut]
    if operator in ("#", "##"):
        starts = range(len(text) + 1) if operator == "#" else range(len(text), -1, -1)
        cut = next((i for i in starts if fnmatchcase(text[:i], argument)), 0)
        return text[cut:]
    if operator in ("/", "//"):
        old, _, new = argument.partition("/")
        if not old or any(mark in old for mark in "*?["):
            return None
        if text.count(old) * len(new) > SCRIPT_VALUE.most:
            return None
        return text.replace(old, new, 1 if operator == "/" else -1)
    if operator == ":":
        first, colon, length = argument.partition(":")
        start, letters = whole(first), whole(length) if colon else len(text)
        if start is None or letters is None or start < 0 or letters < 0:
            return None
        return text[start : start + letters]
    return {
        "^^": text.upper,
        ",,": text.lower,
        "^": lambda: text[:1].upper() + text[1:],
        ",": lambda: text[:1].lower() + text[1:],
    }.get(operator, lambda: None)()
