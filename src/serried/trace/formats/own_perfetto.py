"""Perfetto's format as serried writes it, read back as the trace that it was.

    packet   40 t8 82 80 00  50 01  68 02  5a …     begin, at t, of a slice on a track
    packet   40 t8 9a 80 00  50 01  5a …            end, on the same track

serried pads numbers, so that packets of one shape have the same fields at the same places: the
first of a shape is parsed, the others are read as columns. What is to be said of the run beside its
slices is in the file's metadata. Tracks, arrows and colours follow from the spans and are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.finding import Finding, said
from serried.limits import PERFETTO_BYTES
from serried.trace.formats.perfetto import ABOUT
from serried.trace.formats.protobuf import (
    FIXED64,
    LENGTH,
    VARINT,
    Bytes,
    WireField,
    fields_in,
    unpadded,
    varint_at,
)
from serried.trace.model.trace import Trace
from serried.trace.store.about import trace_of
from serried.user_file import read_bytes

_KIND = re.compile(r"-?\d*([A-Z][A-Z_]*)-?\d*")
_RANK = re.compile(r"rank (\d{1,9})\b")
_PACKET, _TIMESTAMP = 0x0A, 0x40
_MOST_SHAPES = 1024
"""serried writes a few hundred, each of which is looked at by itself."""

Whole = NDArray[np.int64]


def own_perfetto_trace(path: Path, sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the trace that serried wrote to ``path``.

    Raises InputError for a file that it did not write, for sizes, which it says itself, and for a
    damaged one.
    """
    raw = read_bytes(path, PERFETTO_BYTES.most, said("a file of Perfetto's format"))
    try:
        begins, ends, is_cut = _packets(raw)
        found = _File(raw)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if raw[begin] != _TIMESTAMP:
                found.take(begin, end)
    except (LookupError, RecursionError, ValueError) as error:
        raise _not_ours(path) from error
    if found.about is None:
        raise _not_ours(path)
    if sizes:
        raise InputError("{path} says its sizes itself; leave out --pp, --tp and --dp", path=path)
    try:
        spans = _spans(found, _events(found, raw, begins, ends))
        present: list[int] = np.unique(spans.rank).tolist()
        trace = trace_of({"ranks": present, **found.about, "num_spans": len(spans)}, spans)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            "{path} is damaged: what it says of its run does not hold together", path=path
        ) from error
    return trace.with_warnings(*([_cut_off(path, len(spans))] if is_cut else []))


def _not_ours(path: Path) -> InputError:
    return InputError(
        "{path} is no trace that serried wrote in Perfetto's format; give the recordings that it "
        "was made of, or a profile as JSON",
        path=path,
    )


def _cut_off(path: Path, count: int) -> Finding:
    evidence = said(
        "{path} ends in the middle; its first {count} events are kept", path=path, count=count
    )
    return Finding("torn", (evidence,))


def _packets(raw: bytes) -> tuple[Whole, Whole, bool]:
    """Returns where packets begin and end, and whether the file ends within one."""
    begins, ends = [], []
    at, size = 0, len(raw)
    while at < size:
        if raw[at] != _PACKET:
            raise ValueError(at)
        try:
            length, begin = varint_at(raw, at + 1, size)
        except ValueError:
            break
        at = begin + length
        if length and at <= size:
            begins.append(begin)
            ends.append(at)
    return np.array(begins, np.int64), np.array(ends, np.int64), at > size or at < size


# ----------------------------------------------------------------------- what is no event


