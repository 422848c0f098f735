"""A window of a trace for the page: spans where they are few, the shares of buckets elsewhere.

    GET api/trace/window?trace=0&colour=&bucket=4096&first=20&last=2500&tracks=0-15&by=tp&groups=3

``bucket`` is a power of two in nanoseconds; ``first`` and ``last`` number buckets from time 0.
A track with few spans in the window is sent span by span, whatever the zoom.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.views.web.trace.colours import require_colour
from serried.views.web.trace.levels import Rows, as_bytes
from serried.views.web.trace.shown import ShownTrace
from serried.views.web.trace.table import span_columns
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.query import Words, read_word

FEWEST = 256
"""So many spans of a track are sent as they are, however short the window is in buckets."""
# More buckets than a screen has columns. So many cells take 16 MiB for each class of colour.
MOST_BUCKETS = 1 << 14
MOST_CELLS = 1 << 24
_RUN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Window:
    """Describes what the page asks to see: tracks and groups over a run of buckets."""

    colour: str
    bits: int
    """The bucket's width is 2**bits nanoseconds."""
    first: int
    last: int
    tracks: Rows
    by: str
    groups: Rows

    @property
    def from_ns(self) -> int:
        """Where it begins."""
        return self.first << self.bits

    @property
    def to_ns(self) -> int:
        """Where it ends."""
        return self.last << self.bits


def read_window(words: Words, shown: ShownTrace) -> Window:
    """Reads a window; raises InputError for one that the page would not ask for."""
    bucket, first, last = (_whole(words, name) for name in ("bucket", "first", "last"))
    # A power of two has a single bit: 4096 & 4095 is 0, and 4097 & 4096 is not.
    if bucket < 1 or bucket & (bucket - 1):
        raise InputError(
            "bucket={bucket} is not a power of two, in nanoseconds; 4096 is one", bucket=bucket
        )
    if not 0 < last - first <= MOST_BUCKETS:
        raise InputError(
            "buckets {first} to {last} are no window; one holds 1 to {most}",
            first=first,
            last=last,
            most=MOST_BUCKETS,
        )
    by = shown.require_grouping(read_word(words, "by"))
    num_groups = len(shown.grouping(by).size) if by else 0
    window = Window(
        require_colour(read_word(words, "colour"), shown.measured),
        bucket.bit_length() - 1,
        first,
        last,
        _numbers(words, "tracks", shown.table.num_tracks),
        by,
        _numbers(words, "groups", num_groups),
    )
    _require_small(window)
    return window


def _require_small(window: Window) -> None:
    rows = len(window.tracks) + len(window.groups)
    if rows * (window.last - window.first) > MOST_CELLS:
        raise InputError(
            "{rows} rows of {count} buckets are more than one answer holds, which is {most}",
            rows=rows,
            count=window.last - window.first,
            most=MOST_CELLS,
        )


def window_payload(shown: ShownTrace, words: Words) -> bytes:
    """Returns the payload that answers for a window."""
    window = read_window(words, shown)
    ends = np.array([shown.table.between(t, window.from_ns, window.to_ns) for t in window.tracks])
    ends = ends.reshape(-1, 2)
    # Shares take bytes for every bucket, so the more buckets, the more spans are as cheap as they.
    few = np.diff(ends, axis=1)[:, 0] <= max(FEWEST, (window.last - window.first) // 4)
    header = {
        "kind": "window",
        "colour": window.colour,
        "bucket_ns": 1 << window.bits,
        "start_ns": window.from_ns,
        "end_ns": window.to_ns,
        "by": window.by,
    }
    columns = _exact(shown, window, window.tracks[few], ends[few])
    return pack(header, columns | _shares(shown, window, window.tracks[~few]))


def _exact(
    shown: ShownTrace, window: Window, tracks: Rows, ends: NDArray[np.int64]
) -> dict[str, Column]:
    counts = np.diff(ends, axis=1)[:, 0]
    ids = np.concatenate([np.arange(0), *(np.arange(*each) for each in ends.tolist())])
    columns: dict[str, Column] = {
        "exact:track": tracks.astype(np.int32),
        "exact:first": ends[:, 0].astype(np.int32),
        "exact:bounds": np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        **span_columns(shown.table.spans(ids)),
    }
    if window.colour in shown.measured:
        columns[f"value:{window.colour}"] = shown.values(window.colour)[shown.table.rows(ids)]
    return columns


def _shares(shown: ShownTrace, window: Window, tracks: Rows) -> dict[str, Column]:
    """Returns the buckets of tracks and of groups as bytes: row by row, then class by class."""
    levels = shown.levels(window.colour)
    where = {"bits": window.bits, "first": window.first, "last": window.last}
    width = 1 << window.bits
    of_tracks = levels.filled(tracks, **where)
    columns: dict[str, Column] = {
        "track:number": tracks.astype(np.int32),
        "track:shares": as_bytes(of_tracks, width).ravel(),
        "group:number": window.groups.astype(np.int32),
        "group:shares": np.zeros(0, dtype=np.uint8),
    }
    if len(window.groups):
        grouping = shown.grouping(window.by)
        of_track = grouping.of[np.searchsorted(shown.ranks, shown.table.rank)]
        inside = np.flatnonzero(np.isin(of_track, window.groups))
        # _numbers made window.groups ascend without repeats, so each group's place is found.
        rows = np.searchsorted(window.groups, of_track[inside])
        added = levels.added(inside, rows, len(window.groups), **where)
        size = grouping.size[window.groups].astype(np.float32)
        columns["group:shares"] = as_bytes(added / size[:, None, None], width).ravel()
    return columns


def _whole(words: Words, name: str) -> int:
    text = read_word(words, name)
    if text.isascii() and text.isdecimal() and not _WHOLE.fullmatch(text):
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name=name,
            value=f"{text[:40]}…" if len(text) > 40 else text,
            most=10**15 - 1,
        )
    if not _WHOLE.fullmatch(text):
        raise InputError(
            "{name}={value} is not a whole number; one such as 16 is", name=name, value=text[:40]
        )
    return int(text)


def _numbers(words: Words, name: str, limit: int) -> Rows:
    """Reads runs of numbers below ``limit``, ascending: "0-3,7"."""
    text = read_word(words, name)
    found = [_RUN.fullmatch(run) for run in text.split(",") if run]
    runs = [(int(run[1]), int(run[2] or run[1])) for run in found if run]
    # The bound is checked before a run is spelt out: 0-999999999 must not fill the memory.
    if len(runs) < len(found) or any(last >= limit for _, last in runs):
        raise InputError(
            "{name}={value} are no numbers below {limit}; some read 0-3,7",
            name=name,
            value=text[:40],
            limit=limit,
        )
    parts = [np.arange(first, last + 1) for first, last in runs]
    return np.unique(np.concatenate([np.arange(0), *parts])).astype(np.int64)
