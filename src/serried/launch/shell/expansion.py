"""Expands the words of a shell script with what the script has set so far."""

from __future__ import annotations

import re
from collections.abc import Sequence

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.facts.words import (
    Choice,
    Field,
    Line,
    Piece,
    Unknown,
    Value,
    known,
    letters_in,
    text_of,
    unknown,
)
from serried.launch.shell import pipes
from serried.launch.shell.lexer import Lexer
from serried.launch.shell.parameters import Parameters, short
from serried.launch.shell.parser import parse
from serried.launch.shell.scope import Scope
from serried.launch.shell.split import distribute, split
from serried.launch.shell.syntax import (
    Arithmetic,
    HeldPart,
    Literal,
    Parameter,
    Part,
    Simple,
    Substitution,
    Text,
    Word,
)
from serried.limits import SCRIPT_COMMAND, SCRIPT_VALUE

# 'scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l', and the same without a count.
COUNTS_HOSTS = re.compile(r"scontrol\s+show\s+hostnames?\b.*\|\s*wc\s+-[lw]\s*$", re.S)
LISTS_HOSTS = re.compile(r"^\s*scontrol\s+show\s+hostnames?\b[^|]*$", re.S)
NAMES_PATH = re.compile(r"\s*(?:realpath|readlink\s+-[ef])\s+([\w./-]*\w)\s*")
"""Commands that make a path whole; the file it names stays the same."""
# '$(which python3)', a path to the program of that name.
NAMES_TOOL = re.compile(
    r"\s*(?:which|command -v|type -P)\s+(python[\d.]*|torchrun|deepspeed|accelerate)\s*"
)
# '$(echo "$CMD" | sed -e 's/  */ /g')', which makes one blank of several.
SQUEEZES = re.compile(
    r"\s*echo\s+\"?\$\{?(\w+)\}?\"?\s*\|\s*(?:sed\s+(?:-e\s+)?(['\"])s/(?:  \*| \\\+| \+)/ /g\2|"
    r"tr\s+-s\s+(?:' '|\" \")|xargs)\s*"
)
COUNTS_PARTS = re.compile(
    r"\s*echo\s+\"?\$\{?(\w+)\}?\"?\s*\|\s*(?:"
    r"tr\s+['\"]?([,;:])['\"]?\s+['\"]\\n['\"]\s*\|\s*wc\s+-l|"
    r"awk\s+-F\s*['\"]?([,;:])['\"]?\s+'\{\s*print\s+NF\s*;?\s*\}')\s*"
)
"""``echo $CUDA_VISIBLE_DEVICES | tr ',' '\\n' | wc -l``, the number of parts of a list."""

PRINTS = re.compile(r"\s*(?:echo|printf|basename|seq|grep|cut|awk|wc|tr|sed)\s")
"""Commands that print what follows from their words, or from a text that they are handed."""

EXPR = re.compile(r"\s*expr\s+((?:[\w${}]+\s+(?:[-+/%]|\\\*)\s+)+[\w${}]+)\s*")
"""``expr $GPUS / 8``, which counts as ``$((GPUS / 8))`` does."""


class _Fields:
    """Puts words together from values: one after the other they make one word, until it ends."""

    def __init__(self) -> None:
        self.done: list[Field] = []
        self.is_open = False
        """Tells whether there is a word to be gone on with; it may be empty so far."""
        self._pieces: list[Piece | Unknown | Choice] = []

    def end(self) -> None:
        """Ends the word that is open, if one is."""
        if self.is_open:
            self.done.append(Field(tuple(self._pieces)))
        self._pieces, self.is_open = [], False

    def join(self, value: Value) -> None:
        """Goes on with the word that is open, or begins one."""
        self._pieces += value
        self.is_open = True

    def take(self, value: Value, words: Sequence[Field]) -> None:
        """Takes in a value that is divided into ``words``.

        Its first word goes on with what is open, and its last stays open, unless a blank stands
        there. A word of an open choice stands for itself: what is known goes on around it.
        """
        begins, ends = _blank_ends(value)
        if begins:
            self.end()
        for i, each in enumerate(words):
            if i:
                self.end()
            if each.maybe:
                self.done.append(each)
            else:
                self.join(each.pieces)
        if ends:
            self.end()


