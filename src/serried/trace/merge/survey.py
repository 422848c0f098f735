"""Survey: what is to be known of one recording before any of its spans is kept.

    header ─────────> run, rank, host, clock, job
    blocks of records ─> how many are complete, first start, last end,
                         messages and computations of each step, which rows hold which steps

A file is read by blocks, so that its length costs time and not memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind
from serried.trace.merge.files import RankFile
from serried.trace.model.pairs import RECEIVES, SENDS
from serried.trace.model.record import (
    HEADER_BYTES,
    MAGIC,
    RECORD_BYTES,
    RecordHeader,
    Records,
    closed_count,
    complete_records,
    lost_count,
    names_in,
    read_header,
)
from serried.trace.model.span_groups import SpanGroup, SpanTraffic

MESSAGES = (*SENDS, *RECEIVES)
COMPUTATIONS = (ActionKind.F, ActionKind.B, ActionKind.I)
"""Kinds whose order says something of the clocks where there are no messages."""

BLOCK_RECORDS = 262_144
_SHELVES = 256

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StepCounts:
    """Says how many messages and computations each step has, by ascending step."""

    step: Whole
    messages: Whole
    computations: Whole

    @classmethod
    def joined(cls, parts: list[StepCounts]) -> StepCounts:
        """Adds up the counts of several."""
        if not parts:
            return cls(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
        step, place = np.unique(np.concatenate([each.step for each in parts]), return_inverse=True)
        messages, computations = (np.zeros(len(step), dtype=np.int64) for _ in range(2))
        # A step may stand in several parts: += by index would add one of them only.
        np.add.at(messages, place, np.concatenate([each.messages for each in parts]))
        np.add.at(computations, place, np.concatenate([each.computations for each in parts]))
        return cls(step, messages, computations)


@dataclass(frozen=True, eq=False)
class Shelves:
    """Says which steps stand in which rows: the lowest and highest of every so many."""

    rows: int
    low: Whole
    high: Whole

    def holding(self, first_step: int, last_step: int) -> Iterator[tuple[int, int]]:
        """Yields ranges of rows, without gaps within, that may hold steps of first to last."""
        found = np.flatnonzero((self.high >= first_step) & (self.low <= last_step))
        for run in np.split(found, np.flatnonzero(np.diff(found) > 1) + 1):
            if len(run):
                yield int(run[0]) * self.rows, (int(run[-1]) + 1) * self.rows


class Backwards(NamedTuple):
    """Says of a step that it began before the one that comes before it, and when both did."""

    step: int
    before_ns: int
    begun_ns: int


@dataclass(frozen=True, eq=False)
class Survey:
    """Holds what is known of one recording; times are its host's CLOCK_MONOTONIC."""

    file: RankFile
    header: RecordHeader
    names: tuple[str, ...]
    torn: bool
    num_records: int
    num_spans: int
    """How many complete records it has, or of those before ``before_step``."""
    before_step: int | None
    first_ns: int
    last_ns: int
    counts: StepCounts
    shelves: Shelves
    lost: int = 0
    """How many spans more there were, for which the disk had no space."""
    backwards: tuple[Backwards, ...] = ()
    """Where its clock seems to have gone back."""
    num_microbatches: int = 0
    """One more than the highest that a computation names; 0 where none names one."""
    peers: frozenset[int] = frozenset()
    """The ranks that it sent messages to or waited for messages of."""
    groups: tuple[SpanGroup, ...] = ()
    """The groups of its collectives, as they came."""

    @property
    def first_step(self) -> int | None:
        """The lowest step in it, None without a span."""
        return int(self.shelves.low.min()) if len(self.shelves.low) else None

    @property
    def last_step(self) -> int | None:
        """The highest step in it, None without a span."""
        return int(self.shelves.high.max()) if len(self.shelves.high) else None


@dataclass(frozen=True)
class Unusable:
    """Names a file that holds no span: of another program, or cut off within its header."""

    file: RankFile
    is_foreign: bool


