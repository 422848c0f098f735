"""Slow spells as causes: a slow GPU, node, loader or host, with what it costs and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.cost import Costing
from serried.diagnose.stragglers.meetings import Meetings
from serried.diagnose.stragglers.naming import parts_of, period_of, ranks_at, who
from serried.diagnose.stragglers.slow import SlowSpell
from serried.finding import Sentence, said
from serried.units import duration_text

_COMPUTING = ("forward", "backward", "weight", "computing")
_ALIKE = 0.1
"""By how much forwards and backwards of a throttled device may slow down unlike one another."""
_MOST_CONFIDENCE = 0.95
LEAST_COST, LEAST_OF_PAST = 0.02, 0.05
"""The share of a step that a slow rank must cost by the replay to be named; and where it has no
like, so that only its own past tells."""


@dataclass(frozen=True)
class _Kind:
    """Says what kind of slowness it is, and what to do."""

    name: str
    of: CauseClass
    cures: tuple[Sentence, ...]


_GPU = _Kind(
    "slow_gpu",
    CauseClass.STRAGGLER,
    (
        said(
            "compare clocks, power and temperature of its GPU with a neighbour's: nvidia-smi -q -d "
            "CLOCK,POWER,TEMPERATURE,PERFORMANCE; dcgmi diag -r 3 tests the GPU by itself"
        ),
        said("if it stays slow alone, drain the node and have the GPU replaced"),
    ),
)
_THROTTLED = _Kind(
    "clock_throttling",
    CauseClass.STRAGGLER,
    (
        said(
            "ask why its clock fell: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER shows a power "
            "cap, heat or a hardware slowdown; look at fans and at the node's power supply"
        ),
        *_GPU.cures[1:],
    ),
)
_NODE = _Kind(
    "slow_node",
    CauseClass.STRAGGLER,
    (
        said(
            "all ranks of the node are slow alike: look for another process on its CPUs, its power "
            "and cooling, its PCIe links; run serried check on it and on a neighbour"
        ),
    ),
)
_LOADER = _Kind(
    "slow_loader",
    CauseClass.DATA,
    (
        said(
            "give the loader more workers, or prefetch; look at that node's storage and CPUs: only "
            "its loader is slow"
        ),
    ),
)
_BEFORE = _Kind(
    "late_to_step",
    CauseClass.STRAGGLER,
    (
        said(
            "record what it does between steps (serried.span, or serried.record around the "
            "loader): often it is the loader, a log, a checkpoint or garbage collection"
        ),
    ),
)
_HOST = _Kind(
    "slow_host",
    CauseClass.STRAGGLER,
    (
        said(
            "its GPU waits for its CPU: look for another process on its cores, for CPU frequency "
            "and NUMA binding, for garbage collection (gc.freeze, gc.disable)"
        ),
    ),
)


def spell_causes(
    job: JobSteps, spells: Sequence[SlowSpell], costing: Costing | Meetings | None
) -> Iterator[Cause]:
    """Yields a cause for each slow rank, or for a whole node whose ranks are all slow alike."""
    told = _by_node(job, _longest(spells))
    for spell in told:
        kind = _kind_of(job, spell)
        cost = _cost(job, spell, costing, told)
        # Chance puts some rank last where durations scatter widely.
        if costing is not None and cost < (LEAST_OF_PAST if spell.against_past else LEAST_COST):
            continue
        yield Cause(
            kind.of,
            kind.name,
            spell.ranks,
            said(
                "{who} holds the others up: {cost:.1%} of each step, {period}"
                if len(spell.ranks) == 1
                else "{who} hold the others up: {cost:.1%} of each step, {period}",
                who=who(job, spell),
                cost=cost,
                period=period_of(job, spell.first, spell.last),
            ),
            confidence=_confidence(spell),
            chain=tuple(_chain(job, spell)),
            cures=kind.cures,
            cost=cost,
        )


def _longest(spells: Sequence[SlowSpell]) -> list[SlowSpell]:
    """Returns of each rank the spell that cost most in all, the costliest first."""
    best: dict[tuple[int, ...], SlowSpell] = {}
    for spell in spells:
        known = best.get(spell.ranks)
        if known is None or _whole(spell) > _whole(known):
            best[spell.ranks] = spell
    return sorted(best.values(), key=lambda each: (-each.share, each.ranks))


def _whole(spell: SlowSpell) -> float:
    return spell.lag_ns * (spell.last - spell.first)


def _by_node(job: JobSteps, spells: list[SlowSpell]) -> list[SlowSpell]:
    """Returns spells with those of one node, all of whose ranks are slow alike, as one."""
    on = {rank: job.hosts.get(rank, "") for rank in job.ranks.tolist()}
    if len({*on.values()}) < 2:
        return spells
    found = list[SlowSpell]()
    left = list(spells)
    while left:
        host = on[left[0].ranks[0]]
        mine = [each for each in left if on[each.ranks[0]] == host]
        ranks = {rank for each in mine for rank in each.ranks}
        everyone = {rank for rank in on if on[rank] == host}
        if len(mine) > 1 and ranks == everyone:
            found.append(
                replace(
                    max(mine, key=_whole),
                    ranks=tuple(sorted(ranks)),
                    stages=tuple(sorted({stage for each in mine for stage in each.stages})),
                )
            )
            left = [each for each in left if each not in mine]
        else:
            found.append(left.pop(0))
    return found


def _kind_of(job: JobSteps, spell: SlowSpell) -> _Kind:
    main = spell.parts[0][0] if spell.parts else "forward"
    hosts = {job.hosts.get(rank, "") for rank in job.ranks.tolist()}
    if len(spell.ranks) > 1 and len(hosts) > 1:
        return _NODE
    if main == "data":
        return _LOADER
    if main == "before":
        return _BEFORE
    if main == "gaps":
        return _HOST
    return _THROTTLED if spell.first > 0 and _slows_alike(job, spell) else _GPU


def _slows_alike(job: JobSteps, spell: SlowSpell) -> bool:
    """Tells whether forwards and backwards became longer by one factor, as by a clock's fall."""
    places = np.searchsorted(job.ranks, spell.ranks)
    factors = list[float]()
    for name in ("forward", "backward"):
        table = job.spent.parts.get(name)
        if table is None:
            return False
        before = float(np.median(table[: spell.first][:, places]))
        after = float(np.median(table[spell.first : spell.last][:, places]))
        if before <= 0:
            return False
        factors.append(after / before)
    return min(factors) > 1 + _ALIKE / 2 and max(factors) / min(factors) < 1 + _ALIKE


