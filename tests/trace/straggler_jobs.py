"""Jobs of any size as StragglerAnalysis tables, run and run again by a model of their own.

    start = the last end of what it comes after, and a gap;  end = the last start of those that
    meet, and its own transfer            (OSDI 2025, section 3.2: the published definition)

The model follows one operation after another by name, one step and replica at a time, and knows
nothing of the lanes and rows of ``serried.trace``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import Any

Op = tuple[int, int, str, int]
"""Replica, stage, type and number."""
Times = dict[Op, float]

F, B = "forward-compute", "backward-compute"
AG, RS, LN = "params-all-gather", "grads-reduce-scatter", "layernorm-grads-all-reduce"
EMB, CLIP, OPT = "embedding-grads-all-reduce", "optimizer-clip-main-grad", "optimizer"
SEND_F, RECV_F, SEND_B, RECV_B = "forward-send", "forward-recv", "backward-send", "backward-recv"
MESSAGES = {SEND_F, RECV_F, SEND_B, RECV_B, AG, RS, LN, EMB, CLIP}
OVER_REPLICAS = {AG, RS, CLIP}


@dataclass(frozen=True)
class Job:
    """Is a job of 1F1B, its durations and gaps drawn from ``seed``."""

    pp: int
    dp: int
    m: int
    steps: int = 3
    seed: int = 1
    slow_rank: int | None = None
    lasts: float = 1.0
    """How many times longer the last stage computes."""
    gaps: bool = True
    own: list[Times] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        for _ in range(self.steps):
            self.own.append({op: self._drawn(rng, op) for op in self.ops})

    def _drawn(self, rng: random.Random, op: Op) -> float:
        replica, stage, type_, _ = op
        if type_ not in (F, B):
            return rng.uniform(0.001, 0.004)
        slow = 2.5 if stage * self.dp + replica == self.slow_rank else 1.0
        last = self.lasts if stage == self.pp - 1 else 1.0
        return rng.uniform(0.9, 1.2) * (0.05 if type_ == F else 0.1) * slow * last

    # ------------------------------------------------------------------- what there is

    @cached_property
    def ops(self) -> list[Op]:
        return [
            (replica, stage, type_, number)
            for replica in range(self.dp)
            for stage in range(self.pp)
            for type_, number in self._of_stage(stage)
        ]

    def _of_stage(self, stage: int) -> Iterator[tuple[str, int]]:
        for number in range(self.m):
            for type_ in (F, B):
                yield type_, number
            for type_ in (SEND_F, RECV_B) if stage < self.pp - 1 else ():
                yield type_, number
            for type_ in (RECV_F, SEND_B) if stage else ():
                yield type_, number
        once = [LN, CLIP, OPT, "gc", *([AG, RS] if self.dp > 1 else [])]
        yield from ((type_, 0) for type_ in once)
        if stage in (0, self.pp - 1):
            yield EMB, 0

    def order(self, stage: int) -> list[tuple[str, int]]:
        """Returns the computations of a stage in 1F1B's order."""
        ahead = min(self.pp - 1 - stage, self.m)
        forwards = [(F, number) for number in range(self.m)]
        found, backwards = forwards[:ahead], [(B, number) for number in range(self.m)]
        for forward in forwards[ahead:]:
            found += [forward, backwards.pop(0)]
        return found + backwards

    # ------------------------------------------------------------------- what waits for what

    def before(self, op: Op) -> list[Op]:
        replica, stage, type_, number = op
        order = self.order(stage)
        found: list[tuple[str, int]] = []
        if type_ in (F, B):
            at = order.index((type_, number))
            found += order[at - 1 : at]
            found += [(RECV_F if type_ == F else RECV_B, number)]
            found += [(AG, 0)] if (type_, number) == (F, 0) else []
        elif type_ in (SEND_F, RECV_F, SEND_B, RECV_B):
            computes = F if type_ in (SEND_F, RECV_F) else B
            found += [(type_, number - 1)]
            found += [(computes, number - (type_ in (RECV_F, RECV_B)))]
            first = order.index((B, 0))
            if computes == B and number == 0 and first >= 2:
                found.append(order[first - 2])
        else:
            tail = [order[-1], ("gc", 0), (LN, 0), (EMB, 0), (RS, 0), (CLIP, 0), (OPT, 0)]
            tail = [each for each in tail if (replica, stage, *each) in self.known]
            at = tail.index((type_, number)) if (type_, number) in tail else 0
            found += tail[at - 1 : at] if at else []
            found += [(AG, 0)] if type_ == RS else []
        return [(replica, stage, *each) for each in found if (replica, stage, *each) in self.known]

    @cached_property
    def known(self) -> set[Op]:
        return set(self.ops)

    def meeting(self, op: Op) -> list[Op]:
        replica, stage, type_, number = op
        peers = {SEND_F: (1, RECV_F), RECV_F: (-1, SEND_F), SEND_B: (-1, RECV_B)}
        if type_ in {*peers, RECV_B}:
            way, other = peers.get(type_, (1, SEND_B))
            return [op, (replica, stage + way, other, number)]
        stages = {CLIP: [*range(self.pp)], EMB: sorted({0, self.pp - 1})}.get(type_, [stage])
        replicas = [*range(self.dp)] if type_ in OVER_REPLICAS else [replica]
        return [(each, at, type_, number) for each in replicas for at in stages]

    # ------------------------------------------------------------------- how it runs

    def run(self, own: Times, gap: Callable[[Op], float] = lambda op: 0.0) -> tuple[Times, Times]:
        """Returns when every operation of a step starts and ends."""
        starts: Times = {}
        ends: Times = {}
        left = list(self.ops)
        while left:
            later = []
            for op in left:
                if op not in starts and all(each in ends for each in self.before(op)):
                    ready = max((ends[each] for each in self.before(op)), default=0.0)
                    starts[op] = ready + gap(op)
                met = self.meeting(op) if op[2] in MESSAGES - {LN} else [op]
                if all(each in starts for each in met):
                    ends[op] = max(starts[each] for each in met) + own[op]
                else:
                    later.append(op)
            assert len(later) < len(left) or len(starts) > len(ends), "a circle"
            left = later
        return starts, ends

    def ideal(self) -> Times:
        middle = {
            type_: (median if type_ in MESSAGES else fmean)(
                [own[op] for own in self.own for op in own if op[2] == type_]
            )
            for type_ in {op[2] for op in self.ops}
        }
        return {op: middle[op[2]] for op in self.ops}

    def mean_step(self, own: list[Times]) -> float:
        return fmean(
            max(end for op, end in self.run(each)[1].items() if op[2] == OPT) for each in own
        )

    def mixed(self, cured: Callable[[Op], bool]) -> list[Times]:
        """Returns the durations with those of some operations ideal."""
        ideal = self.ideal()
        return [{op: ideal[op] if cured(op) else own[op] for op in own} for own in self.own]

    # ------------------------------------------------------------------- as a table

    def rows(self) -> list[dict[str, Any]]:
        """Returns the table's rows, as the profiler would have written them."""
        rng = random.Random(self.seed + 1)
        found = []
        for step, own in enumerate(self.own):
            gap: Callable[[Op], float] = (
                (lambda op: rng.choice((0.0, 0.0005, 0.003))) if self.gaps else (lambda op: 0.0)
            )
            starts, ends = self.run(own, gap)
            found += [self._row(op, 17 + 3 * step, starts[op], ends[op]) for op in self.ops]
        return found

    def _row(self, op: Op, step: int, start: float, end: float) -> dict[str, Any]:
        replica, stage, type_, number = op
        computes = type_ in (F, B)
        return {
            **{"dp_rank": replica, "stage": stage, "rank": stage * self.dp + replica},
            **{"step": step, "optype": type_, "start_ts": start, "duration": end - start},
            **{"seq_id": number, "mc": 0 if computes or type_ in (AG, RS) else -1},
            **{"mb_id": number if computes else -1, "gmc": stage if computes else -1},
        }
