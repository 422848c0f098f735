"""Messages that a recorder does not hold and yet counts: gloo's, by the number of an operation.

    rank 2   all_reduce 3 of default_pg is operation 9, all_reduce 4 operation 11: one message
             between them; two between all that came before: it left one out

gloo leaves sends and receives out of its dumps, and numbers the operations of a group with them.
Where a dump goes back to the first collective of a group, what came before that counts as well.

>>> counted = [RankOperation("all_reduce", "g", seq, messages=at)
...            for seq, at in ((1, 2), (2, 4), (3, 6), (4, 7))]
>>> found = left_out_messages([RankState(2, issued=tuple(counted))])
>>> found[2].found, found[2].usual, found[2].operation.seq
(1, 2, 4)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from serried.diagnose.job_state.state import RankOperation, RankState

LEAST_BEFORE = 2
"""How often as many messages must have passed before, for another number to be odd."""


@dataclass(frozen=True)
class HiddenMessages:
    """Says that a rank issued fewer or more messages before a collective than ever before it."""

    rank: int
    operation: RankOperation
    """The collective."""
    found: int
    usual: int


def left_out_messages(ranks: Iterable[RankState]) -> dict[int, HiddenMessages]:
    """Returns the ranks that issued another number of messages than in all their steps before."""
    found = {}
    for rank in ranks:
        by_group: dict[str, list[RankOperation]] = defaultdict(list)
        for operation in rank.issued:
            if operation.messages is not None and operation.group:
                by_group[operation.group].append(operation)
        for operations in by_group.values():
            numbers = [each.messages or 0 for each in operations]
            if operations[0].seq == 1:
                numbers.insert(0, 0)
            counts = [after - before for before, after in pairwise(numbers)]
            before = set(counts[:-1])
            if len(counts) > LEAST_BEFORE and len(before) == 1 and counts[-1] not in before:
                usual = before.pop()
                found[rank.rank] = HiddenMessages(rank.rank, operations[-1], counts[-1], usual)
    return found
