"""Whether a job had long stood still when somebody stopped it, where nobody can be named.

    rank 4   ...|all_reduce 3|   waits, 9:00:24              9:00:47  torchrun is told to stop
             └── 0.03 s apart ──┘ └──────────── 23 s ────────────┘

Flight recorders tell moments since 1970, logs those of a clock on the wall. Zones differ by whole
quarters of an hour, so that what is left beside those is the least that nobody issued anything for.
A wait that seems to end before it began tells nothing.
"""

from __future__ import annotations

from itertools import pairwise

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.program import is_in_communication
from serried.diagnose.job_state.state import JobState, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.finding import said

STOOD_STILL = "stood_still"
LEAST_S, LEAST_TIMES = 10.0, 10.0
"""How long nobody must have issued anything, and how many times the longest pause before."""
MOST_QUOTED = 8
"""Ranks whose places are shown."""
_ZONES_S = 900.0
_AHEAD_S = 60.0
"""How far clocks of hosts may be apart."""
_STOPS = frozenset({"agent_signal", "closing"})


def stood_still(evidence: Evidence) -> Cause | None:
    """Returns that a job stood still until it was stopped; None where nothing shows that."""
    state, stop = evidence.state, _stop(evidence)
    if state is None or stop is None or stop.time is None:
        return None
    if not any(each.began_ns for rank in state.ranks for each in rank.issued):
        return _by_stacks(state, stop)
    issued = [[each.began_ns / 1e9 for each in r.issued if each.began_ns] for r in state.ranks]
    last = max((moments[-1] for moments in issued if moments), default=None)
    if last is None or not _is_anyone_waiting(state):
        return None
    waited = (stop.time - last) % _ZONES_S
    usual = max((_longest_pause(moments) for moments in issued if len(moments) > 1), default=None)
    if usual is None or waited > _ZONES_S - _AHEAD_S:
        return None
    if waited < max(LEAST_S, LEAST_TIMES * usual):
        return None
    return Cause(
        CauseClass.HANG,
        STOOD_STILL,
        None,
        said(
            "the job seems to have stood still when it was told to stop: what its ranks left has "
            "no collective of at least the last {seconds:.0f} s, and before that no pause of more "
            "than {usual:.2g} s; nothing tells who kept the others waiting",
            seconds=waited,
            usual=usual,
        ),
        0.5,
        quotes=(stop.quote,),
    )


def _by_stacks(state: JobState, stop: Sign) -> Cause | None:
    """Returns that all ranks were idle in waits before the stop, where nothing tells of times.

    Whoever takes all stacks while a job runs does so as it seems to stand.
    """
    if len(state.ranks) < 2 or not all(map(_is_idle, state.ranks)):
        return None
    return Cause(
        CauseClass.HANG,
        STOOD_STILL,
        None,
        said(
            "the job seems to have hung before it was told to stop: when the stacks of its "
            "{count} ranks were taken, all of them were idle in waits for others; nothing tells "
            "whom they wait for",
            count=len(state.ranks),
        ),
        0.4,
        quotes=(*(rank.quotes[0] for rank in state.ranks[:MOST_QUOTED] if rank.quotes), stop.quote),
    )


def _is_idle(rank: RankState) -> bool:
    return rank.is_active is False and is_in_communication(rank.stack)


def _stop(evidence: Evidence) -> Sign | None:
    stops = [each for each in evidence.signs if each.kind in _STOPS and each.time is not None]
    return min(stops, key=lambda each: each.time or 0.0, default=None)


def _is_anyone_waiting(state: JobState) -> bool:
    seen = any(is_in_communication(each.stack) for each in state.ranks)
    return seen or bool(wait_graph(state).waiting)


def _longest_pause(moments: list[float]) -> float:
    """Returns the longest pause in the later half of what a rank issued, past its start."""
    pauses = [after - before for before, after in pairwise(moments)]
    return max(pauses[len(pauses) // 2 :])
