"""Joins what a shell variable is after each outcome of a condition that cannot be decided.

if docker ps; then A="--tp 2 --ep 4"; else A="--tp 2"; fi     --tp 2, then a choice
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from serried.finding import Sentence
from serried.launch.facts.words import (
    Array,
    Choice,
    Line,
    Value,
    letters_in,
    unknown,
)
from serried.limits import SCRIPT_CHOICE

T = TypeVar("T")


def merge(
    outcomes: Sequence[Value | Array | None], because: Sentence, line: Line
) -> Value | Array | None:
    """Joins what a variable is after each outcome of a condition that cannot be decided.

    What all outcomes begin and end with stays known; the rest becomes a Choice. None
    stands for a variable that an outcome leaves unset.
    """
    if all(outcome is outcomes[0] or outcome == outcomes[0] for outcome in outcomes[1:]):
        return outcomes[0]
    if sum(_letters(outcome) for outcome in outcomes) > SCRIPT_CHOICE.most:
        return unknown(because, line)
    if any(isinstance(outcome, list) for outcome in outcomes):
        return _merge_arrays([_as_array(outcome) for outcome in outcomes], because, line)
    values = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    if len(values) < len(outcomes):
        whole_values = tuple((value,) for value in _distinct(values))
        return (Choice((*whole_values, ()), because, line),)
    head = _common(values)
    tail = _common([value[len(head) :][::-1] for value in values])[::-1]
    middles = [value[len(head) : len(value) - len(tail)] for value in values]
    alternatives = tuple((middle,) if middle else () for middle in _distinct(middles))
    return (*head, Choice(alternatives, because, line), *tail)


def _letters(outcome: Value | Array | None) -> int:
    if isinstance(outcome, list):
        return sum(1 + letters_in(each) for each in outcome)
    return letters_in(outcome or ())


def _merge_arrays(arrays: list[Array], because: Sentence, line: Line) -> Array:
    head = _common([tuple(array) for array in arrays])
    tail = _common([tuple(array[len(head) :][::-1]) for array in arrays])[::-1]
    middles = [tuple(array[len(head) : len(array) - len(tail)]) for array in arrays]
    choice = Choice(tuple(_distinct(middles)), because, line)
    return [*head, (choice,), *tail]


def _as_array(outcome: Value | Array | None) -> Array:
    if outcome is None:
        return []
    return outcome if isinstance(outcome, list) else [outcome]


def _common(sequences: Sequence[tuple[T, ...]]) -> tuple[T, ...]:
    length = 0
    for items in zip(*sequences, strict=False):
        if any(item != items[0] for item in items[1:]):
            break
        length += 1
    return sequences[0][:length]


def _distinct(items: Iterable[T]) -> list[T]:
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
