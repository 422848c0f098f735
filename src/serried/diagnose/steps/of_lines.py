"""The steps of a job of which only logs exist: lines that say how long a rank took for a step.

    [rank2]: step 4 compute_ms 46.3 step_ms 99.8 data_ms 0.4 loss 2.31
                  │         │             └ step: the whole of it
                  │         └ compute, forward, backward, optimizer, data: parts of it
                  └ its number
    [1795377567.702] rank 2 tp 0 dp 1 pp 0 start                 where a rank stands

What a rank printed as its computing may hold waits for those it exchanges with while it computes:
its tp, cp and ep groups.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.evidence.log_line import log_line, moment_of
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.steps.folding import MOST_ROWS, FoldedSteps
from serried.diagnose.steps.line_forms import DIGITS, NO_RANK, NOT_YET, Forms, LineForm, Numbers
from serried.diagnose.steps.step_line import SIGNS
from serried.diagnose.steps.table import UNKNOWN_NS, Alike, JobSteps
from serried.trace.measure.ranks.slowest import NOTHING, WAITS
from serried.trace.measure.ranks.spent import Spent

_RANK = re.compile(r"\brank[ =:]+(\d{1,7})\b")
_PLACE = re.compile(r"\b(tp|cp|ep|dp|pp)(?:_rank)?[ =:]+(\d{1,7})\b")
_MOMENT = re.compile(r"(?:^|[\]:\s])\[?(\d{10}\.\d{1,9})\]?\s")
_INSIDE = ("tp", "cp", "ep")
"""Axes whose ranks exchange within a computation."""

LEAST_STEPS = 3
_LONGEST = 1 << 12
_HEAD = 160
"""Bytes of a line within which it tells when it was written."""
_MANY_RANKS, _ROWS_OF_MANY = 64, 256
"""With more ranks than these each has fewer rows, so that memory stays bounded."""
_MOST_MOMENTS = 8
"""Ranks of which it is kept when their steps ended."""


@dataclass(frozen=True, eq=False)
class _Run:
    """Holds what lines of one rank told, all of the same parts, in their order."""

    rank: int
    is_local: bool
    names: tuple[str, ...]
    places: NDArray[np.int64]
    """Which lines they were."""
    steps: NDArray[np.int64]
    times: NDArray[np.float64]


class _Found(defaultdict[LineForm, list[tuple[int, Numbers]]]):
    """Holds the numbers of a block's lines by their form, each with its place."""

    def __init__(self) -> None:
        super().__init__(list)


