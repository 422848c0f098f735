"""Words of a shell command: values split at blanks, and choices spread out over words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from serried.launch.facts.words import Choice, Field, Maybe, Piece, Unknown, Value, text_of


def split(
    value: Value, maybe: tuple[Maybe, ...] = (), *, after: bool = False, before: bool = False
) -> list[Field]:
    """Splits a value at blanks, as the shell does with text that is not quoted.

    ``after`` and ``before`` say that it stands after, and before, other text of its word.

    >>> from serried.launch.facts.words import Line
    >>> line = Line("x.sh", 1)
    >>> [field.text for field in split((Piece("--tp 2  --pp", line), Piece(" 4", line)))]
    ['--tp', '2', '--pp', '4']
    """
    fields: list[Field] = []
    current: list[Piece | Unknown | Choice] = []

    def flush() -> None:
        if current:
            fields.append(Field(tuple(current), maybe))
            current.clear()

    for i, piece in enumerate(value):
        if isinstance(piece, Piece):
            for part in re.split(r"(\s+)", piece.text):
                if part.isspace():
                    flush()
                elif part:
                    current.append(replace(piece, text=part))
        elif isinstance(piece, Choice) and not (
            (current and _glues(piece))
            or (_is_short(piece) and ((after and not i) or _goes_on(value[i + 1 :], before)))
        ):
            # Each alternative may be several words, or none, so the choice stands alone. It
            # stays inside its word where one goes on from the text before it, or where all are
            # short and text stands next to it: 'x_$A.json', whose A is 1 or 2.
            flush()
            fields += _alternatives(piece, maybe, splits=True)
        else:
            current.append(piece)
    flush()
    return fields


def distribute(field: Field) -> list[Field]:
    """Returns a word that holds a choice as the words it may be, each with its choice.

    Quoted text of several words stays one: it is read when another shell gets it.

    >>> from serried.finding import said
    >>> from serried.launch.facts.words import Line
    >>> line, why = Line("x.sh", 1), said("a condition")
    >>> nodes = Choice((((Piece("1", line),),), ((Piece("2", line),),)), why, line)
    >>> [each.text for each in distribute(Field((Piece("--nnodes=", line), nodes)))]
    ['--nnodes=1', '--nnodes=2']
    """
    choices = [piece for piece in field.pieces if isinstance(piece, Choice)]
    if not choices:
        return [field]
    choice = choices[0]
    if len(field.pieces) == 1:
        return _alternatives(choice, field.maybe, splits=False)
    if any(isinstance(piece, Piece) and " " in piece.text for piece in field.pieces):
        return [field]
    # Two choices in one word would have to be crossed, and an alternative of several words would
    # take the word apart; neither is done, so the word is not known.
    if len(choices) > 1 or any(len(words) > 1 for words in choice.alternatives):
        unknowns = (Unknown(choice.because, choice.line),)
        return [Field(unknowns, field.maybe)]
    place = field.pieces.index(choice)
    head, tail = field.pieces[:place], field.pieces[place + 1 :]
    return [
        Field((*head, *(words[0] if words else ()), *tail), _hanging(field.maybe, choice, i))
        for i, words in enumerate(choice.alternatives)
    ]


def as_choice(each: Field, following: Sequence[Field] = ()) -> Value:
    """Returns a word that stands in one alternative as a value: itself there, nothing else.

    Those among the ``following`` words that stand in the others come with it.
    """
    hangs = each.maybe[-1]
    alternatives: list[tuple[Value, ...]] = [()] * hangs.num_alternatives
    alternatives[hangs.alternative] = (each.pieces,)
    for other in following:
        if not other.maybe or other.maybe[-1].number != hangs.number:
            break
        if not alternatives[other.maybe[-1].alternative]:
            alternatives[other.maybe[-1].alternative] = (other.pieces,)
    return (Choice(tuple(alternatives), hangs.because, each.line, hangs.number),)


def joined(fields: Sequence[Field]) -> Value:
    """Returns words as one value, a blank between them, as ``eval`` and ``echo`` read them."""
    pieces: list[Piece | Unknown | Choice] = []
    for i, each in enumerate(fields):
        if i:
            pieces.append(Piece(" ", each.line))
        pieces += each.pieces if not each.maybe else as_choice(each)
    return tuple(pieces)


def _glues(choice: Choice) -> bool:
    """Tells whether an alternative continues the word before it."""
    for words in choice.alternatives:
        # '--tp=$A' goes on where A is '2'; where A is ' --sp' or nothing, it does not.
        first = words[0][0] if words and words[0] else None
        if isinstance(first, Piece) and first.text and not first.text[0].isspace():
            return True
        if first is not None and not isinstance(first, Piece):
            return True
    return False


def _is_short(choice: Choice) -> bool:
    """Tells whether every alternative is one word at most."""
    texts = [[text_of(word) for word in words] for words in choice.alternatives]
    return all(
        len(words) < 2 and all(text is not None and not re.search(r"\s", text) for text in words)
        for words in texts
    )


def _goes_on(rest: Value, before: bool) -> bool:
    """Tells whether the word goes on after a piece, with ``rest`` or with what stands after."""
    first = rest[0] if rest else None
    if first is None:
        return before
    return not isinstance(first, Piece) or not first.text[:1].isspace()


def _alternatives(choice: Choice, maybe: tuple[Maybe, ...], *, splits: bool) -> list[Field]:
    fields: list[Field] = []
    for i, words in enumerate(choice.alternatives):
        hangs = _hanging(maybe, choice, i)
        for word in words:
            fields += split(word, hangs) if splits else [Field(word, hangs)]
    return fields


def _hanging(maybe: tuple[Maybe, ...], choice: Choice, i: int) -> tuple[Maybe, ...]:
    return (*maybe, Maybe(choice.number, i, len(choice.alternatives), choice.because))