@dataclass
class _File:
    """Holds what stands beside the events: the run, tracks by rank, and interned texts."""

    raw: bytes
    about: dict[str, Any] | None = None
    ranks: dict[int, int] = field(default_factory=dict)
    """The rank of each track, by its uuid."""
    texts: dict[int, dict[int, str]] = field(default_factory=dict)
    """Texts by number: names of slices (2), of arguments (3), and texts of arguments (29)."""

    def take(self, begin: int, end: int) -> None:
        """Takes a packet that is no event."""
        for each in fields_in(self.raw, begin, end):
            if each.number == 5 and each.wire_type == LENGTH:
                self._metadata(each)
            elif each.number == 60 and each.wire_type == LENGTH:
                self._track(each)
            elif each.number == 12 and each.wire_type == LENGTH:
                self._interned(each)

    def _text(self, of: WireField) -> str:
        return self.raw[of.begin : of.end].decode()

    def _parts(self, of: WireField) -> dict[int, WireField]:
        return {part.number: part for part in fields_in(self.raw, of.begin, of.end)}

    def _number(self, of: WireField | None) -> int:
        return -1 if of is None else varint_at(self.raw, of.begin, of.end)[0]

    def _metadata(self, bundle: WireField) -> None:
        told = self._parts(self._parts(bundle)[2]) if 2 in self._parts(bundle) else {}
        if 1 in told and 2 in told and self._text(told[1]) == ABOUT:
            found = json.loads(self._text(told[2]))
            self.about = found if isinstance(found, dict) else None

    def _track(self, descriptor: WireField) -> None:
        parts = self._parts(descriptor)
        if 2 not in parts:
            return
        uuid, parent = self._number(parts.get(1)), self._number(parts.get(5))
        named = _RANK.match(self._text(parts[2]))
        # A track of a rank hangs below the rank's own.
        if named:
            self.ranks[uuid] = int(named[1])
        elif parent in self.ranks:
            self.ranks[uuid] = self.ranks[parent]

    def _interned(self, data: WireField) -> None:
        for each in fields_in(self.raw, data.begin, data.end):
            parts = self._parts(each)
            texts = self.texts.setdefault(each.number, {})
            texts[self._number(parts.get(1))] = self._text(parts[2])


# ----------------------------------------------------------------------- events


@dataclass(frozen=True, eq=False)
class _Shape:
    """Says where the numbers of packets of one shape stand, from a packet's beginning."""

    is_begin: bool
    slots: dict[str, tuple[int, int]]
    """Numbers by what they are: ``at``, ``track``, ``name``, or an argument."""
    others: tuple[tuple[int, int], ...]
    """What differs and is not read: categories and arrows."""


def _shape(found: _File, begin: int, end: int) -> _Shape | None:
    """Returns the shape of a packet; None for one that is no event."""
    raw, kind = found.raw, 0
    slots: dict[str, tuple[int, int]] = {}
    others: list[tuple[int, int]] = []
    has_event = False
    for part in fields_in(raw, begin, end):
        if part.number == 8 and part.wire_type == VARINT:
            slots["at"] = part.begin - begin, part.end - begin
        if part.number != 11 or part.wire_type != LENGTH:
            continue
        has_event = True
        for each in fields_in(raw, part.begin, part.end):
            place = each.begin - begin, each.end - begin
            if each.number == 9:
                kind = varint_at(raw, each.begin, each.end)[0]
            elif each.number in (10, 11):
                slots["name" if each.number == 10 else "track"] = place
            elif each.number == 4:
                name, value = _argument(found, each)
                slots[name] = value.begin - begin, value.end - begin
            elif each.number == 3 or each.wire_type == FIXED64:
                others.append(place)
    return _Shape(kind == 1, slots, tuple(others)) if has_event else None


def _argument(found: _File, annotation: WireField) -> tuple[str, WireField]:
    parts = {each.number: each for each in fields_in(found.raw, annotation.begin, annotation.end)}
    name = found.texts[3][varint_at(found.raw, parts[1].begin, parts[1].end)[0]]
    return name, parts[4] if 4 in parts else parts[17]


@dataclass(frozen=True, eq=False)
class _Table:
    """Holds packets of one shape: their places in the file, and their numbers."""

    is_begin: bool
    order: Whole
    numbers: dict[str, Whole]


def _events(found: _File, raw: bytes, begins: Whole, ends: Whole) -> Iterator[_Table]:
    data = np.frombuffer(raw, dtype=np.uint8)
    lengths = ends - begins
    is_event = data[begins] == _TIMESTAMP
    shapes = 0
    for length in np.unique(lengths[is_event]).tolist():
        left = np.flatnonzero(is_event & (lengths == length))
        while len(left):
            shapes += 1
            if shapes > _MOST_SHAPES:
                raise ValueError("packets of ever other shapes")
            first = int(begins[left[0]])
            shape = _shape(found, first, first + length)
            windows = np.lib.stride_tricks.sliding_window_view(data, length)
            table = windows[begins[left]]
            alike = _alike(table, shape) if shape else np.arange(len(left)) == 0
            if shape is not None:
                yield _Table(shape.is_begin, left[alike], _numbers(table[alike], shape))
            left = left[~alike]


