"""The signs of all logs, in their order, as the causes ask for them.

>>> from serried.diagnose.evidence.quote import Quote, Speaker
>>> signs = Sign("exit", Quote("a", 1, ""), Speaker(3)), Sign("exit", Quote("a", 2, ""))
>>> told = LoggedSigns(signs)
>>> [sign.speaker.rank for sign in told.of("exit")], told.ranks(told.of("exit"))
([3, None], (3,))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.quote import Numbering, Quote, Speaker
from serried.diagnose.evidence.sign import Sign

_OF_MPI = re.compile(
    r"KILLED BY SIGNAL|EXIT (?:CODE|STRING)|^\s*Exit code:|process rank|MPI_A|_job_complete"
)
"""Ends that a launcher of MPI tells, whose processes are tasks themselves."""


@dataclass(frozen=True)
class RankedCause:
    """Holds a cause with what decides whether it comes before another."""

    cause: Cause
    standing: int
    """How near to the root its kind is as a rule, from 0 on; see ``order``."""
    place: int
    """The place of its first sign among all."""
    is_bare: bool = False
    """Whether it says that something failed, by a line that leaves out what."""


@dataclass(frozen=True)
class LoggedSigns:
    """Holds the signs of text, by kind, with their places."""

    signs: Sequence[Sign]
    _kinds: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, sign in enumerate(self.signs):
            self._kinds.setdefault(sign.kind, []).append(place)

    def of(self, *kinds: str) -> list[Sign]:
        """Returns the signs of some kinds, in their order."""
        places = sorted(place for kind in kinds for place in self._kinds.get(kind, ()))
        return [self.signs[place] for place in places]

    def first(self, *kinds: str) -> int | None:
        """Returns the place of the first sign of some kinds."""
        return min((self._kinds[kind][0] for kind in kinds if kind in self._kinds), default=None)

    def place(self, sign: Sign) -> int:
        """Returns the place of a sign, or of the first in its line for one that was made anew."""
        return self._places.get(id(sign), self._lines.get(sign.quote, 0))

    def at(self, quote: Quote) -> Sign | None:
        """Returns the first sign of a line, None where it holds none."""
        place = self._lines.get(quote)
        return None if place is None else self.signs[place]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(sign): place for place, sign in enumerate(self.signs)}

    @cached_property
    def _lines(self) -> dict[Quote, int]:
        return {sign.quote: place for place, sign in reversed(list(enumerate(self.signs)))}

    @cached_property
    def _by_pid(self) -> dict[int, int]:
        """The global rank of each process that torchrun's summary names."""
        return {
            sign.speaker.pid: sign.speaker.rank
            for sign in self.of("first_failure", "other_failure")
            if sign.speaker.pid is not None and sign.speaker.rank is not None
        }

    @cached_property
    def has_launcher(self) -> bool:
        """Whether torchrun speaks, so that a task of Slurm is a node and not a rank."""
        if self.first("first_failure", "closing", "agent_signal") is not None:
            return True
        return any(not _OF_MPI.search(sign.quote.text) for sign in self.of("exit"))

    def rank(self, speaker: Speaker) -> int | None:
        """Returns the global rank of a speaker, or the number as printed where that is all."""
        if speaker.pid in self._by_pid and speaker.numbering is not Numbering.GLOBAL:
            return self._by_pid[speaker.pid]
        if speaker.numbering is Numbering.TASK and self.has_launcher:
            return None
        if speaker.numbering in (Numbering.NODE, Numbering.SUBGROUP):
            return None
        return speaker.rank

    def ranks(self, signs: Iterable[Sign]) -> tuple[int, ...]:
        """Returns the ranks that speak, in rising order."""
        found = (self.rank(sign.speaker) for sign in signs)
        return tuple(sorted({rank for rank in found if rank is not None}))


def quotes(signs: Iterable[Sign]) -> tuple[Quote, ...]:
    """Returns the lines that some signs stand in, each once."""
    return tuple(dict.fromkeys(sign.quote for sign in signs))
