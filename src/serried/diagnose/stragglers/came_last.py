"""Who comes last to collectives, by flight recorders, and who only follows somebody's lateness.

    stage 0   tp_0  rank 0  ......late |      both late alike: what they got from stage 1 was late
                    rank 1  ......late |
    stage 1   tp_2  rank 4  |waits.....|      rank 4 waits for rank 5, which is late by itself
                    rank 5  ......late |

Lateness passes from stage to stage with messages, of which gloo's recorder holds none. All ranks
that meet most often get it together. Who is late by itself keeps just those waiting. Of ranks of
one pipeline that are each late by themselves one is slow, and nothing tells which.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from serried.diagnose.job_state.state import JobState
from serried.diagnose.steps.of_dumps import steps_of_state
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.slow import SlowSpell, slow_spells
from serried.diagnose.waits.messages import is_of_messages

LEAST_ROUNDS = 10
"""Rounds of collectives from which on somebody who comes last is named."""
LEAST_LAG_NS = 5e6
"""By how much: the longest time slice that Linux gives a process among few."""


@dataclass(frozen=True, eq=False)
class CameLast:
    """Says who came last, in a table of the rounds of ranks like it."""

    job: JobSteps
    spell: SlowSpell
    candidates: tuple[int, ...] = ()
    """The ranks of whom one is slow, where nothing tells whether it is this; else none."""


def came_last(state: JobState) -> list[CameLast]:
    """Returns who came last by itself; all who did where nobody can be told from who follows."""
    late = [
        CameLast(job, spell)
        for job in steps_of_state(state)
        for spell in slow_spells(job)
        if _is_told(spell)
    ]
    alone = [each for each in late if not _has_late_partner(state, each, late)]
    told = alone or late
    return [replace(each, candidates=_candidates(state, each, told, alone)) for each in told]


def _is_told(spell: SlowSpell) -> bool:
    """Tells whether rounds of collectives are enough, and a lag more than ranks of one core have.

    Whom the operating system lets run last comes last, by a time slice, again and again.
    """
    return spell.last - spell.first >= LEAST_ROUNDS and spell.lag_ns >= LEAST_LAG_NS


def _has_late_partner(state: JobState, one: CameLast, late: list[CameLast]) -> bool:
    """Tells whether one whom it meets most often is late with it, in a job that sends messages."""
    mine = one.spell
    partners = {
        other
        for rank in mine.ranks
        if is_of_messages(state, rank)
        for other in _partners(state, rank)
    }
    return any(
        not partners.isdisjoint(each.spell.ranks) and _is_at_once(mine, each.spell)
        for each in late
        if each is not one
    )


def _is_at_once(one: SlowSpell, other: SlowSpell) -> bool:
    return other.first < one.last and one.first < other.last


def _candidates(
    state: JobState, one: CameLast, told: list[CameLast], alone: list[CameLast]
) -> tuple[int, ...]:
    """Returns the ranks of its pipeline, if others of it are late too; where nobody is late by
    itself, those of every pipeline that is late with it.
    """
    late = {r for each in told if _is_at_once(one.spell, each.spell) for r in each.spell.ranks}
    lanes = {_lane(state, rank) for rank in one.spell.ranks}
    if sum(_lane(state, rank) in lanes for rank in late) == 1:
        return ()
    if not alone:
        lanes = {_lane(state, rank) for rank in late}
    return tuple(rank for rank in range(state.world_size) if _lane(state, rank) in lanes)


def _lane(state: JobState, rank: int) -> tuple[tuple[str, int], ...]:
    """Returns where a rank stands on all axes but the pipeline's, on which its messages pass."""
    at = state.coordinates(rank)
    if dict(state.axes).get("pp", 1) == 1 or not at:
        return (("rank", rank),)
    return tuple(sorted((axis, place) for axis, place in at.items() if axis != "pp"))


def _partners(state: JobState, rank: int) -> tuple[int, ...]:
    """Returns the ranks of the group in which a rank issued most collectives."""
    met = Counter(each.group for each in state.ranks[rank].issued if each.group)
    most = met.most_common(1)
    return next((g.ranks for g in state.groups if most and g.name == most[0][0]), ())
