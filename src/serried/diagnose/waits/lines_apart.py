"""Who calls a collective from a line where its peers are not: it left their order before that.

    tp_1    rank 2   … 20 forward  21 backward  22 backward  23 backward
            rank 3   … 20 forward  21 backward  22 forward           it left the rest of its step

Both calls are all-reduces of one size, so that they meet, and the job hangs somewhere else, later.
Programs may let ranks call from lines of their own as well, as where one is the source. So the
lines have to be the same before, and each of the two one from which all called there already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation
from serried.diagnose.waits.order import usual_next

MOST_MEMBERS = 64
"""Members of a group whose calls are compared, at most."""

Chain = tuple[Frame, ...]
"""The user's lines that led to a call, from the outermost on."""


@dataclass(frozen=True)
class LineApart:
    """Says that a rank called a collective from another line than its peers, and which is usual."""

    rank: int
    operation: RankOperation
    line: Frame
    others: Frame
    """Where its peers called it; the outermost line in which the two differ."""


def lines_apart(state: JobState, ranks: Iterable[int]) -> dict[int, LineApart]:
    """Returns those of ``ranks`` that called from elsewhere what their peers call, with where."""
    wanted = set(ranks)
    groups = {group.name: group for rank in wanted for group in state.groups_of[rank]}
    found: dict[int, LineApart] = {}
    for group in groups.values():
        if 1 < len(group.ranks) <= MOST_MEMBERS:
            for each in _parting(state, group):
                if each.rank in wanted:
                    found.setdefault(each.rank, each)
    return found


def _parting(state: JobState, group: JobGroup) -> Iterator[LineApart]:
    calls = {rank: _calls(state, rank, group.name) for rank in group.ranks}
    if not all(calls.values()):
        return
    before: list[Chain] = []
    first = max(map(min, calls.values()))
    for seq in sorted({seq for each in calls.values() for seq in each if seq >= first}):
        there = {rank: each[seq] for rank, each in calls.items() if seq in each}
        ways = Counter(chain for _, chain in there.values())
        if len(ways) < 2:
            before += ways
            continue
        usual = _usual(ways, before)
        if usual is None:
            return
        for rank, (operation, chain) in there.items():
            if chain != usual:
                line, others = next(
                    (pair for pair in zip(chain, usual, strict=False) if pair[0] != pair[1]),
                    (chain[-1], usual[-1]),
                )
                yield LineApart(rank, operation, line, others)
        return


def _calls(state: JobState, rank: int, group: str) -> dict[int, tuple[RankOperation, Chain]]:
    """Returns by their numbers what a rank called in a group, with the lines that led there."""
    return {
        call.seq: (call, tuple(frame for frame in reversed(call.frames) if frame.is_users))
        for call in state.ranks[rank].issued
        if call.group == group and call.seq is not None and call.frames
    }


def _usual(ways: Counter[Chain], before: list[Chain]) -> Chain | None:
    """Returns the line of those that part from which all call there as a rule; None if not told."""
    if not all(way in before for way in ways):
        return None
    usual = usual_next(before)
    return usual if usual in ways else None