def survey(file: RankFile, before_step: int | None = None) -> Survey | Unusable:
    """Reads ``file`` once; spans of ``before_step`` and later ones are not counted.

    Raises InputError when it cannot be read or is damaged.
    """
    counts, begins, low, high = [], [], [], []
    num_spans, first_ns, last_ns, num_microbatches = 0, np.iinfo(np.int64).max, 0, 0
    peers = set[int]()
    # At most so many shelves a file. Blocks hold whole ones, so that a shelf's place in the
    # file follows from its number.
    rows = max(BLOCK_RECORDS // 64, -(-file.num_bytes // RECORD_BYTES // _SHELVES))
    with file.open() as opened:
        start = opened.read(HEADER_BYTES)
        is_foreign = not start.startswith(MAGIC[: len(start)])
        if is_foreign or len(start) < HEADER_BYTES:
            return Unusable(file, is_foreign)
        header = read_header(file, start)
        num_records = 0
        for block in _blocks(file, opened, rows * max(1, BLOCK_RECORDS // rows)):
            num_records += len(block)
            edges = np.arange(0, len(block), rows)
            # Shelves hold all records, or their places would be wrong; only those kept count below.
            low.append(np.minimum.reduceat(block["step"], edges))
            high.append(np.maximum.reduceat(block["step"], edges))
            kept = block if before_step is None else block[block["step"] < before_step]
            if len(kept):
                num_spans += len(kept)
                first_ns = min(first_ns, int(kept["start_ns"].min()))
                last_ns = max(last_ns, int(kept["end_ns"].max()))
                num_microbatches = max(num_microbatches, _microbatches(kept))
                peers.update(_peers(kept))
                counts.append(_counted(kept))
                begins.append(_begins(kept))
    ends_there = file.num_bytes == HEADER_BYTES + num_records * RECORD_BYTES
    edges_of = (np.concatenate([np.zeros(0, np.int64), *each]) for each in (low, high))
    return Survey(
        file=file,
        header=header,
        names=names_in(file.names_text()),
        torn=not ends_there or closed_count(start) != num_records,
        num_records=num_records,
        num_spans=num_spans,
        before_step=before_step,
        first_ns=first_ns,
        last_ns=last_ns,
        counts=StepCounts.joined(counts),
        shelves=Shelves(rows, *edges_of),
        lost=lost_count(start),
        backwards=_backwards(begins),
        num_microbatches=num_microbatches,
        peers=frozenset(peers),
        groups=_groups(file),
    )


def read_records(file: RankFile, first: int, last: int) -> Iterator[Records]:
    """Yields the records of ``file`` from ``first`` to before ``last``, block by block."""
    with file.open() as opened:
        opened.seek(HEADER_BYTES + first * RECORD_BYTES)
        yield from _blocks(file, opened, BLOCK_RECORDS, first, last)


def _blocks(
    file: RankFile, opened: BinaryIO, size: int, first: int = 0, last: int | None = None
) -> Iterator[Records]:
    """Yields blocks of complete records from where ``opened`` stands, the first being ``first``."""
    while last is None or first < last:
        count = size if last is None else min(size, last - first)
        raw = opened.read(count * RECORD_BYTES)
        records = complete_records(file, raw, before=first)
        if len(records):
            yield records
        first += len(records)
        # A record without its seal, or the end of the file: nothing behind it counts.
        if len(records) < count:
            return


def _groups(file: RankFile) -> tuple[SpanGroup, ...]:
    with file.opened_traffic() as opened:
        if opened is None:
            return ()
        traffic = SpanTraffic(file.traffic_name, opened, {})
        traffic.read_all()
        return tuple(traffic.numbers)


def _counted(records: Records) -> StepCounts:
    is_message = np.isin(records["kind"], MESSAGES)
    is_computation = np.isin(records["kind"], COMPUTATIONS)
    step, place = np.unique(records["step"], return_inverse=True)
    return StepCounts(
        step.astype(np.int64),
        np.bincount(place[is_message], minlength=len(step)),
        np.bincount(place[is_computation], minlength=len(step)),
    )


def _microbatches(records: Records) -> int:
    """Returns one more than the highest microbatch that a computation names."""
    is_computation = np.isin(records["kind"], sorted(COMPUTE))
    return 1 + int(records["microbatch"][is_computation].max(initial=-1))


def _peers(records: Records) -> list[int]:
    """Returns the ranks at the other ends of messages, each once."""
    of_messages = records["peer"][np.isin(records["kind"], MESSAGES)]
    return [int(each) for each in np.unique(of_messages)]


def _begins(records: Records) -> tuple[Whole, Whole]:
    """Returns the steps of ``records``, ascending, and when each began."""
    step, place = np.unique(records["step"], return_inverse=True)
    begun = np.full(len(step), np.iinfo(np.int64).max)
    np.minimum.at(begun, place, records["start_ns"])
    return step.astype(np.int64), begun


def _backwards(begins: list[tuple[Whole, Whole]]) -> tuple[Backwards, ...]:
    """Returns which steps began before the one that comes before them; a block may cut a step."""
    if not begins:
        return ()
    steps, begun = (np.concatenate(each) for each in zip(*begins, strict=True))
    order = np.lexsort((begun, steps))
    steps, begun = steps[order], begun[order]
    # A step that blocks cut comes more than once, its earliest beginning first.
    first = np.diff(steps, prepend=steps[0] - 1) > 0
    steps, begun = steps[first], begun[first]
    at = np.flatnonzero(np.diff(begun) < 0)
    columns = (steps[at + 1], begun[at], begun[at + 1])
    return tuple(map(Backwards, *(column.tolist() for column in columns)))
