"""Processes that ended: by the host's memory, a signal, an exit code, a person."""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.causes.logs.ends.exits import exit_candidates, stop_candidates
from serried.diagnose.causes.logs.ends.told import told_ends
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause


def process_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what ended processes from outside, or without a word of their own."""
    yield from told_ends(told)
    yield from exit_candidates(told)
    yield from stop_candidates(told)
