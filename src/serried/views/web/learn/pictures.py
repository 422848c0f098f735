"""The small picture on a lesson's card: ranks in the colours of their groups, or a schedule."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from serried.action import ActionKind
from serried.pipeline import Costs, Request, generate, simulate
from serried.views.colours import ACTIONS, shades
from serried.views.learn.lessons import LessonShown
from serried.views.web.layout.payload import looks_of
from serried.views.web.wire.query import read_count, read_query


def lesson_picture(lesson: LessonShown) -> dict[str, Any]:
    """Returns what is drawn on the card of a lesson.

    ``ranks`` holds the colours of each rank, one for each kind of groups that the lesson shows,
    ``nodes`` the node of each; ``bars`` rank, start, end and colour of every action.
    """
    return _schedule(lesson) if "stages" in lesson.words else _ranks(lesson)


def _ranks(lesson: LessonShown) -> dict[str, Any]:
    words = parse_qs(lesson.address)
    query = read_query(words)
    colours: list[list[str]] = [[] for _ in range(query.layout.world_size)]
    for shown, look in looks_of(query.shown()):
        groups = query.layout.groups(shown.kind)
        shade = shades(look, len(groups))
        for rank, group in enumerate(groups.index(query.layout.world_size)):
            colours[rank].append(f"#{shade[group]:06x}")
    nodes = [query.placement.node(rank) for rank in range(query.layout.world_size)]
    return {"ranks": colours, "nodes": nodes, "chosen": read_count(words, "rank")}


def _schedule(lesson: LessonShown) -> dict[str, Any]:
    asked = Request(int(lesson.words["stages"]), int(lesson.words["microbatches"]))
    made = simulate(generate("1f1b", asked), Costs())
    rows = zip(made.schedule.rank, made.start, made.end, made.schedule.kind, strict=True)
    bars = [
        [int(rank), float(start), float(end), ACTIONS[ActionKind(kind)]]
        for rank, start, end, kind in rows
    ]
    return {"bars": bars}
