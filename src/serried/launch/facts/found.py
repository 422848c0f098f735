"""What a launch file says: each value with the place it stands, and what it does not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from serried.finding import Sentence, said
from serried.launch.facts.remarks import Remarks
from serried.limits import CLAIMS
from serried.mesh.sizes import TABLE

Value = int | str

FIELDS = (*TABLE, "nodes", "node_gpus", "layers_first", "layers_last", "layers_picture")
"""Neutral names; whatever else a file says is an option under the framework's own name.

GPUs of nodes that differ are such as 4,1.
"""

TEXT_FIELDS = ("order", "layers_picture", "node_gpus")
"""Fields that are words in a file; all others are whole numbers."""


ASKED_BY = {
    **{name: each.option for name, each in TABLE.items()},
    "framework": "--framework NAME",
    "node_gpus": "--gpus-per-node",
}
"""The option that gives what a file may leave open."""


@dataclass(frozen=True)
class Found:
    """Holds one value and where it came from: a file, a line and a key, or a default.

    ``via`` is the variable or expression of a script that carried the value; ``parts`` are
    the values it was computed from.

    >>> str(Found(8, "train.sh", 40, "--tensor-model-parallel-size", via="TP").where)
    'train.sh line 40, --tensor-model-parallel-size by way of TP'
    >>> str(Found(1, default_of="torchrun").where)
    'default of torchrun'
    """

    value: Value
    file: str = ""
    line: int | None = None
    key: str = ""
    via: str = ""
    default_of: str = ""
    parts: tuple[Found, ...] = ()

    @property
    def where(self) -> Sentence:
        """Says in words where the value came from."""
        if self.default_of:
            return said("default of {source}", source=self.default_of)
        if self.parts:
            return chained(_times, [part.told for part in self.parts])
        if self.line is None:
            return said("{file}, {key}", file=self.file, key=self.key)
        if not self.key:
            return said("{file} line {line}", file=self.file, line=self.line)
        if self.via and self.via != self.key:
            return said(
                "{file} line {line}, {key} by way of {via}",
                file=self.file,
                line=self.line,
                key=self.key,
                via=self.via,
            )
        return said("{file} line {line}, {key}", file=self.file, line=self.line, key=self.key)

    @property
    def files(self) -> frozenset[str]:
        """The files that the value, or a part of it, came from."""
        own = frozenset([self.file] if self.file else [])
        return own.union(*(part.files for part in self.parts))

    @property
    def told(self) -> Sentence:
        """Says the value and, in brackets, where it came from."""
        return said("{value} ({where})", value=self.value, where=self.where)


@dataclass(frozen=True)
class Missing:
    """Names what a launch file leaves open, why, and the option that would settle it."""

    name: str
    because: Sentence
    example: str = ""
    """The option as it may be given, where the file leaves only a few ways."""

    @property
    def option(self) -> str:
        """The option that answers, such as ``--world-size``."""
        if self.name in ASKED_BY:
            return ASKED_BY[self.name]
        if self.name in FIELDS:
            return "--" + self.name.replace("_", "-")
        return f"--set {self.name}="

    def __str__(self) -> str:
        return f"{self.name}: {self.because}; give {self.option}"


@dataclass
class Facts:
    """Gathers what one file says, before it is settled: several values may claim a name."""

    file: str
    claims: dict[str, list[Found]] = field(default_factory=dict)
    lacks: dict[str, list[Sentence]] = field(default_factory=dict)
    notes: Remarks = field(default_factory=Remarks)
    examples: dict[str, str] = field(default_factory=dict)
    """Answers to what the file lacks, where it leaves only a few."""
    training: dict[str, Found] = field(default_factory=dict)
    """What is said of the model and its training, which no layout needs (``facts.training``)."""

    def add(
        self, name: str, value: Value, line: int | None = None, key: str = "", via: str = ""
    ) -> None:
        """Adds a value found in this file."""
        self.claim(name, Found(value, self.file, line, key, via))

    def claim(self, name: str, found: Found) -> None:
        """Adds a value with its own place; the same value found again keeps its first place."""
        claims = self.claims.setdefault(name, [])
        if len(claims) < CLAIMS.most and all(each.value != found.value for each in claims):
            claims.append(found)

    def lack(self, name: str, because: Sentence, *, example: str = "") -> None:
        """Says that the file means to give ``name`` but does not settle it."""
        reasons = self.lacks.setdefault(name, [])
        if len(reasons) < CLAIMS.most and because not in reasons:
            reasons.append(because)
        if example:
            self.examples.setdefault(name, example)

    def note(self, sentence: Sentence) -> None:
        """Adds a sentence that a user should read, once."""
        self.notes.add(sentence)

    def join(self, other: Facts) -> None:
        """Adds all that ``other`` holds, as claims beside those of this one."""
        for name, claims in other.claims.items():
            for found in claims:
                self.claim(name, found)
        for name, reasons in other.lacks.items():
            for because in reasons:
                self.lack(name, because, example=other.examples.get(name, ""))
        self.hear(other.training)
        self.notes.add(*other.notes)

    def give_way(self, other: Facts) -> None:
        """Adds what ``other`` says of names that this one leaves alone: it goes before other."""
        for name in dict.fromkeys((*other.claims, *other.lacks)):
            if self.says(name):
                continue
            self.claims |= {name: other.claims[name]} if name in other.claims else {}
            self.lacks |= {name: other.lacks[name]} if name in other.lacks else {}
        self.hear(other.training)
        self.notes.add(*other.notes)

    def hear(self, training: Mapping[str, Found]) -> None:
        """Adds what is said of training, where nothing is said of it yet."""
        self.training = {**training, **self.training}

    def drop(self, name: str) -> Found | None:
        """Takes ``name`` out and returns its one value, or None; nothing of it stays."""
        found = self.settled().get(name)
        self.claims.pop(name, None)
        self.lacks.pop(name, None)
        return found

    def says(self, name: str) -> bool:
        """Tells whether the file says anything of ``name``, settled or not."""
        return name in self.claims or name in self.lacks

    def number(self, name: str) -> int | None:
        """Returns the one whole number found for ``name``, or None."""
        value = self.settled().get(name)
        return value.value if value and isinstance(value.value, int) else None

    def text(self, name: str) -> str | None:
        """Returns the one value found for ``name`` as text, or None."""
        value = self.settled().get(name)
        return None if value is None else str(value.value)

    def settled(self) -> Mapping[str, Found]:
        """Returns the names that have exactly one value."""
        return {
            name: claims[0]
            for name, claims in self.claims.items()
            if len(claims) == 1 and name not in self.lacks
        }

    def unsettled(self) -> tuple[Missing, ...]:
        """Returns the names with contradictory values or none, each with its reason."""
        open_names = [name for name, claims in self.claims.items() if len(claims) > 1]
        open_names += [name for name in self.lacks if name not in open_names]
        return tuple(
            Missing(name, self._reason(name), self.examples.get(name, "")) for name in open_names
        )

    def _reason(self, name: str) -> Sentence:
        claims = self.claims.get(name, [])
        if len(claims) > 1:
            both = chained(_and_as, [each.told for each in claims])
            return said("it is given as {claims}", claims=both)
        return chained(_comma, self.lacks[name][:3])


def not_a_number(where: Sentence, value: object) -> Sentence:
    """Says that something else stands where a number should."""
    return said("{where} is '{text}', no number", where=where, text=str(value)[:40])


def all_of_a_node(where: Sentence, value: object) -> Sentence:
    """Says that as many ranks are asked for as a node has GPUs."""
    return said("{where} is '{text}', all that a node has", where=where, text=value)


Link = Callable[[Sentence, Sentence], Sentence]


def chained(link: Link, sentences: Sequence[Sentence]) -> Sentence:
    """Returns sentences as one, ``link`` joining each to those before it.

    >>> str(chained(either, [said("one"), said("two"), said("three")]))
    'one or two or three'
    """
    return reduce(link, sentences)


def either(before: Sentence, after: Sentence) -> Sentence:
    """Joins two outcomes of which one holds."""
    return said("{before} or {next}", before=before, next=after)


def apart(before: Sentence, after: Sentence) -> Sentence:
    """Joins two remarks that stand alone."""
    return said("{before}; {next}", before=before, next=after)


def _and_as(before: Sentence, after: Sentence) -> Sentence:
    return said("{before} and as {next}", before=before, next=after)


def _comma(before: Sentence, after: Sentence) -> Sentence:
    return said("{before}, {next}", before=before, next=after)


def _times(before: Sentence, after: Sentence) -> Sentence:
    return said("{before} x {next}", before=before, next=after)
