"""How a straggler is spoken of: who it is, where, since when, and what it takes longer for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.slow import SlowSpell
from serried.errors import listed
from serried.finding import Sentence, said
from serried.units import duration_text

_MOST_NAMED = 8


def who(job: JobSteps, spell: SlowSpell) -> Sentence:
    """Returns a rank with its host and stage, as far as they are known."""
    return ranks_at(job, spell.ranks, spell.stages if job.has_pipeline else ())


def ranks_at(job: JobSteps, ranks: Sequence[int], stages: Sequence[int] = ()) -> Sentence:
    """Returns ranks with the host and the stages that they have in common."""
    hosts = {job.hosts.get(rank, "") for rank in ranks}
    host = hosts.pop() if len(hosts) == 1 else ""
    of = said("rank {rank}", rank=ranks[0]) if len(ranks) == 1 else _several(ranks)
    if host and stages:
        return said("{who} on {host} (stage {stages})", who=of, host=host, stages=_numbers(stages))
    if host:
        return said("{who} on {host}", who=of, host=host)
    return said("{who} (stage {stages})", who=of, stages=_numbers(stages)) if stages else of


def _several(ranks: Sequence[int]) -> Sentence:
    return said("ranks {ranks}", ranks=listed(sorted(ranks), limit=_MOST_NAMED))


def _numbers(stages: Iterable[int]) -> object:
    return listed(sorted(stages), limit=4)


def period_of(job: JobSteps, first: int, last: int) -> Sentence:
    """Returns from when to when something lasted: steps, and the moment where it is known."""
    a, b = int(job.steps[first]), int(job.steps[last - 1]) + job.width - 1
    at = job.moment_of(first)
    if first == 0 and last == len(job):
        if job.counts_rounds:
            return said("in all {count} rounds of collectives", count=len(job))
        return said("in all steps, {first} to {last}", first=a, last=b)
    if job.counts_rounds:
        return said("in rounds {first} to {last} of collectives", first=a, last=b)
    if last == len(job):
        return (
            said("since step {step} ({moment})", step=a, moment=at)
            if at
            else said("since step {step}", step=a)
        )
    return (
        said("from step {first} ({moment}) to step {last}", first=a, moment=at, last=b)
        if at
        else said("from step {first} to step {last}", first=a, last=b)
    )


PARTS = {
    "forward": said("forward"),
    "backward": said("backward"),
    "weight": said("weight gradient"),
    "optimizer": said("optimizer"),
    "data": said("loading data"),
    "before": said("before its first span of the step"),
    "gaps": said("between its spans"),
    "computing": said("computing"),
}
"""What a rank may spend more time on, by its name in the table."""


def parts_of(spell: SlowSpell) -> object:
    """Returns what a spell's rank took longer for, such as "forward 12.0 ms"."""
    return listed(
        said("{part} {time}", part=PARTS[name], time=duration_text(ns)) for name, ns in spell.parts
    )