def _alike(table: Bytes, shape: _Shape) -> NDArray[np.bool_]:
    """Tells which packets are of the shape of the first."""
    fixed = np.full(table.shape[1], 0xFF, dtype=np.uint8)
    for first, last in shape.slots.values():
        fixed[first:last] = 0x80  # a number's last byte says that none follows
    for first, last in shape.others:
        fixed[first:last] = 0x80 if last - first < 8 else 0
    return np.asarray(((table ^ table[0]) & fixed == 0).all(axis=1), dtype=np.bool_)


def _numbers(table: Bytes, shape: _Shape) -> dict[str, Whole]:
    return {name: unpadded(table[:, slice(*place)]) for name, place in shape.slots.items()}


# ----------------------------------------------------------------------- spans

_COLUMNS = {
    "step": "step",
    "stage": "stage",
    "microbatch": "microbatch",
    "peer": "peer",
    "bytes": "size_bytes",
    "group_number": "group",
}
"""Columns of spans by what arguments are called."""


def _spans(found: _File, tables: Iterator[_Table]) -> Spans:
    """Returns the slices as spans: the k-th begin of a track with its k-th end."""
    every = list(tables)
    begun = _sorted([each for each in every if each.is_begin], ("name", "action", *_COLUMNS))
    ended = _sorted([each for each in every if not each.is_begin], ())
    begun, ended = _paired(begun, ended)
    kinds = _kinds(found.texts.get(29, {}))
    columns: dict[str, Any] = {
        of: begun[name].astype(np.int64 if of == "size_bytes" else np.int32)
        for name, of in _COLUMNS.items()
    }
    kind = kinds[begun["action"]]
    num_kinds = len(found.texts.get(2, {})) - len((found.about or {})["names"])
    # A user's own span has the place of its name where others have their peer.
    is_named = (kind == ActionKind.SPAN) & (begun["name"] > num_kinds)
    columns["peer"] = np.where(is_named, begun["name"] - 1 - num_kinds, columns["peer"])
    tracks = np.unique(begun["track"])
    ranks = np.array([found.ranks[uuid] for uuid in tracks.tolist()], dtype=np.int32)
    return Spans(
        **{**columns, "peer": columns["peer"].astype(np.int32)},
        rank=ranks[np.searchsorted(tracks, begun["track"])],
        kind=kind.astype(np.int32),
        start_ns=begun["at"],
        end_ns=ended["at"],
    )


def _sorted(tables: Sequence[_Table], names: Sequence[str]) -> dict[str, Whole]:
    """Returns what tables hold by track and place in the file, -1 for what a packet lacks."""
    none = np.zeros(0, dtype=np.int64)
    order = np.concatenate([none, *(each.order for each in tables)])
    columns = {
        name: np.concatenate(
            [none, *(each.numbers.get(name, np.full(len(each.order), -1)) for each in tables)]
        )
        for name in ("track", "at", *names)
    }
    by = np.lexsort((order, columns["track"]))
    return {name: column[by] for name, column in columns.items()}


def _paired(
    begun: dict[str, Whole], ended: dict[str, Whole]
) -> tuple[dict[str, Whole], dict[str, Whole]]:
    """Returns begins and ends row by row; the end of what was cut off is in neither."""
    keys = []
    for each in (begun, ended):
        track = each["track"]
        first = np.flatnonzero(np.diff(track, prepend=-1))
        place = np.arange(len(track)) - np.repeat(first, np.diff(first, append=len(track)))
        keys.append(track * (1 + max(len(begun["at"]), len(ended["at"]))) + place)
    mine, its = np.isin(keys[0], keys[1]), np.isin(keys[1], keys[0])
    return (
        {name: column[mine] for name, column in begun.items()},
        {name: column[its] for name, column in ended.items()},
    )


def _kinds(texts: Mapping[int, str]) -> Whole:
    """Returns the kind of each action's number, -1 for what is none."""
    kinds = np.full(1 + max(texts, default=0), -1, dtype=np.int64)
    for number, text in texts.items():
        match = _KIND.fullmatch(text)
        if match and match[1] in ActionKind.__members__:
            kinds[number] = ActionKind[match[1]]
    return kinds
