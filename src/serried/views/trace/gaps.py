"""The longest waits of a recorded run as sentences, each with what it came from, and as JSON.

in step 4 rank 3 waited 82.3 ms for 2F0 of rank 2, which began late because rank 0 loaded data for
36.0 ms; the plan has 36.3 ms of it
39 waits come from the same, 1.43 s in all, in steps 2 to 7
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from serried.finding import Sentence, said
from serried.trace.measure.path.gaps import OF_ALL, Gap, GapPiece
from serried.trace.measure.ranks.spent import DATA
from serried.units import duration_text
from serried.views.explain.plain import wrap
from serried.views.sentences import LANGUAGES, say, tell
from serried.views.trace.text import ROOM, labelled

_PLAN_SHARE = 0.02
"""The share of a gap from which on the plan's part is told."""
_ON_THE_WAY = 0.02
"""The share of a gap from which on a piece is told."""


def gap_lines(gaps: Sequence[Gap], *, lang: str = "en") -> list[str]:
    """Returns each gap in two sentences at most, for the terminal."""
    if not gaps:
        return []
    told = [
        line for gap in gaps for each in gap_sentences(gap) for line in wrap(say(each, lang), ROOM)
    ]
    return labelled(tell("longest waits", lang), told)


def gaps_document(gaps: Sequence[Gap]) -> list[dict[str, Any]]:
    """Returns the gaps for other programs; times are microseconds."""
    return [gap_document(gap) for gap in gaps]


def gap_document(gap: Gap) -> dict[str, Any]:
    """Returns one gap as JSON values: its sentences in every language, and their parts."""
    awaited = gap.awaited
    return {
        "rank": gap.rank,
        "step": gap.step,
        "action": gap.action,
        "start_us": gap.start_ns / 1e3,
        "end_us": gap.end_ns / 1e3,
        "length_us": gap.length_ns / 1e3,
        "planned_us": None if gap.planned_ns is None else gap.planned_ns / 1e3,
        "awaited": None if awaited is None else {"rank": awaited.rank, "action": awaited.action},
        "root": None if gap.root is None else _piece(gap.root),
        "alike": gap.alike,
        "alike_us": gap.alike_ns / 1e3,
        "alike_steps": list(gap.alike_steps),
        "pieces": [_piece(each) for each in gap.pieces],
        "lines": {lang: [say(each, lang) for each in gap_sentences(gap)] for lang in LANGUAGES},
        "way": {lang: [say(each, lang) for each in way_sentences(gap)] for lang in LANGUAGES},
    }


def _piece(piece: GapPiece) -> dict[str, Any]:
    times = ("start_ns", "end_ns", "took_ns", "usual_ns")
    rest = {name: value for name, value in asdict(piece).items() if name not in times}
    return rest | {
        f"{name.removesuffix('_ns')}_us": None if ns is None else ns / 1e3
        for name, ns in ((name, getattr(piece, name)) for name in times)
    }


def gap_sentences(gap: Gap) -> list[Sentence]:
    """Returns the gap with its cause, and how many come from the same where there are several."""
    told = gap_sentence(gap)
    if gap.planned_ns is not None and gap.planned_ns >= _PLAN_SHARE * gap.length_ns:
        told = said(
            "{wait}; the plan has {planned} of it", wait=told, planned=_time(gap.planned_ns)
        )
    if gap.alike < 2:
        return [told]
    kind = gap.root.kind if gap.root else ""
    alike = said(
        "{count:,} waits are like it, {total} in all, {steps}"
        if not kind
        else "{count:,} waits come from the same, {total} in all, {steps}"
        if kind not in OF_ALL
        else "{count:,} waits come from collectives that hold ranks up, {total} in all, {steps}"
        if kind == "exchange"
        else "{count:,} waits come from messages that take long, {total} in all, {steps}",
        count=gap.alike,
        total=_time(gap.alike_ns),
        steps=_steps(gap),
    )
    return [told, alike]


def gap_head(gap: Gap) -> Sentence:
    """Returns what all waits of the gap's cause take, in a few words."""
    if gap.alike < 2:
        return said("1 wait, {total}", total=_time(gap.length_ns))
    return said(
        "{count:,} waits, {total}, {steps}",
        count=gap.alike,
        total=_time(gap.alike_ns),
        steps=_steps(gap),
    )


def _steps(gap: Gap) -> Sentence:
    """Returns in which steps the waits of the gap's cause are."""
    first, last = gap.alike_steps
    if first == last:
        return said("in step {step}", step=first)
    return said("in steps {first} to {last}", first=first, last=last)


def gap_sentence(gap: Gap) -> Sentence:
    """Returns who waited how long for what, and why that came late."""
    awaited, root = gap.awaited, gap.root
    words: dict[str, Any] = {"step": gap.step, "rank": gap.rank, "time": _time(gap.length_ns)}
    if awaited is None:
        words |= {"action": gap.action}
        if root is None:
            return said("in step {step} rank {rank} waited {time} before {action}", **words)
        return said(
            "in step {step} rank {rank} waited {time} before {action}: {why}",
            why=_why(root),
            **words,
        )
    words |= {"action": awaited.action, "other": awaited.rank}
    if root is None:
        return said(
            "in step {step} rank {rank} waited {time} for {action} of rank {other}; nothing before "
            "it took much longer than usual",
            **words,
        )
    if root == awaited:
        return said(
            "in step {step} rank {rank} waited {time} for {action} of rank {other}, which took "
            "{took} where {usual} is usual"
            if root.usual_ns is not None
            else "in step {step} rank {rank} waited {time} for {action} of rank {other}, which "
            "took {took}",
            took=_time(root.took_ns),
            usual=_time(root.usual_ns or 0),
            **words,
        )
    return said(
        "in step {step} rank {rank} waited {time} for {action} of rank {other}, which arrived late "
        "because {why}"
        if gap.pieces.index(root) < gap.pieces.index(awaited)
        else "in step {step} rank {rank} waited {time} for {action} of rank {other}, which began "
        "late because {why}",
        why=_why(root),
        **words,
    )


def _why(root: GapPiece) -> Sentence:
    """Returns what took so long."""
    words: dict[str, Any] = {"rank": root.rank, "time": _time(root.end_ns - root.start_ns)}
    if root.action and root.usual_ns is not None:
        return said(
            "rank {rank} took {took} for {action} where {usual} is usual",
            took=_time(root.took_ns),
            usual=_time(root.usual_ns),
            action=root.action,
            **words,
        )
    if root.kind == "exchange":
        return said("a collective held rank {rank} up for {time}", **words)
    if root.kind == "transfer":
        return said("a message to rank {rank} took {time}", **words)
    if root.name == DATA:
        return said("rank {rank} loaded data for {time}", **words)
    if named := root.action or root.name:
        return said("rank {rank} spent {time} in {action}", action=named, **words)
    return said("nothing of rank {rank} was recorded for {time}", **words)


def way_sentences(gap: Gap) -> Iterator[Sentence]:
    """Yields what went on during the gap, the newest first; what took little is left out."""
    for piece in gap.pieces:
        if piece.end_ns - piece.start_ns < _ON_THE_WAY * gap.length_ns:
            continue
        if piece.action and piece.usual_ns is not None and piece.kind != "exchange":
            words = {"rank": piece.rank, "action": piece.action, "took": _time(piece.took_ns)}
            yield said(
                "rank {rank}: {action}, {took}; {usual} is usual",
                usual=_time(piece.usual_ns),
                **words,
            )
        else:
            yield _why(piece)


def _time(ns: float) -> str:
    return duration_text(ns)
