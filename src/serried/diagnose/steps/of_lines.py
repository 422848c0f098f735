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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.steps.folding import MOST_ROWS, FoldedSteps
from serried.diagnose.steps.table import UNKNOWN_NS, Alike, JobSteps
from serried.trace.measure.ranks.slowest import NOTHING, WAITS
from serried.trace.measure.ranks.spent import Spent

_STEP = re.compile(
    r"\b(?:global_?|train_?)?(?:step|iteration|iter)s?\s*[:=#]?\s*(\d{1,12})\b", re.I
)
_TIME = re.compile(
    r"\b(step|iter|iteration|compute|forward|backward|optimizer|data|load|loader)(?:_time)?"
    r"_(ms|s)\b[\"']?\s*[:=]?\s*(\d{1,12}(?:\.\d{1,9})?)",
    re.I,
)
_OF_MEGATRON = re.compile(r"elapsed time per iteration \(ms\): (\d{1,12}(?:\.\d{1,9})?)")
_SECONDS_A_STEP = re.compile(r"\b(\d{1,9}(?:\.\d{1,9})?) ?(?:s|sec|seconds)/(?:step|iter|it)\b")
_RANK = re.compile(r"\brank[ =:]+(\d{1,7})\b")
_PLACE = re.compile(r"\b(tp|cp|ep|dp|pp)(?:_rank)?[ =:]+(\d{1,7})\b")
_MOMENT = re.compile(r"^\[?(\d{10}(?:\.\d{1,9}))\]?\s")
_PART = {"compute": "computing", "load": "data", "loader": "data"}
_WHOLE = ("step", "iter", "iteration")
_NS = {"ms": 1e6, "s": 1e9}
_INSIDE = ("tp", "cp", "ep")
"""Axes whose ranks exchange within a computation."""

LEAST_STEPS = 3
_SIGNS = (b"_ms", b"time_s", b"step_s", b"s/step", b"sec/step", b"s/it", b"per iteration (ms)")
_LONGEST = 1 << 12
_MANY_RANKS, _ROWS_OF_MANY = 64, 256
"""With more ranks than these each has fewer rows, so that memory stays bounded."""
_MOST_MOMENTS = 8
"""Ranks of which it is kept when their steps ended."""


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

    def hear(self, name: str, speaker: Speaker, first: int, lines: Sequence[bytes]) -> None:
        """Takes lines of the file ``name``, from its line ``first`` on, for what they tell."""
        whole = b"\n".join(lines)
        # Most logs time no step at all, and a search through a block costs next to nothing.
        signs = [sign for sign in _SIGNS if sign in whole]
        has_places = b"pp" in whole or b"tp" in whole
        if not signs and not (has_places and b"rank" in whole):
            return
        for number, raw in enumerate(lines, first):
            is_timed = any(sign in raw for sign in signs)
            if len(raw) < _LONGEST and (is_timed or (has_places and b"rank" in raw)):
                line = log_line(raw.decode("utf-8", "replace"), name, number, speaker)
                if "rank" in line.text and not is_timed:
                    self._place(line.text)
                elif is_timed:
                    self._step(line.text, line.speaker, line.time)

    def _place(self, text: str) -> None:
        found = {each[1]: int(each[2]) for each in _PLACE.finditer(text)}
        if found and (rank := _RANK.search(text)):
            self.places.setdefault(int(rank[1]), {}).update(found)

    def _step(self, text: str, speaker: Speaker, time: float | None) -> None:
        step, rank = _STEP.search(text), speaker.rank
        found = _times(text) if step is not None and rank is not None else {}
        whole = next((found.pop(name) for name in _WHOLE if name in found), None)
        if whole is None or step is None or rank is None:
            return
        number = int(step[1])
        known = self.steps.get(rank)
        if known is None:
            most = MOST_ROWS if len(self.steps) < _MANY_RANKS else _ROWS_OF_MANY
            known = self.steps[rank] = FoldedSteps(most)
        before = known.latest.get(number)
        if before is not None:
            # A console holds the same lines as the files of single ranks.
            is_local = speaker.numbering is not Numbering.GLOBAL
            self.is_mixed |= is_local and before["step"] != whole
            if before["step"] == whole:
                return
        known.add(number, {"step": whole, **found})
        moment = _MOMENT.match(text)
        is_kept = rank in self.began or len(self.began) < _MOST_MOMENTS
        if is_kept and (time is not None or moment is not None):
            when = float(moment[1]) if moment else time or 0.0
            self.began.setdefault(rank, FoldedSteps()).add(number, {"moment": when})

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
            exchange=_exchanging(places),
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


def _times(text: str) -> dict[str, float]:
    """Returns nanoseconds by part, as a line tells them.

    >>> _times("step 4 compute_ms 46.5 step_ms 99.8")
    {'computing': 46500000.0, 'step': 99800000.0}
    """
    is_named = "_ms" in text or "_s" in text or "_MS" in text or "_S" in text
    found = {
        _PART.get(each[1].lower(), each[1].lower()): float(each[3]) * _NS[each[2].lower()]
        for each in (_TIME.finditer(text) if is_named else ())
    }
    if not found and (each := _OF_MEGATRON.search(text)):
        return {"step": float(each[1]) * 1e6}
    if not found and (each := _SECONDS_A_STEP.search(text)):
        return {"step": float(each[1]) * 1e9}
    return found


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
