"""The family of stragglers: what of the evidence tells who or what makes a job slow.

recordings            spans of a run, profiles of GPUs: who waits for whom is in them
flight recorders      moments at which collectives were issued: who came last
lines of logs         how long steps took: what was printed as computing may hold waits
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.diagnosis import Cause
from serried.diagnose.gathered import Evidence
from serried.diagnose.steps.long_run import LongRun
from serried.diagnose.steps.of_dumps import steps_of_state
from serried.diagnose.steps.recording import Recording
from serried.diagnose.stragglers.of_log import log_causes
from serried.diagnose.stragglers.of_long_run import long_run_causes
from serried.diagnose.stragglers.of_profile import profile_causes
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.diagnose.stragglers.slow import SlowSpell, slow_spells
from serried.diagnose.stragglers.told import spell_causes
from serried.trace.model.trace import Trace

LEAST_ROUNDS = 10
"""Rounds of collectives from which on somebody who comes last is named."""
LEAST_LAG_NS = 5e6
"""By how much: the longest time slice that Linux gives a process among few."""


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
    issued = steps_of_state(evidence.state) if evidence.state is not None else None
    came_last = [] if issued is None else [s for s in slow_spells(issued) if _is_told(s)]
    lines = evidence.step_lines
    told = list(log_causes(lines, came_last)) if lines is not None else []
    if not told and issued is not None:
        told = list(spell_causes(issued, came_last, None))
    yield from told


def _is_told(spell: SlowSpell) -> bool:
    """Tells whether rounds of collectives are enough, and a lag more than ranks of one core have.

    Whom the operating system lets run last comes last, by a time slice, again and again.
    """
    return spell.last - spell.first >= LEAST_ROUNDS and spell.lag_ns >= LEAST_LAG_NS


def _order(cause: Cause) -> tuple[bool, float]:
    """Sorts those that name somebody before those that concern everybody, by their cost."""
    return (not cause.ranks, -(cause.cost or 0.0))
