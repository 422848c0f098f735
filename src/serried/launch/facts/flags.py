"""Options of a command: ``--name value``, ``--name=value``, switches and lists, with places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from serried.finding import Sentence, said
from serried.launch.facts.found import TEXT_FIELDS, Facts, Found, chained, either, not_a_number
from serried.launch.facts.whole_number import NUMBER
from serried.launch.facts.words import Field, Maybe

# '--tp' and '-n', but not the value '-1'.
OPTION = re.compile(r"--?[A-Za-z]")


@dataclass(frozen=True)
class Flag:
    """Holds one option as written, its name with dashes for underscores, and its values."""

    name: str
    key: str
    word: Field
    values: tuple[Field, ...] = ()
    is_joined: bool = False
    """Tells whether the value stands behind '=' in the same word."""


def flags_of(fields: Sequence[Field]) -> list[Flag]:
    """Returns the options among the words of a command, in order.

    >>> from serried.launch.shell.split import split
    >>> from serried.launch.facts.words import Line, Piece
    >>> words = split((Piece("--tp 2 --sp --sizes 2 4 --pp=8", Line("x.sh", 1)),))
    >>> [(flag.name, [each.text for each in flag.values]) for flag in flags_of(words)]
    [('tp', ['2']), ('sp', []), ('sizes', ['2', '4']), ('pp', ['8'])]
    """
    flags: list[Flag] = []
    values: list[Field] = []
    # Backwards, the words gathered so far are the values of the option that is met next.
    for each in reversed(fields):
        start = each.start
        if not OPTION.match(start):
            values.append(each)
            continue
        key, equals, _ = start.partition("=")
        own = (each.tail(len(key) + 1),) if equals else tuple(reversed(values))
        flags.append(Flag(plain(key), key, each, own, bool(equals)))
        values = []
    return flags[::-1]


def loose(fields: Sequence[Field]) -> list[Field]:
    """Returns the words that are not known and stand where an option may: they may be some."""
    words: list[Field] = []
    before = at_choice = ""
    last: Maybe | None = None
    for each in fields:
        hangs = each.maybe[0] if each.maybe else None
        if hangs and last and hangs.number == last.number:
            # Another outcome stands where the choice began.
            before = before if hangs.alternative == last.alternative else at_choice
        else:
            at_choice = before
        if each.text is None and not each.start and not OPTION.match(before):
            words.append(each)
        before, last = each.start, hangs
    return words


def plain(key: str) -> str:
    """Returns an option's name without its leading dashes, with dashes for underscores."""
    return key.lstrip("-").replace("_", "-")


@dataclass(frozen=True)
class Meaning:
    """Says what an option of a framework means: a name of ours and what its value is.

    ``kind`` is size, text, yes (a switch), no (a switch that turns ``name`` off) or list.
    """

    name: str
    kind: str = "size"


Meanings = Mapping[str, Meaning]


def sizes(**names: str) -> dict[str, Meaning]:
    """Returns meanings of options that are sizes, ``tensor_parallel="tp"``.

    >>> sizes(pp_size="pp")
    {'pp-size': Meaning(name='pp', kind='size')}
    """
    return {key.replace("_", "-"): Meaning(name) for key, name in names.items()}


def take(facts: Facts, flags: Sequence[Flag], meanings: Meanings) -> None:
    """Adds to ``facts`` what the flags that ``meanings`` knows say."""
    perhaps: dict[str, list[tuple[Maybe, Found]]] = {}
    standing: set[str] = set()
    for flag in flags:
        meaning = meanings.get(flag.name)
        if meaning:
            for maybe, found in _claims(facts, flag, meaning):
                if maybe is None:
                    facts.claim(meaning.name, found)
                else:
                    perhaps.setdefault(meaning.name, []).append((maybe, found))
                    # In '--tp $TP' the option stands in any case, though its value hangs on a
                    # condition. In '$EXTRA', which is '--tp 2' or nothing, the option hangs itself.
                    standing |= set() if flag.word.maybe else {meaning.name}
    for name, claims in perhaps.items():
        _settle(facts, name, claims, stands=name in standing)


