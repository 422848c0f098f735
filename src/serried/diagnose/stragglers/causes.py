"""The family of stragglers: what of the evidence tells who or what makes a job slow."""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.diagnosis import Cause
from serried.diagnose.gathered import Evidence
from serried.diagnose.stragglers.of_profile import profile_causes
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.trace.model.trace import Trace


def causes(evidence: Evidence) -> Iterator[Cause]:
    """Yields who is slow and what makes steps long, the costliest first."""
    found = [
        cause
        for recording in evidence.recordings
        for cause in (
            trace_causes(recording) if isinstance(recording, Trace) else profile_causes(recording)
        )
    ]
    yield from sorted(found, key=_order)


def _order(cause: Cause) -> tuple[bool, float]:
    """Sorts those that name somebody before those that concern everybody, by their cost."""
    return (not cause.ranks, -(cause.cost or 0.0))
