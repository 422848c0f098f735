"""Who waits for whom: ranks, and between them the collectives and messages that they wait in.

    rank 7 ──▶ all_reduce 6 of dp_3 ──▶ rank 5 ──▶ barrier 1 of world ──▶ ranks 2, 3, 6, 7
               (a meeting)             (absent)

A meeting stands between those who have come and those who have not, so that a barrier of n ranks
takes n edges and not n squared; 16,384 ranks in several groups each stay a graph of some 100,000
edges.

>>> dp = JobGroup("dp_0", "dp", (0, 1))
>>> came = RankState(1, doing=RankOperation("all_reduce", "dp_0", seq=4), counts={"dp_0": 4})
>>> graph = wait_graph(JobState.of(2, [dp], [RankState(0, counts={"dp_0": 3}), came]))
>>> [meeting] = graph.meetings
>>> meeting.came, meeting.absent
((1,), (0,))
>>> graph.waits_for(1)
(0,)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from serried.diagnose.job_state.state import (
    MESSAGES,
    JobGroup,
    JobState,
    RankCondition,
    RankOperation,
    RankState,
)

_HELD = (RankCondition.DEAD, RankCondition.FINISHED, RankCondition.STOPPED)
"""Conditions in which a process goes on by nobody's coming: it waits for no one."""


@dataclass(frozen=True)
class StalledCollective:
    """Holds one collective in which somebody waits: who came, and who did not."""

    group: JobGroup
    seq: int | None
    """The place among the group's collectives; None where no source counts them."""
    operations: Mapping[int, RankOperation]
    """What each rank that waits in it brought."""
    absent: tuple[int, ...]
    """Members that are known not to have come."""
    unheard: tuple[int, ...]
    """Members of which nothing tells whether they came."""

    @property
    def came(self) -> tuple[int, ...]:
        """The ranks that wait in it."""
        return tuple(self.operations)

    @property
    def awaited(self) -> tuple[int, ...]:
        """Those who keep it from going on: the absent, or else those of whom nothing is known."""
        return self.absent or self.unheard


@dataclass(frozen=True)
class WaitGraph:
    """Holds the waits of a job: nodes below ``state.world_size`` are ranks, others meetings."""

    state: JobState
    meetings: tuple[StalledCollective, ...]
    successors: tuple[tuple[int, ...], ...]
    """By node, the nodes that it waits for."""

    def meeting(self, node: int) -> StalledCollective:
        """Returns the meeting that a node beyond the ranks stands for."""
        return self.meetings[node - self.state.world_size]

    def meeting_of(self, rank: int) -> StalledCollective | None:
        """Returns the collective that a rank waits in, or None."""
        for node in self.successors[rank]:
            if node >= self.state.world_size:
                return self.meeting(node)
        return None

    def waits_for(self, rank: int) -> tuple[int, ...]:
        """Returns the ranks that a rank waits for: who is absent where it waits, or its peer."""
        meeting = self.meeting_of(rank)
        return meeting.awaited if meeting else self.successors[rank]

    @cached_property
    def waiting(self) -> tuple[int, ...]:
        """The ranks that wait for anybody."""
        return tuple(rank for rank in range(self.state.world_size) if self.successors[rank])

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """By node, the nodes that wait for it."""
        found: list[list[int]] = [[] for _ in self.successors]
        for node, after in enumerate(self.successors):
            for each in after:
                found[each].append(node)
        return tuple(map(tuple, found))

    def waiters(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """Returns everybody who waits for any of ``ranks``, directly or through others."""
        seen, stack = set(ranks), list(ranks)
        while stack:
            for node in self.predecessors[stack.pop()]:
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
        world_size = self.state.world_size
        return tuple(sorted(r for r in seen if r < world_size and r not in ranks))


def wait_graph(state: JobState) -> WaitGraph:
    """Returns who waits for whom in a job that stands still."""
    at: dict[tuple[str, int | None], dict[int, RankOperation]] = defaultdict(dict)
    edges: list[tuple[int, ...]] = [() for _ in range(state.world_size)]
    for each in state.ranks:
        doing = each.doing
        if doing is None or each.condition in _HELD or doing.is_finished:
            continue
        if doing.op in MESSAGES:
            edges[each.rank] = () if doing.peer is None else (doing.peer,)
        elif doing.group is not None and doing.group in state.group_named:
            at[doing.group, _place(each, doing)][each.rank] = doing
    _join_uncounted(at)
    meetings = tuple(_meetings(state, at))
    for number, meeting in enumerate(meetings):
        for rank in meeting.came:
            edges[rank] = (state.world_size + number,)
    return WaitGraph(state, meetings, (*edges, *(meeting.awaited for meeting in meetings)))


def _place(rank: RankState, doing: RankOperation) -> int | None:
    if doing.seq is not None:
        return doing.seq
    return None if rank.counts is None else rank.counts.get(doing.group or "")


def _join_uncounted(at: dict[tuple[str, int | None], dict[int, RankOperation]]) -> None:
    """Puts those whose place in a group nothing counts to the last that others wait in there."""
    for group, seq in [key for key in at if key[1] is None]:
        counted = [number for name, number in at if name == group and number is not None]
        if counted:
            at[group, max(counted)].update(at.pop((group, seq)))


def _meetings(
    state: JobState, at: Mapping[tuple[str, int | None], dict[int, RankOperation]]
) -> list[StalledCollective]:
    found = []
    for (name, seq), operations in at.items():
        group = state.group_named[name]
        absent, unheard = [], []
        for rank in group.ranks:
            if rank in operations:
                continue
            came = _came(state.ranks[rank], name, seq)
            if came is None:
                unheard.append(rank)
            elif not came:
                absent.append(rank)
        if not absent:
            # All came, and one of them ended or was stopped inside it.
            absent = [
                rank
                for rank in group.ranks
                if state.ranks[rank].condition in _HELD and _is_inside(state.ranks[rank], name, seq)
            ] or [rank for rank in group.ranks if _is_behind(state.ranks[rank], name, seq)]
        found.append(StalledCollective(group, seq, operations, tuple(absent), tuple(unheard)))
    return found


def _is_inside(rank: RankState, group: str, seq: int | None) -> bool:
    doing = rank.doing
    return doing is not None and (doing.group, doing.seq) == (group, seq)


def _is_behind(rank: RankState, group: str, seq: int | None) -> bool:
    """Tells whether a rank has issued a collective behind another that its stream stands in."""
    doing = rank.doing
    if doing is None or not doing.is_queued or (doing.group, doing.seq) == (group, seq):
        return False
    return any(
        (each.group, each.seq) == (group, seq) and not each.is_finished and each.peer is None
        for each in rank.issued
    )


def _came(rank: RankState, group: str, seq: int | None) -> bool | None:
    """Tells whether a rank has issued collective ``seq`` of a group; None where nothing tells."""
    if rank.counts is not None and seq is not None:
        return rank.counts.get(group, 0) >= seq
    doing = rank.doing
    if doing is not None and doing.group == group and (doing.seq is None or seq is None):
        return True
    if rank.condition in _HELD or rank.stack or doing is not None:
        # It is somewhere else, or nowhere any more.
        return False
    return None
