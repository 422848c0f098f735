"""Which packages run a schedule, which sizes they refuse, and the nearest sizes that they run.

    PyTorch 2.13.0           1f1b: m >= p; interleaved: m a multiple of its rounds, max(1, m // p)
    Megatron Core 0.16.1     interleaved-1f1b: p > 1, p <= N <= m, m % N either 0 or at least p
    zero-bubble 39f2c18      all of its schedules: p > 1

p ranks, m microbatches, N of them in a group. A schedule is drawn for whatever sizes its ranks
can finish; what is said here is who would not start it, and why. What no package takes and no
rank could finish is refused by the schedule itself. Sources: ``torch/distributed/pipelining/
schedules.py``; ``megatron/core/pipeline_parallel/schedules.py`` (``forward_backward_pipelining_
with_interleaving``) and ``parallel_state.py``; ``megatron/core/zbpp_utils.py``
(``validate_arguments``) of sail-sg/zero-bubble-pipeline-parallelism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from serried.errors import listed
from serried.finding import Finding, Sentence, said
from serried.pipeline.schedule import Schedule

FARTHEST = 1 << 12
"""How far from the sizes asked for others are looked for that a package runs."""


@dataclass(frozen=True)
class PipelineSizes:
    """Holds what a package is asked for; ``group`` is None where a schedule has no groups."""

    ranks: int
    microbatches: int
    group: int | None

    @classmethod
    def of(cls, schedule: Schedule) -> PipelineSizes:
        """Returns the sizes of a schedule."""
        return cls(schedule.num_ranks, schedule.num_microbatches, schedule.group)

    @property
    def rounds(self) -> int:
        """How often PyTorch goes through the stages of a rank."""
        return max(1, self.microbatches // self.ranks)

    def with_ranks(self, ranks: int) -> PipelineSizes:
        """Returns the same with other ranks, and the group that follows them by default."""
        return self._following(replace(self, ranks=ranks))

    def with_microbatches(self, microbatches: int) -> PipelineSizes:
        """Returns the same with other microbatches, and the group that follows by default."""
        return self._following(replace(self, microbatches=microbatches))

    def with_group(self, group: int) -> PipelineSizes:
        """Returns the same with other groups."""
        return replace(self, group=group)

    def _following(self, changed: PipelineSizes) -> PipelineSizes:
        if self.group != min(self.ranks, self.microbatches):
            return changed
        return replace(changed, group=min(changed.ranks, changed.microbatches))


Rule = Callable[[PipelineSizes], Sentence | None]
"""Says why a package refuses sizes; None where it runs them."""


@dataclass(frozen=True)
class Runner:
    """Names what runs a schedule in one package, and the rule by which it refuses."""

    package: str
    version: str
    where: str
    """The class, function or check that refuses."""
    rule: Rule
    takes_group: bool = False
    """Whether it is told the groups; else it has groups of its own."""

    @property
    def name(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"

    def runs(self, sizes: PipelineSizes) -> bool:
        """Says whether it runs just this: it does not where it takes other groups of its own."""
        own = sizes.microbatches // sizes.rounds
        return not self.rule(sizes) and (self.takes_group or sizes.group in (None, own))


@dataclass(frozen=True)
class Refusal:
    """Says that a package does not run a schedule of these sizes, by which rule."""

    schedule: str
    runner: Runner
    rule: Sentence
    nearest: Mapping[str, tuple[int, ...]]
    """For ``group``, ``microbatches`` and ``ranks``, the nearest numbers below and above that it
    runs when that size alone is changed."""
    run_by: tuple[str, ...]
    """The packages that do run the sizes asked for."""

    @property
    def finding(self) -> Finding:
        """The refusal as a finding."""
        refused = said(
            "{package} ({where}) refuses {schedule} of these sizes: {rule}",
            package=self.runner.name,
            where=self.runner.where,
            schedule=self.schedule,
            rule=self.rule,
        )
        others = (
            said("{packages} runs it", packages=listed(self.run_by, last="and"))
            if self.run_by
            else said("no package that was checked runs it")
        )
        sizes = [_SAID[size](near) for size, both in self.nearest.items() for near in both]
        cure = said("near these it runs {sizes}", sizes=listed(sizes, last="or"))
        return Finding("refused-by-package", (refused, others), cure=cure if sizes else None)


_SAID: dict[str, Callable[[int], Sentence]] = {
    "group": lambda n: said("groups of {count}", count=n),
    "microbatches": lambda n: said("1 microbatch" if n == 1 else "{count} microbatches", count=n),
    "ranks": lambda n: said("{count} ranks", count=n),
}


def refusals(schedule: Schedule) -> list[Refusal]:
    """Returns what the packages that have this schedule say against its sizes.

    >>> from serried.pipeline.schedules.one_f_one_b import one_f_one_b
    >>> print(*(refusal.finding for refusal in refusals(one_f_one_b(4, 3))))
    PyTorch 2.13.0 (Schedule1F1B) refuses 1f1b of these sizes: 3 microbatches are fewer than 4 \
