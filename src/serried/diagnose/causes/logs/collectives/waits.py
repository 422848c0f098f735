"""What each rank waited in when the watchdog gave up: its time-out with its group's counters.

[rank4] timeout  ALLREDUCE 7753, 64 -> 64 elements      ┐
[rank4] status   group PG 1, enqueued 7755, done 7752   ┴─> LoggedWait(rank 4, ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from serried.diagnose.causes.logs.signs import LoggedSigns
from serried.diagnose.evidence.sign import CollectiveFacts, Sign

UNEVEN = ("ALLTOALL", "GATHER", "SCATTER", "SEND", "RECV", "COALESCED", "ALLTOALL_BASE", "P2P")
"""Calls whose ranks may bring different sizes."""


@dataclass(frozen=True)
class LoggedWait:
    """Holds one collective that one rank waited in until the limit."""

    rank: int | None
    facts: CollectiveFacts
    meeting: str | None
    """What tells the group for certain, over ranks; None where it may be another on each."""
    signs: tuple[Sign, ...]

    @property
    def shape(self) -> tuple[str | None, int | None, int | None]:
        """What must agree over the ranks of a collective: its name and its sizes."""
        return self.facts.op, self.facts.numel_in, self.facts.numel_out


def logged_waits(told: LoggedSigns) -> list[LoggedWait]:
    """Returns the waits of all ranks in the order of the log, each rank's collective once."""
    states = told.of("status")
    waits: dict[object, LoggedWait] = {}
    figures, cut = _parted(told, told.of("timeout"))
    meeting, group = _only_meeting(told, states or told.of("group_told") or cut)
    for sign in figures:
        facts, rank = sign.collective or CollectiveFacts(), told.rank(sign.speaker)
        state = _state(told, states, rank, facts)
        wait = _joined(rank, facts, sign, state)
        waits.setdefault((rank, facts.seq, facts.op, wait.facts.group), wait)
    if not waits:
        for state in states:
            rank, facts = told.rank(state.speaker), state.collective or CollectiveFacts()
            if _is_idle(facts):
                continue
            waits.setdefault((rank, facts.group), _joined(rank, facts, state, state))
    return [
        replace(w, meeting=meeting, facts=replace(w.facts, group=group))
        if w.facts.group is None
        else w
        for w in waits.values()
    ]


def _parted(told: LoggedSigns, timeouts: Sequence[Sign]) -> tuple[list[Sign], list[Sign]]:
    """Returns the time-outs, and those that repeat one of their rank and break off before it."""
    whole = told.ranks(s for s in timeouts if s.collective and s.collective.seq is not None)
    cut = [
        s
        for s in timeouts
        if s.collective
        and s.collective.group
        and s.collective.seq is None
        and s.collective.op is None
        and told.rank(s.speaker) in whole
    ]
    return [sign for sign in timeouts if sign not in cut], cut


def _is_idle(facts: CollectiveFacts) -> bool:
    """Tells whether counters say that a rank had finished every call that it had issued."""
    return facts.seq is None and facts.last_completed == facts.last_enqueued is not None


def _only_meeting(told: LoggedSigns, states: Sequence[Sign]) -> tuple[str | None, str | None]:
    """Returns the one group that all counters are of, for time-outs that came without any."""
    meetings = set()
    for state in states:
        group = state.collective.group if state.collective else None
        meetings.add((meeting_of(state, told.rank(state.speaker)), group))
    return meetings.pop() if len(meetings) == 1 else (None, None)


def _state(
    told: LoggedSigns, states: Sequence[Sign], rank: int | None, facts: CollectiveFacts
) -> Sign | None:
    """Returns the counters that belong to a time-out: the same rank's, of the same number."""
    own = [sign for sign in states if told.rank(sign.speaker) == rank]
    same = [sign for sign in own if sign.collective and sign.collective.seq == facts.seq]
    if same:
        return same[0]
    groups = {sign.collective.group for sign in own if sign.collective}
    return own[0] if len(groups) == 1 and facts.seq is None else None


def _joined(rank: int | None, facts: CollectiveFacts, sign: Sign, state: Sign | None) -> LoggedWait:
    if state is None or state.collective is None:
        return LoggedWait(rank, facts, _meeting(facts.group, None, None, rank), (sign,))
    counters = state.collective
    whole = replace(
        facts,
        group=counters.group or facts.group,
        last_enqueued=counters.last_enqueued,
        last_completed=counters.last_completed,
    )
    meeting = meeting_of(state, rank) if counters.group else _meeting(whole.group, None, None, rank)
    return LoggedWait(rank, whole, meeting, (sign,) if sign is state else (sign, state))


def meeting_of(state: Sign, rank: int | None) -> str | None:
    """Returns what names the group of some counters alike on all its ranks, None where nothing."""
    group = state.collective.group if state.collective else None
    return _meeting(group, state.facts.get("guid"), state.facts.get("group_rank"), rank)


def _meeting(group: str | None, guid: object, group_rank: object, rank: int | None) -> str | None:
    """Returns what names a group alike on all its ranks.

    A number such as ``PG 3`` counts the groups of one process, so that it names another group on
    another rank; the global identifier does not, nor does a group whose ranks are all ranks.
    """
    if guid is not None:
        return f"guid {guid}"
    if group in ("default_pg", "PG 0"):
        return "world"
    if group is not None and group_rank is not None and group_rank == rank:
        return group
    return None
