"""Part: one recording of a run, and how its spans are read, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.trace.merge.files import RankFile
from serried.trace.merge.survey import Backwards, Shelves, read_records
from serried.trace.model.record import Records, spans_of_records
from serried.trace.model.span_groups import SpanGroup, SpanTraffic

Steps = tuple[int, int]
"""The first and the last of some steps."""


@dataclass(frozen=True, eq=False)
class Part:
    """Holds one recording that counts, with all that reading its spans needs."""

    file: RankFile
    rank: int
    host: int
    offset_ns: int
    """What turns its clock into the run's, before the hosts are aligned."""
    num_records: int
    num_spans: int
    before_step: int | None
    names: NDArray[np.int32]
    """The numbers of the part's names among the run's; the last stands for no name."""
    shelves: Shelves
    backwards: tuple[Backwards, ...] = ()
    """Where its own clock seems to have gone back."""
    groups: Mapping[SpanGroup, int] = field(default_factory=dict)
    """The numbers of the part's groups among the run's."""

    def blocks(
        self, steps: Steps | None = None, kinds: Sequence[ActionKind] | None = None
    ) -> Iterator[Spans]:
        """Yields its spans, of the steps and kinds asked for, in blocks, as they were recorded.

        Raises InputError where the file is no longer what was surveyed.
        """
        ranges = [(0, self.num_records)] if steps is None else self.shelves.holding(*steps)
        # What aligns clocks asks for some spans of some steps, and not for what they moved.
        is_whole = steps is None and kinds is None
        count = 0
        with self.file.opened_traffic() as opened:
            traffic = (
                SpanTraffic(self.file.traffic_name, opened, self.groups)
                if opened is not None and is_whole
                else None
            )
            for first, last in ranges:
                at = first
                for records in read_records(self.file, first, min(last, self.num_records)):
                    keep = self._kept(records, steps, kinds)
                    spans = spans_of_records(self.rank, records if keep.all() else records[keep])
                    if traffic is not None:
                        size_bytes, group = traffic.columns(at, len(records))
                        spans = replace(spans, size_bytes=size_bytes[keep], group=group[keep])
                    at += len(records)
                    count += len(spans)
                    yield self._named(spans).shifted(self.offset_ns)
        # Only when all was asked for can it be told that the file is still the one surveyed.
        if is_whole and count != self.num_spans:
            raise InputError("{path} changed while it was read; merge again", path=self.file)

    def _kept(
        self, records: Records, steps: Steps | None, kinds: Sequence[ActionKind] | None
    ) -> NDArray[np.bool_]:
        # A shelf says only that a step may be in it, so every record is asked as well.
        keep = np.ones(len(records), dtype=np.bool_)
        if kinds is not None:
            keep &= np.isin(records["kind"], kinds)
        if steps is not None:
            keep &= (records["step"] >= steps[0]) & (records["step"] <= steps[1])
        if self.before_step is not None:
            keep &= records["step"] < self.before_step
        return keep

    def _named(self, spans: Spans) -> Spans:
        is_named = spans.kind == ActionKind.SPAN
        if not is_named.any():
            return spans
        # -1 takes the last entry, which stands for no name.
        own = np.where(spans.peer < len(self.names) - 1, spans.peer, -1)
        return replace(spans, peer=np.where(is_named, self.names[own], spans.peer))


def no_spans() -> Spans:
    """Returns a table of no spans."""
    none, never = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    return Spans(none, none, none, none, none, none, never, never)
