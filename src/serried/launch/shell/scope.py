"""What a shell script has set so far, how much work that took, and how outcomes are joined.

Where a condition cannot be decided, each outcome is followed in a scope of its own, and the
scopes are joined: what all of them begin and end with stays known, the rest becomes a Choice.

if docker ps; then A="--tp 2 --ep 4"; else A="--tp 2"; fi     --tp 2, then a choice

Doubling variables, loops in loops and files that read one another grow without end in a few
lines. What is counted is what takes time: pieces of values, words, letters read once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.facts.whole_number import count
from serried.launch.facts.words import Array, Choice, Line, Value, letters_in, unknown
from serried.launch.shell.syntax import Command
from serried.limits import SCRIPT_CHOICE, SCRIPT_STEPS

T = TypeVar("T")
# 'A[1]', as 'unset "A[1]"' names one element.
ELEMENT = re.compile(r"([A-Za-z_]\w*)\[([^\]]+)\]")


@dataclass
class StepCount:
    """Counts what was done, and knows the line that is being followed."""

    line: Line
    done: int = 0

    def spend(self, amount: int) -> None:
        """Counts ``amount`` more; raises InputError beyond what a launch script takes."""
        self.done += amount
        if self.done > SCRIPT_STEPS.most:
            raise InputError(
                "{file} line {line}: the script takes more steps than a launch script does",
                file=self.line.file,
                line=self.line,
            )


@dataclass
class Scope:
    """Holds what the script has set: variables, arguments and functions."""

    variables: dict[str, Value | Array] = field(default_factory=dict)
    arguments: list[Value] | None = None
    """Arguments of the function that runs; None at the top, where they are not known."""
    functions: dict[str, Command] = field(default_factory=dict)
    is_slurm: bool = False
    """Tells whether Slurm runs the script, so that its variables are set."""
    steps: StepCount = field(default_factory=lambda: StepCount(Line("", 0)))
    """What following the script took so far; all copies share it."""

    def copy(self) -> Scope:
        """Returns a scope that changes on its own."""
        self.steps.spend(1 + (len(self.variables) + len(self.functions)) // 8)
        return replace(
            self,
            variables=dict(self.variables),
            arguments=None if self.arguments is None else list(self.arguments),
            functions=dict(self.functions),
        )

    def beyond(self, name: str) -> dict[int, Value]:
        """Returns the elements of an array beyond its row, by index: 9 for ``A=(x y); A[9]=z``.

        The row is the variable itself; these stand beside it, each as a variable ``A[9]``.
        """
        self.steps.spend(1 + len(self.variables) // 8)
        start = f"{name}["
        keys = (key for key in self.variables if key.startswith(start))
        indices = sorted(
            int(key[len(start) : -1]) for key in keys if key[len(start) : -1].isdecimal()
        )
        found = ((index, self.variables[f"{start}{index}]"]) for index in indices)
        return {index: value for index, value in found if isinstance(value, tuple)}

    def row(self, name: str) -> Array:
        """Returns the elements of an array from 0 on, one of a plain variable, none where unset."""
        held = self.variables.get(name)
        return [] if held is None else held if isinstance(held, list) else [held]

    def elements(self, name: str) -> Array:
        """Returns all elements of an array, as ``${A[@]}`` has them: by index, without the gaps."""
        return [*self.row(name), *self.beyond(name).values()]

    def num_elements(self, name: str) -> int:
        """Returns how many elements an array has, those with words for keys too."""
        self.steps.spend(1 + len(self.variables) // 8)
        beside = sum(key.startswith(f"{name}[") for key in self.variables)
        return len(self.row(name)) + beside

    def unset(self, name: str) -> None:
        """Forgets a variable, an element of an array, or an array with all its elements."""
        self.steps.spend(1 + len(self.variables) // 8)
        element = ELEMENT.fullmatch(name)
        if element and element[2] not in ("@", "*"):
            self._unset_element(element[1], element[2])
            return
        name = element[1] if element else name
        for key in [key for key in self.variables if key.startswith(f"{name}[")]:
            del self.variables[key]
        self.variables.pop(name, None)

    def _unset_element(self, name: str, index: str) -> None:
        """Forgets one element; those of the row behind it keep their indices beyond a gap."""
        place, row = count(index), self.row(name)
        self.variables.pop(f"{name}[{index}]", None)
        if place is None or place >= len(row):
            return
        self.variables[name] = row[:place]
        for i, each in enumerate(row[place + 1 :], place + 1):
            self.variables[f"{name}[{i}]"] = each


def merged(scopes: Sequence[Scope], line: Line) -> Scope:
    """Returns what is set after outcomes, on ``line``, that cannot be told apart."""
    because = said("the condition on line {line} is open", line=line)
    after = scopes[0].copy()
    names = {name for scope in scopes for name in scope.variables}
    after.steps.spend(len(names) // 2)
    for name in names:
        outcome = _merge([scope.variables.get(name) for scope in scopes], because, line)
        if outcome is None:
            after.variables.pop(name, None)
        else:
            after.variables[name] = outcome
    # Where outcomes define one function differently, the first outcome's stays.
    for scope in scopes:
        after.functions = {**scope.functions, **after.functions}
    return after


def _merge(
    outcomes: Sequence[Value | Array | None], because: Sentence, line: Line
) -> Value | Array | None:
    """Joins what a variable is after each outcome of a condition that cannot be decided.

    What all outcomes begin and end with stays known; the rest becomes a Choice. None
    stands for a variable that an outcome leaves unset.
    """
    # Most variables are the same object in every outcome, which 'is' tells without a look inside.
    if all(outcome is outcomes[0] or outcome == outcomes[0] for outcome in outcomes[1:]):
        return outcomes[0]
    if sum(_letters(outcome) for outcome in outcomes) > SCRIPT_CHOICE.most:
        return unknown(because, line)
    if any(isinstance(outcome, list) for outcome in outcomes):
        return _merge_arrays([_as_array(outcome) for outcome in outcomes], because, line)
    values = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    # Where an outcome leaves it unset, one alternative is no word at all.
    if len(values) < len(outcomes):
        whole_values = tuple((value,) for value in _distinct(values))
        return (Choice((*whole_values, ()), because, line),)
    # The end is looked for behind the common beginning only, so that no piece counts for both.
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
