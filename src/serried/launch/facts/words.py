"""Values of a shell script: text that knows its line, what is not known, and choices.

A value is pieces in order. Where a condition cannot be decided, both outcomes are kept as
a Choice, so that flags common to both are still known:

    ARGS="--tp 2"                             Piece
    if docker ps; then ARGS+=" --ep 4"; fi    Piece, Choice(" --ep 4" or nothing)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from serried.finding import Sentence

_numbers = count(1)


@dataclass(frozen=True)
class Line:
    """Names a line of a file, counted from 1; it prints as its number."""

    file: str
    number: int

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True)
class Piece:
    """Holds known text, the line it was written on, and the variable it came through."""

    text: str
    line: Line
    via: str = ""


@dataclass(frozen=True)
class Unknown:
    """Stands for text that only running the script would tell, and says why.

    ``name`` is the variable that was never set, where that is the reason; ``counted_by`` is
    the variable that says how many words the text has.
    """

    because: Sentence
    line: Line
    name: str = ""
    counted_by: str = ""


@dataclass(frozen=True)
class Choice:
    """Holds the outcomes of a condition that cannot be decided; one of them comes true.

    Each alternative is a list of words (an array's elements), or one value to be split.
    """

    alternatives: tuple[tuple[Value, ...], ...]
    because: Sentence
    line: Line
    number: int = field(default_factory=lambda: next(_numbers))
    letters: int = field(init=False, repr=False, compare=False)
    """The letters of all alternatives; a choice may hold another many times, so it counts once."""

    def __post_init__(self) -> None:
        """Counts the letters, from those of the choices inside."""
        counts = (1 + letters_in(each) for words in self.alternatives for each in words)
        object.__setattr__(self, "letters", 1 + sum(counts))


Value = tuple[Piece | Unknown | Choice, ...]
Array = list[Value]


@dataclass(frozen=True)
class Maybe:
    """Says that a word stands only in one alternative of a choice."""

    number: int
    alternative: int
    num_alternatives: int
    because: Sentence


@dataclass(frozen=True)
class Field:
    """Holds one word of a command after expansion; ``maybe`` lists the choices it hangs on."""

    pieces: Value
    maybe: tuple[Maybe, ...] = ()

    @property
    def text(self) -> str | None:
        """The word as text; None when a part of it is not known."""
        return text_of(self.pieces)

    @property
    def line(self) -> Line:
        """The line that the word was written on."""
        return self.pieces[0].line if self.pieces else Line("", 0)

    @property
    def via(self) -> str:
        """The variable or expression that brought the end of the word, if any."""
        last = self.pieces[-1] if self.pieces else None
        return last.via if isinstance(last, Piece) else ""

    @property
    def because(self) -> Sentence:
        """Why the word is not known."""
        return next(piece.because for piece in self.pieces if not isinstance(piece, Piece))

    def tail(self, letters: int) -> Field:
        """Returns the word without its first ``letters`` known letters.

        >>> Field((Piece("--tp=2", Line("x.sh", 1)),)).tail(5).text
        '2'
        """
        rest: list[Piece | Unknown | Choice] = []
        for piece in self.pieces:
            if isinstance(piece, Piece) and letters:
                cut = min(letters, len(piece.text))
                letters -= cut
                piece = replace(piece, text=piece.text[cut:])
                if not piece.text:
                    continue
            rest.append(piece)
        return Field(tuple(rest), self.maybe)

    @property
    def start(self) -> str:
        """The known letters that the word begins with."""
        known = ""
        for piece in self.pieces:
            if not isinstance(piece, Piece):
                break
            known += piece.text
        return known


def text_of(value: Value) -> str | None:
    """Returns a value as text, or None when a part of it is not known."""
    if all(isinstance(piece, Piece) for piece in value):
        return "".join(piece.text for piece in value if isinstance(piece, Piece))
    return None


def reason_of(value: Value) -> Unknown | Choice | None:
    """Returns the first piece of a value that is not known."""
    return next((piece for piece in value if not isinstance(piece, Piece)), None)


def known(text: str, line: Line, via: str = "") -> Value:
    """Returns ``text`` as a value."""
    return (Piece(text, line, via),)


def letters_in(value: Value) -> int:
    """Returns how much text a value holds, every alternative counted."""
    return sum(
        len(piece.text)
        if isinstance(piece, Piece)
        else piece.letters
        if isinstance(piece, Choice)
        else 1
        for piece in value
    )


def named(value: Value, name: str) -> Value:
    """Returns a value of one word with ``name`` as its variable, unless it has one already."""
    if len(value) != 1 or not isinstance(value[0], Piece):
        return value
    piece = value[0]
    # Text such as ARGS="--tp 2" is several words, and each has a place of its own.
    is_word = bool(piece.text) and not any(letter.isspace() for letter in piece.text)
    return (replace(piece, via=name),) if is_word and not piece.via else value


def unknown(because: Sentence, line: Line) -> Value:
    """Returns a value that is not known, with the reason."""
    return (Unknown(because, line),)
