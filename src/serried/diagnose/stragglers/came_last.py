"""Who comes last to collectives, by flight recorders, and who only follows somebody's lateness.

    stage 0   tp_0  rank 0  ......late |      both late alike: what they got from stage 1 was late
                    rank 1  ......late |
    stage 1   tp_2  rank 4  |waits.....|      rank 4 waits for rank 5, which is late by itself
                    rank 5  ......late |

Lateness passes from stage to stage with messages, of which gloo's recorder holds none. All ranks
that meet most often get it together. Who is late by itself keeps just those waiting.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

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


def came_last(state: JobState) -> list[CameLast]:
    """Returns who came last by itself; all who did where nobody can be told from who follows."""
    late = [
        CameLast(job, spell)
        for job in steps_of_state(state)
        for spell in slow_spells(job)
        if _is_told(spell)
    ]
    alone = [each for each in late if not _has_late_partner(state, each, late)]
    return alone or late


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
        not partners.isdisjoint(each.spell.ranks)
        and each.spell.first < mine.last
        and mine.first < each.spell.last
        for each in late
        if each is not one
    )


def _partners(state: JobState, rank: int) -> tuple[int, ...]:
    """Returns the ranks of the group in which a rank issued most collectives."""
    met = Counter(each.group for each in state.ranks[rank].issued if each.group)
    most = met.most_common(1)
    return next((g.ranks for g in state.groups if most and g.name == most[0][0]), ())
