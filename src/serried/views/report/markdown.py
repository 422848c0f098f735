"""The report as Markdown for pull requests and chats: verdicts first, tables, one picture beside.

# serried: run
## Run          the lines of ``serried trace stats``
## Hang         those of ``serried diagnose``
## Layout       kinds of groups
## Plan         memory by stage, parts of a step
## Schedule     ![…](run.svg)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias
from urllib.parse import quote

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.pipeline.measured import MeasuredSchedule
from serried.plan.asked import WHAT
from serried.plan.job_plan import job_plan
from serried.trace.measure.analysis import analyse
from serried.views.diagnose.text import diagnosis_lines
from serried.views.layout.text import headline, kinds_table
from serried.views.plan.text import plan_parts
from serried.views.report.questions import (
    OF_SCHEDULES,
    State,
    full_state,
    plan_state,
    words_of_state,
)
from serried.views.schedule.svg import schedule_svg
from serried.views.schedule.text import headline as schedule_headline
from serried.views.schedule.text import number_lines
from serried.views.sentences import say
from serried.views.table import Table
from serried.views.trace.page import stats_parts
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.plan.query import read_plan_request
from serried.views.web.schedule.query import read_schedule_query
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire.query import Query, read_query

Part: TypeAlias = str | Table
WIDTH = 100
RUN, HANG, LAYOUT = said("Run"), said("Diagnosis"), said("Layout")
PLAN, SCHEDULE = said("Plan"), said("Schedule")


def report_markdown(
    desk: OpeningDesk, asked: State, *, title: str, picture: str, lang: str
) -> tuple[str, str]:
    """Returns the text, and the SVG of the job's schedule that it names as ``picture``.

    The picture is empty where the job has no pipeline, or more actions than one holds. Raises
    InputError where there is no layout.
    """
    state = full_state(asked)
    words = words_of_state(state)
    query = read_query(words)
    parts = [f"# {title}"]
    for heading, found in _sections(desk, query, state, asked, lang):
        parts += [f"## {say(heading, lang)}", *_blocks(found)]
    measured = _schedule(state)
    if measured is None:
        return "\n\n".join(parts) + "\n", ""
    parts += [f"## {say(SCHEDULE, lang)}", *_blocks(_of_schedule(measured, lang))]
    try:
        drawn = schedule_svg(measured.simulation)
    except InputError as error:  # more actions than a picture holds: the numbers stand alone
        return "\n\n".join([*parts, say(error, lang)]) + "\n", ""
    # A name with a blank in it would end the target of a link.
    parts += [f"![{schedule_headline(measured, lang=lang)}]({quote(picture)})"]
    return "\n\n".join(parts) + "\n", drawn


def _sections(
    desk: OpeningDesk, query: Query, state: State, asked: State, lang: str
) -> Iterator[tuple[Sentence, Sequence[Part]]]:
    """Yields each heading with its lines and tables: what is wrong before what was asked."""
    for case in desk.cases:
        yield HANG, diagnosis_lines(case.diagnosis, lang=lang, width=WIDTH)
    for named in desk.traces:
        yield RUN, _of_run(named, lang)
    layout, placement = query.layout, query.placement
    kinds = [each.kind for each in query.shown()]
    table = kinds_table(layout, placement, kinds, lang=lang)
    yield LAYOUT, [headline(layout, placement, lang=lang), "", table]
    # What was opened says nothing of the model that a page plans unless it is told another.
    if "model" in asked or not desk.openings:
        yield PLAN, _of_plan(query, plan_state(state), _assumed(desk, state, asked), lang)


def _of_plan(query: Query, state: State, assumed: Sequence[str], lang: str) -> Sequence[Part]:
    try:
        plan = job_plan(read_plan_request(query, words_of_state(state)))
    except InputError as error:
        return [say(error, lang)]
    parts = plan_parts(plan, columns=WIDTH, lang=lang)
    if not assumed:
        return parts
    values = [said("{what} {value}", what=WHAT[name], value=state[name]) for name in assumed]
    told = said("assumed, as nothing that was given says it: {values}", values=listed(values))
    return [*parts, "", say(told, lang)]


def _assumed(desk: OpeningDesk, state: State, asked: State) -> list[str]:
    """Returns what the plan takes that neither a file nor a link said."""
    if not desk.openings:
        return [name for name in WHAT if name not in asked]
    return [name for name in state.get("plan_assumed", "").split(",") if name in WHAT]


def _of_run(named: NamedTrace, lang: str) -> list[Part]:
    """Returns what ``serried trace stats`` says of a run."""
    place = [named.place] if named.place else []
    found = analyse(named.trace)
    return stats_parts(named.trace, found, lang=lang, places=place, has_more=False)


def _schedule(state: State) -> MeasuredSchedule | None:
    """Returns the schedule of the job; None without a pipeline that has one."""
    if state["pp"] == "1":
        return None
    # Words of plans and schedules may be called alike: recompute is a time here.
    told = {name: state[name] for name in ("name", *OF_SCHEDULES) if name in state}
    asked = {"stages": state["pp"], "name": "1f1b", **told}
    asked["name"] = asked["name"].split(",")[0]
    try:
        return read_schedule_query(words_of_state(asked)).measured()
    except InputError:
        return None


def _of_schedule(measured: MeasuredSchedule, lang: str) -> list[Part]:
    return [schedule_headline(measured, lang=lang), *number_lines(measured, lang=lang)]


def _blocks(parts: Sequence[Part]) -> Iterator[str]:
    """Yields blocks of Markdown: tables as tables, the lines between them as they stand."""
    lines: list[str] = []
    for part in [*parts, ""]:
        if isinstance(part, str) and part:
            lines.append(part)
            continue
        if lines:
            yield "\n".join(["```", *lines, "```"])
            lines = []
        if isinstance(part, Table):
            yield markdown_table(part)


def markdown_table(table: Table) -> str:
    """Returns a table as Markdown has them.

    >>> table = Table()
    >>> table.add_column("kind")
    >>> table.add_column("groups", justify="right")
    >>> table.add_row("a|b", "8")
    >>> print(markdown_table(table))
    | kind | groups |
    |---|---:|
    | a\\|b | 8 |
    """
    columns = table.columns
    rows = zip(*(each.texts for each in columns), strict=True)
    head, *rest = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    rule = "|".join("---:" if each.justify == "right" else "---" for each in columns)
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rest)])
