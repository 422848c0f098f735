"""The family of stragglers: what of the evidence tells who or what makes a job slow.

recordings            spans of a run, profiles of GPUs: who waits for whom is in them
flight recorders      moments at which collectives were issued: who came last
lines of logs         how long steps took: what was printed as computing may hold waits
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.diagnosis import Cause
from serried.diagnose.gathered import Evidence
from serried.diagnose.steps.long_run import LongRun
from serried.diagnose.steps.recording import Recording
from serried.diagnose.stragglers.came_last import CameLast, came_last
from serried.diagnose.stragglers.naming import period_of, ranks_at
from serried.diagnose.stragglers.of_log import UNSURE, log_causes
from serried.diagnose.stragglers.of_long_run import long_run_causes
from serried.diagnose.stragglers.of_profile import profile_causes
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.diagnose.stragglers.told import spell_causes
from serried.finding import said
from serried.trace.model.trace import Trace


def causes(evidence: Evidence, *, stopped: bool = False) -> Iterator[Cause]:
    """Yields who is slow and what makes steps long, the costliest first.

    Of a job that something ``stopped`` only recordings tell it: its dumps and logs hold the moments
    of the stop too, and who came last into its last collectives need not be slow.
    """
    found = [cause for recording in evidence.recordings for cause in _of_recording(recording)]
    if not found and not stopped:
        found = list(_without_recording(evidence))
    yield from sorted(found, key=_order)


def _of_recording(recording: Recording) -> Iterator[Cause]:
    if isinstance(recording, Trace):
        return trace_causes(recording)
    if isinstance(recording, LongRun):
        return long_run_causes(recording)
    return profile_causes(recording)


def _without_recording(evidence: Evidence) -> Iterator[Cause]:
    late = came_last(evidence.state) if evidence.state is not None else []
    sure = [each for each in late if not each.candidates]
    lines = evidence.step_lines
    told = list(log_causes(lines, [each.spell for each in sure])) if lines is not None else []
    yield from told
    if told:
        return
    for job in dict.fromkeys(each.job for each in sure):
        yield from spell_causes(job, [each.spell for each in sure if each.job is job], None)
    for one in {each.candidates: each for each in reversed(late) if each.candidates}.values():
        yield from (_one_of(one, cause) for cause in spell_causes(one.job, [one.spell], None))


def _one_of(late: CameLast, cause: Cause) -> Cause:
    """Returns the cause with no rank named, for of several stages nothing tells which it is."""
    return replace(
        cause,
        kind="slow_rank",
        ranks=None,
        confidence=UNSURE,
        verdict=said(
            "one of {who} holds the others up, and flight recorders do not tell which: {cost:.1%} "
            "of each step, {period}",
            who=ranks_at(late.job, late.candidates),
            cost=cause.cost,
            period=period_of(late.job, late.spell.first, late.spell.last),
        ),
        chain=(
            said(
                "what one stage sends late the others get late; a recording of some steps "
                "(serried.record) tells which of them it is"
            ),
        ),
    )


def _order(cause: Cause) -> tuple[bool, float]:
    """Sorts those that name somebody before those that concern everybody, by their cost."""
    return (not cause.ranks, -(cause.cost or 0.0))
