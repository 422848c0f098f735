"""The verdict on a recorded run: whom the others wait for, and what a step is idle for."""

from __future__ import annotations

from serried.trace.measure.analysis import Analysis
from serried.trace.measure.slowest import COMPUTING, RankPace
from serried.trace.model.trace import Trace
from serried.units import duration_text
from serried.views.sentences import phrase, tell
from serried.views.trace.text import CAUSES, OF_A_STEP


def run_verdict_lines(trace: Trace, analysis: Analysis, *, lang: str = "en") -> list[str]:
    """Returns what costs a run most, the rank and host that it is of, and what to ask next.

    They are three lines at most; none where no step was finished by every rank.
    """
    found = analysis.statistics
    if found.bubble is None or found.bubbles is None or not found.steps:
        return []
    slow = next((each for each in analysis.paces if each.is_slow), None)
    lines = [] if slow is None else [_slow(trace, slow, lang)]
    causes = found.bubbles.causes
    cause = max(causes, key=lambda each: causes[each])
    words = CAUSES if trace.has_pipeline else {**CAUSES, **OF_A_STEP}
    lines.append(
        tell(
            "a step takes {window}; ranks are idle for {share:.1%} of it, most of it {cause} "
            "({part:.1%})",
            lang,
            window=duration_text(sum(each.window_ns for each in found.steps) / len(found.steps)),
            share=found.bubble,
            cause=phrase(words[cause], lang),
            part=causes[cause],
        )
    )
    if trace.has_pipeline:
        lines.append(tell("next: serried trace compare DIR --plan, where it leaves its plan", lang))
    return lines


def _slow(trace: Trace, pace: RankPace, lang: str) -> str:
    host = next((each.name for each in trace.hosts if pace.rank in each.ranks), "")
    if pace.evidence == COMPUTING:
        return tell(
            "rank {rank} on {host} computes {slower:.1%} longer than others of its stage",
            lang,
            rank=pace.rank,
            host=host,
            slower=pace.slower,
        )
    return tell(
        "the others wait for rank {rank} on {host}: {waited} of a step of {step}",
        lang,
        rank=pace.rank,
        host=host,
        waited=duration_text(pace.waited_for_ns or 0),
        step=duration_text(pace.step_ns),
    )
