"""A fault, drawn from a seed: what goes wrong, on which rank, in which step, in which layout.

>>> one = drawn("kill -9", seed=3)
>>> one == drawn("kill -9", seed=3), one.rank in range(one.world_size)
(True, True)
"""

from __future__ import annotations

import random
from dataclasses import dataclass

STOPPING = (
    "sleep",
    "skipped collective",
    "wrong size",
    "wrong dtype",
    "swapped groups",
    "receive never posted",
    "send to the wrong peer",
    "kill -9",
    "SIGSTOP",
    "exception",
    "full disk",
)
"""Faults that a job stands still or ends of; the guard alone tells of them."""
SLOWING = (
    "slow rank",
    "slow link",
    "GC pauses",
    "uneven stage",
    "slow loader",
    "throttled",
    "varying length",
)
"""Faults that a job only gets slow of; the recorder tells of them."""
ON_GPU = ("stuck loader", "stuck checkpoint", "GPU out of memory", "device assert")
"""Further faults that a job stands still or ends of, injected on GPUs alone (``on_gpu``)."""
NONE, NONE_RECORDED = "none", "none, recorded"
HEALTHY = (NONE, NONE_RECORDED)
"""Runs without a fault: of a job under a guard, and of one that is recorded."""
CAUSES: dict[str, frozenset[str]] = {
    "sleep": frozenset({"stuck_in_user_code"}),
    "skipped collective": frozenset({"skipped_collective"}),
    "wrong size": frozenset({"mismatch_size"}),
    "wrong dtype": frozenset({"mismatch_dtype"}),
    "swapped groups": frozenset({"swapped_groups", "skipped_collective", "wrong_group"}),
    "receive never posted": frozenset({"receive_left_out", "pipeline_order"}),
    "send to the wrong peer": frozenset({"wrong_peer"}),
    "kill -9": frozenset({"dead"}),
    "SIGSTOP": frozenset({"stopped"}),
    "exception": frozenset({"exception"}),
    "full disk": frozenset({"disk_full", "write_failed"}),
    "slow rank": frozenset({"slow_gpu", "clock_throttling", "uneven_stage"}),
    "slow link": frozenset({"slow_link"}),
    "GC pauses": frozenset({"garbage_collection"}),
    "uneven stage": frozenset({"uneven_stage"}),
    "slow loader": frozenset({"slow_loader"}),
    "throttled": frozenset({"clock_throttling", "slow_gpu", "uneven_stage"}),
    "varying length": frozenset({"sequence_length"}),
    NONE: frozenset({"no_fault"}),
    NONE_RECORDED: frozenset({"no_fault"}),
}
"""What may be said to have gone wrong, by the ``kind`` of a diagnosis.

A rank that is alone in its stage is slow, or has more to do: nothing in a recording tells them
apart, and the sentence says both.
"""

OF_SUMS = ("skipped collective", "wrong size", "wrong dtype", "swapped groups")
"""Those that lie in how gradients and their norm are summed."""
_OF_A_PIPELINE = frozenset({"receive never posted", "send to the wrong peer", "uneven stage"})
_LAYOUTS = ((2, 2, 1), (1, 2, 2), (2, 1, 2), (1, 4, 1), (2, 2, 2), (1, 3, 1), (1, 3, 2), (4, 1, 2))
"""Sizes of tp, pp and dp."""
_SLOW_LAYOUTS = ((1, 2, 2), (1, 4, 1), (1, 1, 4), (1, 3, 1), (1, 2, 1))


@dataclass(frozen=True)
class Fault:
    """Holds a job of ``steps`` steps and what goes wrong in it."""

    kind: str
    seed: int
    tp: int
    pp: int
    dp: int
    microbatches: int
    steps: int
    rank: int
    step: int
    microbatch: int
    other: int
    """A rank that a message goes to by mistake."""
    runs_out: bool
    """Whether torch's own time-out ends the ranks while the job stands."""

    @property
    def world_size(self) -> int:
        """How many ranks the job has."""
        return self.tp * self.pp * self.dp

    @property
    def is_recorded(self) -> bool:
        """Whether the job is recorded by ``serried.record``, not guarded."""
        return self.kind in (*SLOWING, NONE_RECORDED)

    @property
    def roots(self) -> tuple[int, ...]:
        """The ranks at fault."""
        if self.kind in (*HEALTHY, "varying length"):
            return ()
        if self.kind != "uneven stage":
            return (self.rank,)
        inside = self.tp * self.dp
        first = self.rank // inside * inside
        return tuple(range(first, first + inside))

    def is_at(self, rank: int, step: int, microbatch: int | None = None) -> bool:
        """Whether this is where it goes wrong."""
        here = microbatch is None or microbatch == self.microbatch
        return rank == self.rank and step == self.step and here


def drawn(kind: str, seed: int) -> Fault:
    """Returns the fault that a seed gives."""
    draw = random.Random(f"{kind} {seed}")
    is_recorded = kind in (*SLOWING, NONE_RECORDED)
    layouts: tuple[tuple[int, int, int], ...] = _SLOW_LAYOUTS if is_recorded else _LAYOUTS
    if kind in _OF_A_PIPELINE:
        layouts = tuple(each for each in layouts if each[1] > 1)
    if kind == "slow loader":  # later stages wait for the first, however long they load
        layouts = ((1, 1, 4), (1, 1, 3), (1, 1, 2))
    if kind == "throttled":  # few ranks, for they need processors of their own
        layouts = ((1, 1, 2), (1, 1, 3), (1, 2, 1), (1, 3, 1))
    if kind == "slow link":
        layouts = ((1, 4, 1), (1, 3, 1))  # of two stages nothing tells whose the link is
    if kind == "swapped groups":
        layouts = tuple(each for each in layouts if each[2] > 1)
    tp, pp, dp = draw.choice(layouts)
    count, microbatches = tp * pp * dp, draw.choice((2, 4))
    steps = 16 if is_recorded else 7
    inside = tp * dp
    rank = draw.randrange(count)
    if kind == "slow link" and pp == 3:  # every link is the middle one's
        rank = draw.choice((0, 2))
    if kind == "receive never posted":
        rank = draw.randrange(inside, count)
    others = [each for each in range(count) if each != rank]
    if kind == "send to the wrong peer":
        rank = draw.randrange(count - inside)
        others = [each for each in range(count) if each not in (rank, rank + inside)]
    return Fault(
        kind,
        seed,
        tp,
        pp,
        dp,
        microbatches,
        steps,
        rank,
        step=draw.randrange(2, steps - 1),
        microbatch=draw.randrange(microbatches),
        other=draw.choice(others) if others else rank,
        runs_out=draw.random() < 0.5,
    )