def _cost(
    job: JobSteps,
    spell: SlowSpell,
    costing: Costing | Meetings | None,
    told: Sequence[SlowSpell],
) -> float:
    """Returns the share of a step that a spell costs: replayed where its work is what was slow.

    Where all meet in every exchange, of two that are slow at once the cure of one saves nothing:
    there it is what both cost together.
    """
    is_work = bool(spell.parts) and spell.parts[0][0] in _COMPUTING
    if costing is not None and is_work and spell.period_ns:
        first, last = int(job.steps[spell.first]), int(job.steps[spell.last - 1])
        ranks = spell.ranks
        if isinstance(costing, Meetings):
            at_once = (s for s in told if s.first < spell.last and spell.first < s.last)
            ranks = tuple(sorted({rank for each in at_once for rank in each.ranks}))
        saved = costing.without_ranks(ranks, first, last)
        if saved:  # not 0, which is also said of steps that cannot be replayed
            return max(0.0, saved * 1e9 / spell.period_ns)
    return spell.share


def _confidence(spell: SlowSpell) -> float:
    """Returns more for what is seen in more steps, and stands further out."""
    many = min(1.0, (spell.last - spell.first) / 20)
    far = min(1.0, spell.share / 0.1)
    certain = 0.6 + 0.1 * many + 0.15 * far + 0.1 * spell.steady
    return round(min(_MOST_CONFIDENCE, certain - 0.15 * spell.against_past), 2)


def _chain(job: JobSteps, spell: SlowSpell) -> Iterator[Sentence]:
    if spell.against_past:
        yield said(
            "it has no like to be compared with; beside its own past it computes {slower:.1%} "
            "longer: {parts}",
            slower=spell.slower,
            parts=parts_of(spell),
        )
    elif len(spell.ranks) > 1 and spell.parts:
        yield said(
            "{who} take longer than ranks that do equal work, which wait {lag} of each step of "
            "{step} for them: {parts}",
            who=ranks_at(job, spell.ranks),
            lag=duration_text(spell.lag_ns),
            step=duration_text(spell.period_ns),
            parts=parts_of(spell),
        )
    elif spell.parts:
        yield said(
            "ranks that do equal work wait {lag} of each step of {step} for it; it takes longer "
            "than they do: {parts}",
            lag=duration_text(spell.lag_ns),
            step=duration_text(spell.period_ns),
            parts=parts_of(spell),
        )
    else:
        yield said(
            "ranks that do equal work wait {lag} of each step of {step} for it",
            lag=duration_text(spell.lag_ns),
            step=duration_text(spell.period_ns),
        )
    others = [rank for rank in job.ranks.tolist() if rank not in spell.ranks]
    if len(others) == 1:
        yield said("{who} waits for it", who=ranks_at(job, others))
    yield said(
        "seen in {share:.0%} of these {count} steps",
        share=spell.steady,
        count=(spell.last - spell.first) * job.width,
    )