@dataclass
class StepLines:
    """Collects what lines say of steps, as they are read, in bounded memory."""

    steps: dict[int, FoldedSteps] = field(default_factory=dict)
    """Nanoseconds by rank, step and part; ``step`` is the whole of it."""
    began: dict[int, FoldedSteps] = field(default_factory=dict)
    """Seconds since 1970 at which a rank was done with a step, by rank and step."""
    places: dict[int, dict[str, int]] = field(default_factory=dict)
    """By rank its place on the axes that its log tells."""
    is_mixed: bool = False
    """Whether two ranks go by one number, as the first ranks of two nodes do."""

    _forms: dict[Numbering | None, Forms] = field(default_factory=dict)
    """By what the name of a file tells of its rank."""

    def hear(self, name: str, speaker: Speaker, first: int, lines: Sequence[bytes]) -> None:
        """Takes lines of the file ``name``, from its line ``first`` on, for what they tell."""
        whole = b"\n".join(lines)
        # Most logs time no step at all, and a search through a block costs next to nothing.
        signs = [sign for sign in SIGNS if sign in whole]
        has_places = b"pp" in whole or b"tp" in whole
        if not signs and not (has_places and b"rank" in whole):
            return
        numbering = speaker.numbering if speaker.rank is not None else None
        forms = self._forms.setdefault(numbering, Forms())
        known, found = forms.known, _Found()
        for number, raw in enumerate(lines):
            form = known.get(raw.translate(None, DIGITS), NOT_YET)
            if form is None:
                continue
            if numbers := form.numbers(raw):
                found[form].append((number, numbers))
                continue
            is_timed = any(sign in raw for sign in signs)
            if len(raw) < _LONGEST and (is_timed or (has_places and b"rank" in raw)):
                line = log_line(raw.decode("utf-8", "replace"), name, first + number, speaker)
                if is_timed and (learnt := forms.learn(raw, line)):
                    found[learnt[0]].append((number, learnt[1]))
                elif not is_timed:
                    self._place(line.text)
        for run in _runs(found, speaker.rank):
            self._keep(run, lines)

    def _place(self, text: str) -> None:
        found = {each[1]: int(each[2]) for each in _PLACE.finditer(text)}
        if found and (rank := _RANK.search(text)):
            self.places.setdefault(int(rank[1]), {}).update(found)

    def _keep(self, run: _Run, lines: Sequence[bytes]) -> None:
        """Keeps what lines of one rank told, all of the same parts."""
        known = self.steps.get(run.rank)
        if known is None:
            most = MOST_ROWS if len(self.steps) < _MANY_RANKS else _ROWS_OF_MANY
            known = self.steps[run.rank] = FoldedSteps(most)
        if known.is_before(run.steps):
            known.add_run(run.steps, dict(zip(run.names, run.times.T, strict=True)))
            self._keep_moments(run.rank, run.steps, run.places, lines)
            return
        for at, step in enumerate(run.steps.tolist()):
            figures = dict(zip(run.names, run.times[at].tolist(), strict=True))
            before = known.latest.get(step)
            if before is not None:
                # A console holds the same lines as the files of single ranks.
                self.is_mixed |= run.is_local and before["step"] != figures["step"]
                if before["step"] == figures["step"]:
                    continue
            known.add(step, figures)
            self._keep_moments(run.rank, run.steps[at : at + 1], run.places[at : at + 1], lines)

    def _keep_moments(
        self,
        rank: int,
        steps: NDArray[np.int64],
        places: NDArray[np.int64],
        lines: Sequence[bytes],
    ) -> None:
        """Keeps when steps ended; of the many that make one row, a few tell enough."""
        began = self.began.get(rank)
        if began is None and len(self.began) >= _MOST_MOMENTS:
            return
        began = began or FoldedSteps()
        apart = max(1, began.width // 4)
        for step, place in zip(steps[::apart].tolist(), places[::apart].tolist(), strict=True):
            when = _when(lines[place])
            if when is None:
                return
            began.add(step, {"moment": when})
            self.began[rank] = began

    def table(self, *, is_latest: bool = False) -> JobSteps | None:
        """Returns the steps that every rank printed, without the first; None where they are few.

        With ``is_latest`` only the last are, of which each is a row however long the job was.
        """
        if not self.steps or self.is_mixed:
            return None
        width = max(each.width for each in self.steps.values())
        rows: dict[int, Mapping[int, Mapping[str, float]]] = {}
        for rank, folded in sorted(self.steps.items()):
            if is_latest:
                rows[rank] = folded.latest
            else:
                folded.widen(width)
                rows[rank] = {step: folded.row(step) for step in folded}
        numbers = sorted(set.intersection(*(set(of) for of in rows.values())))
        if not is_latest or min(numbers, default=0) == min(self.steps[next(iter(rows))]):
            numbers = numbers[1:]
        if len(numbers) < LEAST_STEPS:
            return None
        names = set.intersection(*(set(of[step]) for of in rows.values() for step in numbers))
        tables = {
            name: np.array([[rows[rank][step][name] for rank in rows] for step in numbers])
            for name in names
        }
        return self._table(numbers, tables, 1 if is_latest else width)

    def _table(
        self, numbers: list[int], tables: dict[str, NDArray[np.float64]], width: int
    ) -> JobSteps:
        ranks = sorted(self.steps)
        period = tables.pop("step")
        own = np.sum(list(tables.values()), axis=0) if tables else period
        waits, nothing = np.maximum(period - own, 0), np.zeros_like(period)
        computing = [table for name, table in tables.items() if name != "data"]
        places = self._known_places()
        held: dict[tuple[int, ...], list[int]] = {}
        for column, rank in enumerate(ranks):
            stage = places.get(rank, {}).get("pp")
            held.setdefault(() if stage is None else (stage,), []).append(column)
        return JobSteps(
            ranks=np.array(ranks, dtype=np.int64),
            steps=np.array(numbers, dtype=np.int64),
            began_ns=np.array([self._moment(step) for step in numbers], dtype=np.int64),
            spent=Spent(
                period=period,
                waits=waits,
                meets=waits,
                inside=nothing,
                hidden=nothing,
                computing=np.sum(computing, axis=0) if computing else own,
                parts=tables,
            ),
            alike=tuple(
                Alike(stages, tuple(columns), WAITS if tables else NOTHING)
                for stages, columns in held.items()
            ),
            has_pipeline=len(held) > 1,
            has_data="data" in tables,
            width=width,
            exchange=(exchange := _exchanging(places)),
            lacking=_lacking(exchange),
        )

    def _known_places(self) -> dict[int, dict[str, int]]:
        """Returns where ranks stand, where each says so and no two say the same.

        A line may tell the sizes of axes as well, which are the same for all.
        """
        known = {rank: self.places.get(rank, {}) for rank in self.steps}
        told = {tuple(sorted(place.items())) for place in known.values() if place}
        return known if len(told) == len(known) else {}

    def _moment(self, step: int) -> int:
        moments = []
        for folded in self.began.values():
            if step in folded.latest:
                moments.append(folded.latest[step]["moment"])
            else:
                try:
                    moments.append(folded.row(step)["moment"])
                except KeyError:
                    continue
        return round(min(moments) * 1e9) if moments else UNKNOWN_NS


def _runs(found: _Found, file_rank: int | None) -> Iterator[_Run]:
    """Yields what the lines of a block told, rank by rank."""
    series: dict[tuple[int, bool, tuple[str, ...]], list[_Run]] = {}
    for form, rows in found.items():
        told = form.read([numbers for _, numbers in rows])
        places = np.array([place for place, _ in rows], dtype=np.int64)
        ranks = told.ranks
        if form.is_of_file and file_rank is not None:
            ranks = np.full(len(rows), file_rank, dtype=np.int64)
        for rank in np.unique(ranks[ranks != NO_RANK]).tolist():
            own = ranks == rank
            run = _Run(
                rank, form.is_local, form.names, places[own], told.steps[own], told.times[own]
            )
            series.setdefault((rank, form.is_local, form.names), []).append(run)
    for runs in series.values():
        yield runs[0] if len(runs) == 1 else _joined(runs)


def _joined(runs: Sequence[_Run]) -> _Run:
    places = np.concatenate([run.places for run in runs])
    order = np.argsort(places)
    return replace(
        runs[0],
        places=places[order],
        steps=np.concatenate([run.steps for run in runs])[order],
        times=np.concatenate([run.times for run in runs])[order],
    )


def _when(raw: bytes) -> float | None:
    """Returns the seconds since 1970 that a line tells at its beginning."""
    head = raw[:_HEAD].decode("utf-8", "replace")
    moment = _MOMENT.search(head)
    return float(moment[1]) if moment else moment_of(head)


def _exchanging(places: Mapping[int, Mapping[str, int]]) -> dict[int, tuple[int, ...]]:
    """Returns by rank those that exchange with it while it computes, itself among them.

    >>> _exchanging({0: {"tp": 0, "dp": 0}, 1: {"tp": 1, "dp": 0}, 2: {"tp": 0, "dp": 1}})
    {0: (0, 1), 1: (0, 1), 2: (2,)}
    """
    found: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for rank, place in sorted(places.items()):
        others = sorted((axis, at) for axis, at in place.items() if axis not in _INSIDE)
        found.setdefault(tuple(others), []).append(rank)
    return {rank: tuple(ranks) for ranks in found.values() for rank in ranks}


def _lacking(exchange: Mapping[int, tuple[int, ...]]) -> frozenset[int]:
    """Returns the ranks of whose exchange some told nothing: all are of one size in a job.

    >>> sorted(_lacking({0: (0,), 2: (2, 3), 3: (2, 3)}))
    [0]
    """
    most = max(map(len, exchange.values()), default=0)
    return frozenset(rank for rank, ranks in exchange.items() if len(ranks) < most)
