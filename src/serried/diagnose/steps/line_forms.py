r"""Lines of one form: where a figure stands in one of them, it stands in all.

    [rank2]: step  41 step_ms 99.8 loss 2.31       taken apart once, by many patterns
    [rank2]: step  42 step_ms 98.7 loss 2.30       read by one pattern that was made of it:
         (\d+)     (\d+)      ([\d.]+)             rank, step, time; what follows is passed over

Lines are of one form where they are the same but for their digits. A log of a long job holds a
few forms and millions of lines, whose numbers are made of their digits all at once.

>>> from serried.diagnose.steps.step_line import told_step
>>> text = "step 41 step_ms 99.8 loss 2.31"
>>> form = LineForm.of(b"[rank2]: " + text.encode(), 9, told_step(text), rank=2, is_local=False)
>>> told = form.read([form.numbers(b"[rank7]: step 3042 step_ms 101.5 loss 0.5")])
>>> told.ranks, told.steps, told.times, form.names
(array([7]), array([3042]), array([[1.015e+08]]), ('step',))
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering
from serried.diagnose.steps.step_line import ToldStep, told_step

MOST_FORMS = 4096
MOST_TRIES = 16
"""How often a form is made of lines that are alike, where the one before did not read the next."""
NO_RANK = -1
DIGITS = b"0123456789"
_RUN = re.compile(rb"\d+")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_INNER = re.compile(rb"\[rank(\d+)\]")
Numbers = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class Told:
    """Holds what lines told of steps."""

    ranks: NDArray[np.int64]
    """``NO_RANK`` where it is that of the file."""
    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    """Nanoseconds, one column for each part."""


@dataclass(frozen=True, eq=False)
class LineForm:
    """Reads lines of one form."""

    names: tuple[str, ...]
    """The parts that a line times."""
    is_local: bool
    """Whether its ranks count within one node."""
    is_of_file: bool
    """Whether the rank is that of the file."""
    _pattern: re.Pattern[bytes]
    _ranks: tuple[int, ...]
    """Which of the pattern's numbers are the rank; a line may tell it twice."""
    _step: int
    _times: tuple[int, ...]
    _scales: tuple[float, ...]

    @classmethod
    def of(
        cls, line: bytes, text_at: int, told: ToldStep, rank: int | None, *, is_local: bool
    ) -> LineForm | None:
        """Makes the form of a line whose text begins at ``text_at``.

        ``rank`` stands before the text; None where the file is the rank's. Returns None where its
        number does not stand there.
        """
        ranks = () if rank is None else _places(line, text_at, rank)
        if rank is not None and not ranks:
            return None
        step = text_at + told.number_at
        times = [text_at + at for _, at, _ in told.times]
        wanted = sorted({*ranks, step, *times})
        column = {at: number for number, at in enumerate(wanted)}
        return cls(
            tuple(name for name, _, _ in told.times),
            is_local,
            rank is None,
            re.compile(b"".join(_parts(line, wanted)), re.DOTALL),
            tuple(column[at] for at in ranks),
            column[step],
            tuple(column[at] for at in times),
            tuple(scale for _, _, scale in told.times),
        )

    def numbers(self, line: bytes) -> Numbers | None:
        """Returns the numbers of a line that count; None where it is of another form after all."""
        found = self._pattern.match(line)
        if found is None:
            return None
        told = found.groups()
        for group in self._ranks[1:]:
            if told[group] != told[self._ranks[0]]:
                return None
        return told

    def read(self, lines: Sequence[Numbers]) -> Told:
        """Returns what the numbers of many lines tell."""
        table = np.array([float(number) for numbers in lines for number in numbers])
        table = table.reshape(len(lines), -1)
        ranks = np.full(len(lines), NO_RANK, dtype=np.int64)
        if self._ranks:
            ranks = table[:, self._ranks[0]].astype(np.int64)
        times = table[:, list(self._times)] * np.array(self._scales)
        return Told(ranks, table[:, self._step].astype(np.int64), times)


NOT_YET = LineForm((), True, True, re.compile(rb"(?!)"), (), 0, (), ())
"""The form of a line whose like was not met yet, which reads none."""


class Forms:
    """Learns the forms of a log's lines as they come."""

    def __init__(self) -> None:
        self.known: dict[bytes, LineForm | None] = {}
        """By lines without their digits; None for such as tell nothing of steps."""
        self._tries: dict[bytes, int] = {}

    def learn(self, raw: bytes, line: LogLine) -> tuple[LineForm, Numbers] | None:
        """Returns the form of a line that was taken apart, and its numbers, where it tells a step.

        What carries a line may change its letters; such a form reads this line alone.
        """
        told, rank = told_step(line.text), line.speaker.rank
        text, key = line.text.encode(), raw.translate(None, DIGITS)
        if told is None or rank is None:
            self._know(key, None)
            return None
        is_local = line.speaker.numbering is not Numbering.GLOBAL
        named = rank if line.is_named or _INNER.search(raw) else None
        if raw.endswith(text):
            form = LineForm.of(raw, len(raw) - len(text), told, named, is_local=is_local)
            numbers = form.numbers(raw) if form else None
            if form is not None and numbers is not None:
                self._know(key, form)
                return form, numbers
        told_anew = b"%d %b" % (rank, text)
        head = len(told_anew) - len(text)
        form = LineForm.of(told_anew, head, told, rank, is_local=is_local)
        numbers = form.numbers(told_anew) if form else None
        return (form, numbers) if form is not None and numbers is not None else None

    def _know(self, key: bytes, form: LineForm | None) -> None:
        """Keeps a form; one that was wrong so often as to be no form is not made again."""
        tries = self._tries.get(key, 0)
        if tries < MOST_TRIES and len(self.known) < MOST_FORMS:
            self.known[key], self._tries[key] = form, tries + 1


def _places(line: bytes, text_at: int, rank: int) -> tuple[int, ...]:
    """Returns where the number of a rank stands before a line's text, or within by torch's word."""
    before = [each.start() for each in _RUN.finditer(line, 0, text_at) if int(each[0]) == rank]
    inner = (each.start(1) for each in _INNER.finditer(line) if int(each[1]) == rank)
    return tuple(before or inner)


def _parts(line: bytes, wanted: list[int]) -> Iterator[bytes]:
    """Yields a pattern's parts up to the last number that is wanted."""
    done = 0
    for at in wanted:
        number = _NUMBER.match(line, at)
        assert number is not None
        yield _RUN.sub(rb"\\d+", re.escape(line[done:at]))
        yield rb"(\d{1,12}(?:\.\d{1,9})?)" if b"." in number[0] else rb"(\d{1,12})"
        done = number.end()
    yield rb"(?!\d)"
