"""The stragglers of a job of which logs exist: who took longer, as far as lines can tell it.

    rank 0   compute 92 ms |                  rank 0 and 1 exchange while they compute (tp)
    rank 1   compute 93 ms |                  one of them is slow and the other waits for it inside
    rank 2   compute 46 ms |....waits....|    its computing: the lines are the same
    rank 3   compute 46 ms |....waits....|

So of ranks that exchange while they compute none is named, unless flight recorders tell who came
last to the collectives: who waits has come before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.diagnosis import Cause
from serried.diagnose.steps.of_lines import StepLines
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.naming import period_of, ranks_at
from serried.diagnose.stragglers.pauses import pause_causes
from serried.diagnose.stragglers.slow import SlowSpell, slow_spells
from serried.diagnose.stragglers.told import spell_causes
from serried.finding import said

_ALIKE = 0.1
"""By how much two ranks' lags may differ that are taken for one and the same."""
UNSURE = 0.5
_SURE = {True: 0.8, False: 0.65}
"""How sure a rank is named by lines, where they tell with whom it exchanges and where not."""


def log_causes(lines: StepLines, came_last: Sequence[SlowSpell] = ()) -> Iterator[Cause]:
    """Yields the slow ranks of a log, or pauses; ``came_last`` is what flight recorders tell."""
    job = lines.table()
    if job is None:
        return
    spells = slow_spells(job)
    last = {rank for spell in came_last for rank in spell.ranks}
    mine = [each for each in spells if {*each.ranks} <= last]
    others = sorted({rank for each in spells for rank in each.ranks} - last)
    if mine:
        yield from (_beside(job, each, others) for each in spell_causes(job, mine, None))
    elif not last:
        yield from _alone(job, spells)
    latest = lines.table(is_latest=True) if not spells and not last else None
    # Of ranks that exchange while they compute all are late where one of them is.
    if latest is not None and {len(ranks) for ranks in latest.exchange.values()} == {1}:
        yield from pause_causes(latest, set())


def _beside(job: JobSteps, cause: Cause, others: list[int]) -> Cause:
    """Returns the cause with what flight recorders add."""
    came = said("it came last to the collectives that the others were waiting in")
    if not others:
        return replace(cause, chain=(*cause.chain, came))
    waited = said(
        "{who} shows the same time in the log, but came to the collectives before it: it waits"
        if len(others) == 1
        else "{who} show the same time in the log, but came to the collectives before it: they "
        "wait",
        who=ranks_at(job, others),
    )
    return replace(cause, chain=(*cause.chain, came, waited))


def _alone(job: JobSteps, spells: list[SlowSpell]) -> Iterator[Cause]:
    """Yields a cause for each slow rank, and one that names none for those that exchange."""
    for together in _candidates(job, spells):
        ranks = {rank for each in together for rank in each.ranks}
        maybe = sorted({other for rank in ranks for other in job.exchange.get(rank, (rank,))})
        (cause, *_) = spell_causes(job, together[:1], None)
        if len(together[0].ranks) == 1 and (len(maybe) > 1 or ranks & job.lacking):
            yield _one_of(job, cause, maybe, together[0])
        else:
            yield replace(cause, confidence=min(cause.confidence, _SURE[bool(job.exchange)]))


def _one_of(job: JobSteps, cause: Cause, ranks: Sequence[int], spell: SlowSpell) -> Cause:
    """Returns the cause with no rank named, for the log does not tell which of some it is."""
    hidden = said(
        "ranks that exchange while they compute wait for one another inside what they print as "
        "computing; flight-recorder dumps, or a recording of some steps (serried.record), tell "
        "who came last"
    )
    return replace(
        cause,
        kind="slow_rank",
        ranks=None,
        confidence=UNSURE,
        verdict=said(
            "one of {who} holds the others up, and the log does not tell which: {cost:.1%} of each "
            "step, {period}"
            if len(ranks) > 1
            else "{who} holds the others up, or a rank that it exchanges with and of which no line "
            "was read: {cost:.1%} of each step, {period}",
            who=ranks_at(job, ranks),
            cost=cause.cost,
            period=period_of(job, spell.first, spell.last),
        ),
        chain=(*cause.chain, hidden),
    )


def _candidates(job: JobSteps, spells: list[SlowSpell]) -> list[list[SlowSpell]]:
    """Returns spells of which one stands for all: of ranks that exchange, or that lag alike."""
    found: list[list[SlowSpell]] = []
    for spell in spells:
        home = next((each for each in found if _is_one(job, each[0], spell)), None)
        if home is None:
            found.append([spell])
        else:
            home.append(spell)
    return found


def _is_one(job: JobSteps, first: SlowSpell, other: SlowSpell) -> bool:
    if len(first.ranks) > 1 or len(other.ranks) > 1:
        return False
    if job.exchange:
        return other.ranks[0] in job.exchange.get(first.ranks[0], ())
    return other.lag_ns >= (1 - _ALIKE) * first.lag_ns
