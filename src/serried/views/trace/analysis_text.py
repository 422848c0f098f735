"""What is measured of a run beyond its bubble, for the terminal: a label and lines of 100 columns.

bubble planned       28.0%   1f1b, with the run's own mean times
communication       exposed 9.1%, behind computation 2.0%
critical path       backward 37.7%, forward 26.3%, optimizer 17.7%, transfer 10.1%
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from serried.errors import listed
from serried.trace.measure.analysis import Analysis
from serried.trace.measure.path.graph import PathPiece
from serried.trace.measure.path.recorded_path import RecordedPath
from serried.trace.measure.planned_bubble import PlannedBubble, Shares
from serried.trace.measure.ranks.slowest import COMPUTING, RankPace
from serried.trace.measure.recognition import Likeness
from serried.trace.measure.statistics import BubbleStatistics
from serried.trace.measure.step_table import StepTable
from serried.trace.measure.throughput import Throughput
from serried.units import duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table
from serried.views.trace.text import ROOM, add_more, label_text, labelled, rows_of
from serried.views.trace.verdict import standing_text
from serried.views.trace.words import LONGER

RANKS_NAMED = 3
"""Slow ranks, and ranks of the critical path, that the terminal names; JSON has them all."""

# The least share that is printed as 0.1%.
_LEAST_SHARE = 0.0005
_PATH_LINES = 3

WORDS = {
    "step": "step",
    "rank": "rank",
    "stage": "stage",
    "forward": "forward",
    "backward": "backward",
    "weight": "weight gradient",
    "send": "send",
    "receive_wait": "receive wait",
    "reduce": "reduce",
    "exchange": "exchange",
    "optimizer": "optimizer",
    "transfer": "transfer",
    "other": "nothing recorded",
    "idle": "idle",
}
"""What columns and causes are called, before they are translated."""


def order_lines(analysis: Analysis, *, lang: str = "en") -> list[str]:
    """Returns which schedule the recorded order is, and where it leaves the nearest one."""
    if analysis.order is None:
        return []
    found = analysis.recognition
    if found is None:
        told = [tell("no known schedule has these sizes", lang)]
    elif found.is_exact:
        # At some sizes several schedules can give one order; the others that match are named too.
        others = [name for name in found.equals if name != found.best.name]
        told = [
            tell(
                "that of {schedule} on every rank; at these sizes {others} is the same"
                if others
                else "that of {schedule} on every rank",
                lang,
                schedule=found.best.name,
                others=listed(others),
            )
        ]
    else:
        told = _nearest(found.best, lang)
    return labelled(tell("order", lang), told)


def _nearest(best: Likeness, lang: str) -> list[str]:
    departure = best.departure
    told = [
        tell("nearest to {schedule}, {share:.0%} match", lang, schedule=best.name, share=best.share)
    ]
    if departure is not None:
        nothing = tell("nothing more", lang)
        told.append(
            tell(
                "rank {rank}: after {place:,} alike, {ours} instead of {theirs}",
                lang,
                rank=departure.rank,
                place=departure.place,
                ours=departure.recorded or nothing,
                theirs=departure.planned or nothing,
            )
        )
    return told


def planned_lines(
    planned: PlannedBubble | None, *, lang: str = "en", is_whole: bool = True
) -> list[str]:
    """Returns the bubble that the schedule would have, with the run's times and with even ones.

    ``is_whole`` adds the other shares that go by the name of bubble.
    """
    if planned is None:
        return []
    if not is_whole:
        return [_planned_line(planned, lang)]
    schedule = phrase(planned.schedule, lang)
    label = tell("bubble planned", lang)
    even = tell("{schedule}, all stages alike", lang, schedule=schedule)
    if planned.own_times is None:
        return _shares(label, planned.uniform, even, lang)
    own = tell("{schedule}, each stage with its own mean times", lang, schedule=schedule)
    return [
        *_shares(label, planned.own_times, own, lang),
        *_shares("", planned.uniform, even, lang),
    ]


def _planned_line(planned: PlannedBubble, lang: str) -> str:
    own = planned.own_times or planned.uniform
    meaning = tell(
        "{schedule}, all stages alike"
        if planned.own_times is None
        else "{schedule}, each stage's own times; {even:.1%} with equal ones",
        lang,
        schedule=phrase(planned.schedule, lang),
        even=planned.uniform.of_makespan,
    )
    return f"{label_text(tell('bubble planned', lang))}{own.of_makespan:6.1%}   {meaning}"


def _shares(label: str, shares: Shares, what: str, lang: str) -> list[str]:
    more = tell(
        "{over:.1%} over the ideal time, {longest:.1%} of the longest window",
        lang,
        over=shares.over_ideal,
        longest=shares.longest_window,
    )
    return [f"{label_text(label)}{shares.of_makespan:6.1%}   {what}", label_text() + more]


def communication_lines(bubbles: BubbleStatistics | None, *, lang: str = "en") -> list[str]:
    """Returns how much of the communication computations hid, and how much lies inside them."""
    if bubbles is None or bubbles.exposed + bubbles.overlapped < _LEAST_SHARE:
        return []
    told = tell(
        "exposed {exposed:.1%} of the ranks' time, {inside:.1%} inside computations; "
        "behind them {hidden:.1%}"
        if bubbles.exchange >= _LEAST_SHARE
        else "exposed {exposed:.1%} of the ranks' time, behind computations {hidden:.1%}",
        lang,
        exposed=bubbles.exposed,
        inside=bubbles.exchange,
        hidden=bubbles.overlapped,
    )
    return labelled(tell("communication", lang), [told])


def throughput_lines(found: Throughput | None, *, lang: str = "en") -> list[str]:
    """Returns microbatches and tokens a second, and how long a step is from start to start."""
    if found is None:
        return []
    speed = tell("{count:,.1f} microbatches/s", lang, count=found.microbatches_per_s)
    if found.tokens_per_s is not None:
        tokens = tell("{count:,.0f} tokens/s", lang, count=found.tokens_per_s)
        speed = str(say(listed([tokens, speed]), lang))
    period = tell(
        "{speed}; a step every {period}, jitter {jitter:.1%}"
        if found.has_gaps
        else "{speed}; a step takes {period}, jitter {jitter:.1%}",
        lang,
        speed=speed,
        period=duration_text(found.period_ns),
        jitter=found.jitter,
    )
    return labelled(tell("throughput", lang), [period])


def slowest_lines(
    paces: Sequence[RankPace], *, lang: str = "en", has_pipeline: bool = True
) -> list[str]:
    """Returns the ranks that the others of their stages wait for, or why none is told."""
    if not paces:
        return []
    slow = [each for each in paces if each.is_slow][:RANKS_NAMED]
    told = [line for each in slow for line in _slow(each, lang, has_pipeline=has_pipeline)]
    told = told or [standing_text(paces, lang, has_pipeline=has_pipeline)]
    return labelled(tell("slowest ranks", lang), told)


def _slow(pace: RankPace, lang: str, *, has_pipeline: bool) -> list[str]:
    # Where only computing times could be compared, the sentence must not claim that others wait.
    if pace.evidence == COMPUTING:
        return [
            tell(
                "rank {rank} computes {slower:.1%} longer than others of its stage, in {steps} of "
                "{total} steps",
                lang,
                rank=pace.rank,
                slower=pace.slower,
                steps=pace.slower_steps,
                total=pace.num_steps,
            )
        ]
    waited_for = tell(
        "others of its stage wait {waited} a step for rank {rank}, in {steps} of {total} steps"
        if has_pipeline
        else "the others wait {waited} a step for rank {rank}, in {steps} of {total} steps",
        lang,
        waited=duration_text(pace.waited_for_ns or 0),
        rank=pace.rank,
        steps=pace.waited_for_steps,
        total=pace.num_steps,
    )
    parts = listed(
        tell("{part} {more}", lang, part=phrase(LONGER[name], lang), more=duration_text(ns))
        for name, ns in pace.longer
    )
    why = tell("it takes longer than they do: {parts}", lang, parts=say(parts, lang))
    return [waited_for, *([why] if pace.longer else [])]


def path_lines(path: RecordedPath | None, *, lang: str = "en", is_whole: bool = True) -> list[str]:
    """Returns what the steps' length is made of: kinds, ranks, and one step's actions in turn.

    ``is_whole`` adds those actions.
    """
    if path is None:
        return []
    shares = sorted(path.by_kind.items(), key=lambda each: -each[1])
    kinds = [
        tell("{cause} {share:.1%}", lang, cause=phrase(WORDS[kind], lang), share=share)
        for kind, share in shares
        if share >= _LEAST_SHARE
    ]
    ranks = sorted(path.by_rank.items(), key=lambda each: (-each[1], each[0]))
    named = [
        tell("rank {rank} {share:.1%}", lang, rank=rank, share=share)
        for rank, share in ranks[:RANKS_NAMED]
    ]
    rest = len(ranks) - len(named)
    if rest:
        one = rest == 1
        named.append(
            tell("1 more rank", lang) if one else tell("{count:,} more ranks", lang, count=rest)
        )
    # Shares are means over steps; the actions can only be of one, the step of median length.
    actions = tell("in step {step}: {actions}", lang, step=path.step, actions=_turns(path.pieces))
    told = [
        *rows_of(kinds, lang),
        *rows_of(named, lang),
        *(_wrapped(actions) if is_whole else []),
    ]
    return labelled(tell("critical path", lang), told)


def _turns(pieces: Sequence[PathPiece]) -> str:
    """Returns the actions of a path one after another, a job in pieces once."""
    names = [piece.action for piece in pieces if piece.action is not None]
    # An exchange inside a backward cuts it into pieces that follow one another: B3 B3 B3 is one B3.
    return " ".join(name for at, name in enumerate(names) if not at or names[at - 1] != name)


def by_table(table: StepTable, *, rows: int, lang: str = "en") -> Table:
    """Returns a grouping of the step table: a row per group, a column per kind that took time."""
    shown = [name for name, column in table.columns.items() if column.any()]
    answer = Table()
    for name in (*table.by, *shown):
        answer.add_column(phrase(WORDS[name], lang), justify="right", no_wrap=True)
    for row in range(min(len(table), rows)):
        keys = [str(int(key)) for key in table.keys[row]]
        answer.add_row(*keys, *(duration_text(float(table.columns[name][row])) for name in shown))
    add_more(answer, len(table) - rows, lang)
    return answer


def _wrapped(text: str) -> list[str]:
    """Returns ``text`` broken at blanks, the last line cut where there is no room for more."""
    lines = [""]
    for word in text.split():
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > ROOM:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    if len(lines) <= _PATH_LINES:
        return lines
    last = lines[_PATH_LINES - 1]
    # The ellipsis and its blank take two columns, for which words at the end give way.
    while cell_len(last) + 2 > ROOM:
        last = last.rpartition(" ")[0]
    return [*lines[: _PATH_LINES - 1], f"{last} …"]