stages; Megatron Core 0.16.1 runs it; near these it runs 4 microbatches or 3 ranks
    >>> refusals(one_f_one_b(4, 4))
    []
    """
    sizes = PipelineSizes.of(schedule)
    runners = RUNNERS.get(schedule.name, ())
    run_by = tuple(runner.name for runner in runners if runner.runs(sizes))
    rules = [(runner, runner.rule(sizes)) for runner in runners]
    return [
        Refusal(schedule.name, runner, rule, _nearest(runner, sizes), run_by)
        for runner, rule in rules
        if rule is not None
    ]


def _nearest(runner: Runner, sizes: PipelineSizes) -> dict[str, tuple[int, ...]]:
    """Returns the nearest sizes below and above that a runner takes, one size changed."""
    rule, near = runner.rule, dict[str, tuple[int, ...]]()
    if runner.takes_group and sizes.group is not None:
        near["group"] = _beside(sizes.group, sizes.with_group, rule)
    near["microbatches"] = _beside(sizes.microbatches, sizes.with_microbatches, rule)
    # One rank is no pipeline, whoever takes it.
    near["ranks"] = _beside(sizes.ranks, sizes.with_ranks, rule, least=2)
    return near


def _beside(
    value: int, changed: Callable[[int], PipelineSizes], rule: Rule, *, least: int = 1
) -> tuple[int, ...]:
    """Returns the nearest number below ``value`` and the nearest above that ``rule`` takes."""
    sides = (
        range(value - 1, max(least, value - FARTHEST) - 1, -1),
        range(value + 1, value + FARTHEST),
    )
    found = (next((n for n in side if rule(changed(n)) is None), None) for side in sides)
    return tuple(number for number in found if number is not None)


# ------------------------------------------------------------------ the rules


def _any(sizes: PipelineSizes) -> Sentence | None:
    return None


def _full(sizes: PipelineSizes) -> Sentence | None:
    """Refuses a pipeline that microbatches do not fill."""
    if sizes.microbatches >= sizes.ranks:
        return None
    return said(
        "{microbatches} microbatches are fewer than {ranks} stages",
        microbatches=sizes.microbatches,
        ranks=sizes.ranks,
    )


def _even_rounds(sizes: PipelineSizes) -> Sentence | None:
    """Refuses microbatches that do not make rounds of the same length."""
    if sizes.microbatches % sizes.rounds == 0:
        return None
    return said(
        "{microbatches} microbatches over {ranks} ranks make {rounds} rounds, which cannot be "
        "equal",
        microbatches=sizes.microbatches,
        ranks=sizes.ranks,
        rounds=sizes.rounds,
    )


def _several_ranks(sizes: PipelineSizes) -> Sentence | None:
    """Refuses a pipeline of one rank."""
    return None if sizes.ranks > 1 else said("it needs a pipeline of at least 2 ranks")


def _megatron_groups(sizes: PipelineSizes) -> Sentence | None:
    """Refuses groups outside p to m, and a last group that is neither full nor at least p."""
    if alone := _several_ranks(sizes):
        return alone
    ranks, microbatches, group = sizes.ranks, sizes.microbatches, sizes.group or sizes.ranks
    if not ranks <= group <= microbatches:
        return said(
            "groups of {group}, where a group holds at least as many microbatches as there are "
            "ranks, {ranks}, and at most all {microbatches}",
            group=group,
            ranks=ranks,
            microbatches=microbatches,
        )
    rest = microbatches % group
    if not 0 < rest < ranks:
        return None
    return said(
        "{microbatches} microbatches in groups of {group} leave a last group of {rest}, which "
        "must be full or hold at least as many as there are ranks, {ranks}",
        microbatches=microbatches,
        group=group,
        rest=rest,
        ranks=ranks,
    )


def _torch(where: str, rule: Rule = _any) -> Runner:
    return Runner("PyTorch", "2.13.0", where, rule)


def _megatron(where: str, rule: Rule = _any) -> Runner:
    return Runner("Megatron Core", "0.16.1", where, rule, takes_group=True)


ZERO_BUBBLE = Runner(
    "zero-bubble", "39f2c18", "validate_arguments", _several_ranks, takes_group=True
)
INTERLEAVED_ZERO_BUBBLE = _torch("ScheduleInterleavedZeroBubble", _even_rounds)

RUNNERS: dict[str, tuple[Runner, ...]] = {
    "gpipe": (_torch("ScheduleGPipe"),),
    "1f1b": (
        _torch("Schedule1F1B", _full),
        _megatron("forward_backward_pipelining_without_interleaving"),
    ),
    "eager-1f1b": (_torch("ScheduleInterleaved1F1B", _even_rounds),),
    "interleaved-1f1b": (
        _torch("ScheduleInterleaved1F1B", _even_rounds),
        _megatron("forward_backward_pipelining_with_interleaving", _megatron_groups),
    ),
    "looped-bfs": (_torch("ScheduleLoopedBFS"),),
    "zb-h1": (INTERLEAVED_ZERO_BUBBLE, ZERO_BUBBLE),
    "zb-h2": (ZERO_BUBBLE,),
    "interleaved-zb": (INTERLEAVED_ZERO_BUBBLE,),
    "zbv": (_torch("ScheduleZBVZeroBubble"), ZERO_BUBBLE),
    "v-half": (ZERO_BUBBLE,),
    "v-min": (ZERO_BUBBLE,),
    "1f1b-v": (ZERO_BUBBLE,),
    "group-interleaved": (ZERO_BUBBLE,),
    "auto": (ZERO_BUBBLE,),
}
"""Who runs each schedule. DualPipe and DualPipeV are drawn for just the sizes that
deepseek-ai/DualPipe 3da1bbe and PyTorch take; of Chimera and Hanayo no package was checked."""
