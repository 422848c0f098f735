"""Sets variables, arrays and their elements, and follows ``((…))`` and ``let``."""

from __future__ import annotations

import re

from serried.launch.facts.whole_number import count
from serried.launch.facts.words import Field, Line, Value, known, named, text_of
from serried.launch.shell.conditions import OPEN, RAN, Verdict
from serried.launch.shell.expansion import Expansion
from serried.launch.shell.lexer import Lexer
from serried.launch.shell.scope import Scope
from serried.launch.shell.split import as_choice
from serried.launch.shell.syntax import Assign, Text, Word

# 'N = 8' and 'N += 8', but not the comparison 'N == 8'.
ASSIGNS = re.compile(r"\s*([A-Za-z_]\w*)\s*([-+*/%]?)=(?!=)(.*)", re.S)
# 'N++' and '--N'.
STEPS = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*(\+\+|--)|(\+\+|--)\s*([A-Za-z_]\w*))\s*")


def assign(scope: Scope, given: Assign) -> None:
    """Sets a variable, an array or an element of one."""
    if given.elements is not None:
        _array(scope, given)
        return
    value = Expansion(scope).value(given.value)
    value = named(value, given.name) or known("", given.line)
    old = scope.variables.get(given.name)
    if given.appends or given.index:
        scope.steps.spend(len(old or ()) // 4)
    if given.index:
        _element(scope, given, value)
    elif not given.appends or old is None:
        scope.variables[given.name] = value
    elif isinstance(old, list):
        # As in bash, 'ARGS+=x' without brackets goes to the first element of an array.
        scope.variables[given.name] = [(*(old[0] if old else ()), *value), *old[1:]]
    else:
        scope.variables[given.name] = (*old, *value)


def _array(scope: Scope, given: Assign) -> None:
    fields: list[Field] = []
    keyed: dict[str, Value] = {}
    for word in given.elements or ():
        pair = _keyed(scope, word)
        if pair:
            keyed[f"{given.name}[{pair[0]}]"] = pair[1]
        else:
            fields += Expansion(scope).fields([word])
    if not given.appends:
        scope.unset(given.name)
    scope.variables |= keyed
    # An element in one alternative only stays a choice, so that its condition is kept.
    array = [each.pieces if not each.maybe else as_choice(each) for each in fields]
    before = scope.row(given.name)
    scope.steps.spend(len(before) // 4)
    last = max(scope.beyond(given.name), default=-1)
    # Behind a gap, 'ARGS+=(x)' goes on after the last element.
    if last < len(before):
        scope.variables[given.name] = [*before, *array]
    else:
        scope.variables |= {f"{given.name}[{last + 1 + i}]": each for i, each in enumerate(array)}


def _keyed(scope: Scope, word: Word) -> tuple[str, Value] | None:
    """Returns key and value of ``[key]=value``."""
    value = Expansion(scope).value(word)
    found = re.match(r"\[([^\]]+)\]=", Field(value).start)
    return (found[1].strip("\"'"), Field(value).tail(found.end()).pieces) if found else None


def _element(scope: Scope, given: Assign, value: Value) -> None:
    index = Expansion(scope).parameters.index(given.index, given.line)
    # An array takes an index that it has, or the next one, into its row. Other indices, and the
    # words of 'declare -A', are kept beside it, each as a variable 'A[key]'.
    row, place = scope.row(given.name), count(index)
    if place is None or place > len(row):
        scope.variables[f"{given.name}[{index}]"] = value
        return
    scope.variables.pop(f"{given.name}[{index}]", None)
    scope.variables[given.name] = [*row[:place], value, *row[place + 1 :]]


def calculate(scope: Scope, text: str, line: Line) -> Verdict:
    """Follows an arithmetic command: sets what it sets, and tells whether it is not zero."""
    # '((N = 8))' and '((N++))' are written for what they set, '((N > 1))' for its answer.
    if found := ASSIGNS.fullmatch(text):
        name, operator, right = found[1], found[2], found[3]
        made = _worked_out(scope, f"{name} {operator} ({right})" if operator else right, line)
        scope.variables[name] = made
        return RAN
    if found := STEPS.fullmatch(text):
        name, sign = found[1] or found[4], (found[2] or found[3])[0]
        scope.variables[name] = _worked_out(scope, f"{name} {sign} 1", line)
        return RAN
    value = text_of(_worked_out(scope, text, line))
    return OPEN if value is None else Verdict(value != "0")


def _worked_out(scope: Scope, text: str, line: Line) -> Value:
    words = Lexer(Text.of(text, line.file, line.number)).all()
    return Expansion(scope).parameters.arithmetic(words, line, f"(({text.strip()}))")