def _claims(facts: Facts, flag: Flag, meaning: Meaning) -> Iterator[tuple[Maybe | None, Found]]:
    """Yields the values a flag gives, each with the choice it hangs on, if any."""
    # A switch stands alone ('--use-sharp') or with a word ('--use-sharp false'). One that turns a
    # setting off, such as '--disable-gloo-process-groups', has that word turned round.
    if meaning.kind == "list":
        values = _as_list(facts, flag, meaning)
    elif meaning.kind in ("yes", "no") and not _is_switch_value(flag):
        values = [(flag.word, "true" if meaning.kind == "yes" else "false")]
    elif meaning.kind == "no":
        values = [(each, _turned(each.text)) for each in flag.values[:1]]
    else:
        values = [(each, each.text) for each in _first(flag)]
    if not values and meaning.kind in ("size", "text"):
        facts.lack(meaning.name, _no_value(flag))
    for word, text in values:
        hangs = (flag.word.maybe or word.maybe)[:1]
        maybe = hangs[0] if hangs else None
        value = _value(facts, flag, meaning, word, text)
        if value is not None:
            yield maybe, _found(flag, word, value)


def _first(flag: Flag) -> tuple[Field, ...]:
    """Returns the value of a flag: one word, or one for each outcome of a choice."""
    if not flag.values:
        return ()
    first = flag.values[0]
    if not first.maybe or flag.word.maybe:
        return (first,)
    # '--tp $TP', where an open condition sets TP to 2 or 4, has two words, one for each outcome.
    number = first.maybe[0].number
    return tuple(each for each in flag.values if each.maybe and each.maybe[0].number == number)


def _as_list(facts: Facts, flag: Flag, meaning: Meaning) -> list[tuple[Field, str | None]]:
    # Words that hang on a condition of their own are no sure part of the list.
    words = [each for each in flag.values if not each.maybe or flag.word.maybe]
    if not words:
        return []
    unknown = next((each for each in words if each.text is None), None)
    if unknown:
        return [(unknown, None)]
    return [(words[0], " ".join(each.text or "" for each in words))]


def _is_switch_value(flag: Flag) -> bool:
    text = flag.values[0].text if flag.values else None
    return bool(text) and str(text).lower() in ("true", "false", "0", "1", "yes", "no")


def _turned(text: str | None) -> str | None:
    if text is None:
        return None
    return "false" if text.lower() in ("true", "1", "yes") else "true"


def _no_value(flag: Flag) -> Sentence:
    line = flag.word.line
    return said("{file} line {line} gives {key} no value", file=line.file, line=line, key=flag.key)


def _value(
    facts: Facts, flag: Flag, meaning: Meaning, word: Field, text: str | None
) -> int | str | None:
    """Returns a word as the value it should be; says why not where it is none."""
    if text is None:
        facts.lack(meaning.name, said("{key}: {why}", key=flag.key, why=word.because))
        return None
    is_number = meaning.kind == "size" and meaning.name not in TEXT_FIELDS
    if not is_number:
        return text
    if NUMBER.fullmatch(text):
        return int(text)
    # '--expert-tensor-parallel-size None' is as good as not given.
    if text.lower() not in ("none", "null"):
        facts.lack(meaning.name, not_a_number(place(flag.key, word), text))
    return None


def place(key: str, word: Field) -> Sentence:
    """Says where the word that an option has as its value was written."""
    line = word.line
    return Found("", line.file, line.number, key, word.via).where


def _found(flag: Flag, word: Field, value: int | str) -> Found:
    line = word.line if word.line.number else flag.word.line
    return Found(value, line.file, line.number, flag.key, via=word.via)


def _settle(facts: Facts, name: str, claims: list[tuple[Maybe, Found]], *, stands: bool) -> None:
    """Settles values that hang on open conditions: certain only if every outcome agrees.

    An option that ``stands`` in every outcome has no value in those that set none: such a
    command does not start, so they have no say.
    """
    by_value = {found.value: found for _, found in reversed(claims)}
    values = set(by_value)
    by_choice: dict[int, set[int]] = {}
    for maybe, _ in claims:
        by_choice.setdefault(maybe.number, set()).add(maybe.alternative)
    first = claims[0][0]
    covers_all = len(by_choice[first.number]) == first.num_alternatives
    certain = facts.claims.get(name, [])
    is_settled = covers_all or (stands and name not in facts.lacks)
    # One value is settled where every outcome sets it, or where the command gives the same one
    # without condition elsewhere.
    if len(values) == 1 and (is_settled or any(each.value in values for each in certain)):
        facts.claim(name, claims[0][1])
        return
    places = chained(either, [found.told for found in list(by_value.values())[::-1][:3]])
    if not covers_all and not certain:
        facts.lack(
            name,
            said("it is {places} only if {because}", places=places, because=_plainly(first)),
        )
        return
    facts.lack(name, said("it is {places}: {because}", places=places, because=first.because))


def _plainly(maybe: Maybe) -> Sentence:
    line = maybe.because.values.get("line")
    return said("the condition on line {line} holds", line=line)
