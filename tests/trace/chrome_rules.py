"""What Perfetto asks of Chrome JSON, checked event by event; written apart from the writer."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Event = dict[str, Any]
TEXT = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass
class Checked:
    """Holds a file's events by what they are, all of them well-formed."""

    document: Event
    slices: list[Event] = field(default_factory=list)
    processes: dict[int, Event] = field(default_factory=lambda: defaultdict(dict))
    threads: dict[tuple[int, int], Event] = field(default_factory=lambda: defaultdict(dict))
    arrows: dict[int, dict[str, Event]] = field(default_factory=lambda: defaultdict(dict))

    def thread_of(self, event: Event) -> str:
        return str(self.threads[event["pid"], event["tid"]]["name"])


def checked(text: str) -> Checked:
    """Reads a file and checks every rule; raises AssertionError at the first that is broken."""
    document = json.loads(text, parse_float=Decimal)
    assert next(iter(document)) == "traceEvents"
    assert "\\u" not in text.partition('"metadata"')[0], "Perfetto shows escapes as they stand"
    found = Checked(document)
    for event in document["traceEvents"]:
        _sort(event, found)
    _check_names(found)
    _check_nesting(found)
    _check_arrows(found)
    return found


def _sort(event: Event, found: Checked) -> None:
    assert isinstance(event["pid"], int)
    assert TEXT.fullmatch(event["name"])
    if event["ph"] == "M":
        what, _, key = event["name"].partition("_")
        (value,) = event["args"].values()
        named = (
            found.processes[event["pid"]]
            if what == "process"
            else found.threads[event["pid"], event["tid"]]
        )
        assert key not in named, "named twice"
        named[key] = value
        return
    assert event["tid"] >= 1
    assert event["tid"] != event["pid"], "would be the main thread"
    assert not re.search(r"\d", event["name"]), "digits in a name do not change its colour"
    _check_time(event["ts"])
    if event["ph"] == "X":
        _check_time(event["dur"])
        found.slices.append(event)
    else:
        assert event["ph"] in ("s", "f")
        assert event["ph"] == "s" or event["bp"] == "e"
        assert event["ph"] not in found.arrows[event["id"]], "two ends of one arrow"
        found.arrows[event["id"]][event["ph"]] = event


def _check_time(time: Decimal) -> None:
    assert isinstance(time, Decimal)
    assert time >= 0
    assert time.as_tuple().exponent == -3, "microseconds with three decimals"


def _check_names(found: Checked) -> None:
    pids = {event["pid"] for event in found.slices}
    assert pids <= set(found.processes)
    for pid, named in found.processes.items():
        assert TEXT.fullmatch(named["name"])
        assert named["sort_index"] == pid, "ranks in order"
    assert {(event["pid"], event["tid"]) for event in found.slices} == set(found.threads)
    tids = [tid for _, tid in found.threads]
    assert len(set(tids)) == len(tids), "threads are named by id alone"
    for named in found.threads.values():
        assert TEXT.fullmatch(named["name"])
        assert isinstance(named["sort_index"], int)


def _check_nesting(found: Checked) -> None:
    """On one thread a slice ends before the next begins, or lies wholly within it."""
    tracks = defaultdict(list)
    for event in found.slices:
        tracks[event["tid"]].append((event["ts"], -event["dur"]))
    for slices in tracks.values():
        open_until: list[Decimal] = []
        for start, negative in sorted(slices):
            end = start - negative
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], "partial overlap"
            open_until.append(end)


def _check_arrows(found: Checked) -> None:
    by_thread = defaultdict(list)
    for event in found.slices:
        by_thread[event["pid"], event["tid"]].append(event)
    for ends in found.arrows.values():
        assert set(ends) == {"s", "f"}
        assert ends["s"]["ts"] <= ends["f"]["ts"], "an arrow backwards is not drawn"
        assert (ends["s"]["cat"], ends["s"]["name"]) == (ends["f"]["cat"], ends["f"]["name"])
        for event in ends.values():
            event["slice"] = _enclosing(event, by_thread[event["pid"], event["tid"]])
        start, end = (ends[ph]["slice"]["ts"] for ph in "sf")
        assert start <= end, "Perfetto turns round an arrow whose target slice began first"


def _enclosing(event: Event, slices: list[Event]) -> Event:
    inside = [
        each
        for each in slices
        if each["ts"] < event["ts"] < each["ts"] + each["dur"]
        or (each["dur"] <= Decimal("0.001") and each["ts"] == event["ts"])
    ]
    assert len(inside) == 1, "an arrow's end lies in exactly one slice"
    return inside[0]