class Expansion:
    """Expands words in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.parameters = Parameters(scope, self.value)

    # ------------------------------------------------------------------- words

    def value(self, word: Word) -> Value:
        """Returns a word as one value, as on the right of ``NAME=``.

        Elements of an array stand with a blank between, and what is not known stands once.
        """
        pieces: list[Piece | Unknown | Choice] = []
        for part in word:
            elements = self._elements(part)
            for i, element in enumerate(elements):
                if i:
                    pieces.append(Piece(" ", part_line(part)))
                # "$A$A" with A not known is no more than not known; text may well stand twice.
                pieces += (each for each in element if pieces[-1:] != [each] or _is_text(each))
        value = tuple(pieces)
        letters = letters_in(value)
        self.scope.steps.spend(1 + len(value) // 2 + letters // 64)
        if letters > SCRIPT_VALUE.most:
            line = part_line(word[0])
            why = said("a value on line {line} grows beyond a million letters", line=line)
            return unknown(why, line)
        return value

    def text(self, word: Word) -> str | None:
        """Returns a word as text, or None when a part of it is not known."""
        return text_of(self.value(word))

    def fields(self, words: Sequence[Word]) -> list[Field]:
        """Returns the words of a command: expanded, split, choices spread out."""
        fields: list[Field] = []
        for word in words:
            for each in self._fields(word):
                made = distribute(each)
                self.scope.steps.spend(2 * len(made) + len(each.pieces))
                fields += made
        return fields

    def _fields(self, word: Word) -> list[Field]:
        """Returns the words that one word becomes, where A="x y" and ARGS=(1 2).

        --a=$A            --a=x | y      a blank in a value ends the word
        "$A"b             x yb           quoted text stays as it is
        -"${ARGS[@]}"-    -1 | 2-        each element but the first begins a word
        ""                an empty word  quotes make a word even of nothing
        """
        made = _Fields()
        for place, part in enumerate(word):
            # Text that stands in the script was divided when it was read, quoted or not.
            is_whole = isinstance(part, Literal) or part.quoted
            is_last = place == len(word) - 1
            for i, element in enumerate(self._elements(part)):
                self.scope.steps.spend(1 + letters_in(element) // 16)
                is_glued = made.is_open and not i
                if i:
                    made.end()
                if is_whole:
                    made.join(element)
                else:
                    made.take(element, split(element, after=is_glued, before=not is_last))
        made.end()
        return made.done

    def _elements(self, part: Part) -> list[Value]:
        """Returns the words that a part makes: one, but for ``$@`` and ``${ARRAY[@]}``."""
        if isinstance(part, Literal):
            return [known(part.text, part.line, part.via)]
        if isinstance(part, HeldPart):
            return [(part.piece,)]
        if isinstance(part, Substitution):
            return [self._substitution(part)]
        if isinstance(part, Arithmetic):
            return [self.parameters.arithmetic(part.expression, part.line, part.source)]
        # Only the bare '$@' and '${ARGS[@]}' make several words: with an operator, or '#' in front,
        # they come to one value.
        if part.name in ("@", "*") and not part.operator and not part.is_length:
            return _starred(part, list(self.scope.arguments or []))
        if part.index in ("@", "*") and not part.is_length and not part.operator:
            return _starred(part, self.scope.elements(part.name))
        return [self.parameters.parameter(part)]

    def _substitution(self, part: Substitution) -> Value:
        if len(part.command) > SCRIPT_COMMAND.most:
            return (Unknown(_not_run(part), part.line),)
        # Nothing is run. What a few commands print follows from their text: how many hosts a job
        # has, a path, the length of a list, a sum. Of a list of hosts at least the length is known.
        if COUNTS_HOSTS.search(part.command):
            return self.parameters.look_up("SLURM_NNODES", part.line)
        if path := NAMES_PATH.fullmatch(part.command):
            return known(path[1], part.line)
        if tool := NAMES_TOOL.fullmatch(part.command):
            return known(tool[1], part.line)
        if held := SQUEEZES.fullmatch(part.command):
            # Words stay as they are, those that are not known among them.
            return self.parameters.look_up(held[1], part.line)
        if parts := COUNTS_PARTS.fullmatch(part.command):
            listed = text_of(self.parameters.look_up(parts[1], part.line))
            if listed:
                number = str(listed.count(parts[2] or parts[3]) + 1)
                return known(number, part.line, f"$({short(part.command)})")
        if sum_ := EXPR.fullmatch(part.command):
            words = Lexer(Text.of(sum_[1].replace("\\*", "*"), part.line.file, part.line.number))
            return self.parameters.arithmetic(words.all(), part.line, f"$({part.command})")
        if text := self._printed(part):
            return known(text, part.line, f"$({short(part.command)})")
        lists = LISTS_HOSTS.match(part.command)
        return (Unknown(_not_run(part), part.line, counted_by="SLURM_NNODES" if lists else ""),)

    def _printed(self, part: Substitution) -> str | None:
        """Returns what a pipe of plain tools prints, None where that is not known."""
        if not PRINTS.match(part.command):
            return None
        self.scope.steps.spend(len(part.command))
        try:
            script = parse(Text.of(part.command, part.line.file, part.line.number))
        except InputError:
            return None
        if len(script) != 1 or len(script[0].parts) != 1:
            return None
        commands: list[list[str]] = []
        given: str | None = None
        for command in script[0].parts[0][1].commands:
            if not isinstance(command, Simple) or command.assigns or not command.words:
                return None
            texts = [each.text for each in self.fields(command.words)]
            words = [each for each in texts if each is not None]
            if not words or len(words) < len(texts):
                return None
            for redirect in command.redirects:
                if redirect.operator != "<<<" or commands:
                    return None
                given = self.text(redirect.target)
                if given is None:
                    return None
            commands.append(words)
        return pipes.printed(commands, given)


def _not_run(part: Substitution) -> Sentence:
    return said(
        "$({command}) on line {line} is not run",
        command=short(part.command[: SCRIPT_COMMAND.most]),
        line=part.line,
    )


def _is_text(piece: Piece | Unknown | Choice) -> bool:
    """Tells text from what is not known, which says no more when it stands twice."""
    return isinstance(piece, Piece)


def part_line(part: Part) -> Line:
    """Returns the line that a part of a word stands on."""
    return part.piece.line if isinstance(part, HeldPart) else part.line


def _starred(part: Parameter, elements: list[Value]) -> list[Value]:
    """Returns the elements, as one word with blanks between in ``"${ARRAY[*]}"`` and ``"$*"``."""
    if not part.quoted or "*" not in (part.name, part.index) or len(elements) < 2:
        return elements
    blank = known(" ", part.line, part.source)
    return [tuple(piece for each in elements for piece in (*blank, *each))[len(blank) :]]


def _blank_ends(value: Value) -> tuple[bool, bool]:
    """Tells whether a value begins and ends with a blank, which splits it from its neighbours."""
    first, last = (value[0], value[-1]) if value else (None, None)
    return (
        isinstance(first, Piece) and first.text[:1].isspace(),
        isinstance(last, Piece) and last.text[-1:].isspace(),
    )
