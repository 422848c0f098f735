"""Placing work round by round, as a scheduler that knows all times and a memory limit.

    round 0   every rank runs F0, then as many more forwards as memory takes while it waits for
              the first gradient, then I0
    round k   every rank runs one forward, where the ranks behind it do too, and then I(k)

Weight halves fill what gaps they can: before a forward or an input half whose input is still under
way, and wherever memory must be freed. A gap shorter than a weight half is filled too, though it
delays what follows, as long as the rank does not become the one with the most idle time. Rule: the
heuristic of arXiv 2401.10241, section 3 and appendix; three of its choices are open, ``Policy``.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.pipeline.costs import Number

F, I, W = range(3)  # noqa: E741  the field's own letter


@dataclass(frozen=True)
class Problem:
    """Holds what is to be placed: times and memory by [F, I, W] and rank, in ticks and any unit."""

    num_microbatches: int
    time: list[list[Number]]
    latency: list[list[Number]]
    """How long a message takes from each rank to each other."""
    memory: list[list[Number]]
    """What each kind of work adds to its rank's memory."""
    limit: list[Number]

    @property
    def num_ranks(self) -> int:
        """How many ranks share the work; each holds one stage."""
        return len(self.limit)


@dataclass(frozen=True)
class Policy:
    """Says how the open choices of the heuristic are made."""

    is_first_gradient_late: bool
    """Whether a warm-up forward may run on past the arrival of the first gradient."""
    is_forward_deferred: bool
    """Whether a forward that the next rank cannot use yet is left for a later round."""
    are_small_gaps_filled: bool
    """Whether a weight half may delay others where the rank has idle time to spare."""


Placed = list[list[tuple[int, int]]]
"""Each rank's (kind, microbatch) in order."""


def place(problem: Problem, policy: Policy) -> Placed | None:
    """Returns the lists, or None where the memory limit leaves no way."""
    board = _Board(problem, policy)
    try:
        board.warm_up()
        for _ in range(1, problem.num_microbatches):
            board.run_round()
        board.finish()
    except _OutOfMemory:
        return None
    return board.placed


class _OutOfMemory(Exception):
    """Says that no weight half is left whose activation could be let go."""


class _Board:
    def __init__(self, problem: Problem, policy: Policy) -> None:
        ranks = range(problem.num_ranks)
        self.problem, self.policy = problem, policy
        self.placed: Placed = [[] for _ in ranks]
        self.clock: list[Number] = [0 for _ in ranks]
        self.memory: list[Number] = [0 for _ in ranks]
        self.gaps: list[Number] = [0 for _ in ranks]
        """Idle time of each rank since its first forward."""
        self.worst: Number = 0
        self.count = [[0 for _ in ranks] for _ in (F, I, W)]
        self.ended: list[list[list[Number]]] = [[[] for _ in ranks] for _ in (F, I, W)]

    def warm_up(self) -> None:
        ranks = range(self.problem.num_ranks)
        for rank in ranks:
            self._run(rank, F)
        # Microbatch 0 goes down all ranks first: only then is it known when its gradient comes
        # back.
        for rank, extra in enumerate(self._warm_up_forwards()):
            for _ in range(extra):
                self._run(rank, F)
        for rank in reversed(ranks):
            self._run(rank, I)

    def run_round(self) -> None:
        # Forwards are placed down the ranks and input halves back up, so what an action waits for
        # is always placed, and timed, before it.
        for rank, runs in enumerate(self._forwards_of_round()):
            if runs:
                self._make_room(rank, F)
                self._fill(rank, F)
                self._run(rank, F)
        for rank in reversed(range(self.problem.num_ranks)):
            self._make_room(rank, I)
            self._fill(rank, I)
            # No rank waits for an input half of rank 0, so its weight halves may go first once they
            # delay no forward.
            if rank == 0 and self.count[F][0] == self.problem.num_microbatches:
                self._run_weights(0)
            self._run(rank, I)

    def finish(self) -> None:
        for rank in range(self.problem.num_ranks):
            self._run_weights(rank)

    def _warm_up_forwards(self) -> list[int]:
        """Returns how many forwards more than one each rank runs before its first gradient."""
        # From the last rank back: each adds forwards while they fit into memory and into the wait
        # for its first gradient, which comes after the next rank's own forwards and input half.
        problem = self.problem
        extra = [0] * problem.num_ranks
        last = problem.num_ranks - 1
        gradient = self.clock[last] + problem.time[I][last]
        for rank in range(last - 1, -1, -1):
            arrival = gradient + problem.latency[rank + 1][rank]
            until, memory = self.clock[rank], self.memory[rank]
            takes, needs = problem.time[F][rank], problem.memory[F][rank]
            while (
                1 + extra[rank] < problem.num_microbatches
                and memory + needs <= problem.limit[rank]
                and self._starts_in_time(until, takes, arrival)
            ):
                memory += needs
                until += takes
                extra[rank] += 1
            gradient = max(until, arrival) + problem.time[I][rank]
        # Each rank stays a forward behind the one before it, until that one has run them all.
        for rank in range(1, problem.num_ranks):
            if extra[rank - 1] < problem.num_microbatches - 1:
                extra[rank] = max(0, min(extra[rank], extra[rank - 1] - 1))
        return extra

    def _starts_in_time(self, until: Number, takes: Number, arrival: Number) -> bool:
        if self.policy.is_first_gradient_late:
            return until < arrival
        return until + takes <= arrival

    def _forwards_of_round(self) -> list[bool]:
        """Says which ranks run a forward; none does that the ranks behind it would not follow."""
        runs = [
            self.count[F][rank] < self.problem.num_microbatches and not self._is_deferred(rank)
            for rank in range(self.problem.num_ranks)
        ]
        for rank in range(self.problem.num_ranks - 2, -1, -1):
            runs[rank] = runs[rank] and runs[rank + 1]
        return runs

    def _is_deferred(self, rank: int) -> bool:
        """Says whether the next rank has forwards enough and this one better goes on without."""
        # The next rank has two forwards waiting, so it gains nothing by one more now. It runs all
        # the same if it is through, with the weight halves that make room for it, before the next
        # gradient comes; else it is left for later where the rank can afford to be idle until then.
        behind, done = rank + 1, self.count[F]
        if not self.policy.is_forward_deferred or behind == self.problem.num_ranks:
            return False
        if done[rank] < done[behind] + 2:
            return False
        time, memory = self.problem.time, self.problem.memory
        arrival = self.clock[behind] + time[F][behind] + time[I][behind]
        arrival += self.problem.latency[behind][rank]
        if self.clock[rank] >= arrival:
            return True
        freeing, held = 0, self.memory[rank] + memory[F][rank]
        to_do = self.count[I][rank] - self.count[W][rank]
        while held > self.problem.limit[rank] and freeing < to_do:
            held += memory[W][rank]
            freeing += 1
        if self.clock[rank] + time[F][rank] + freeing * time[W][rank] <= arrival:
            return False
        return arrival - self.clock[rank] <= self.worst - self.gaps[rank]

    def _make_room(self, rank: int, kind: int) -> None:
        """Runs weight halves until the next action fits into memory."""
        while self.memory[rank] + self.problem.memory[kind][rank] > self.problem.limit[rank]:
            if self.count[W][rank] == self.count[I][rank]:
                raise _OutOfMemory
            self._run(rank, W)

    def _fill(self, rank: int, kind: int) -> None:
        """Runs weight halves while the next action's input is under way."""
        arrival, takes = self._arrival(rank, kind), self.problem.time[W][rank]
        to_do = self.count[I][rank] - self.count[W][rank]
        while to_do and self.clock[rank] + takes <= arrival:
            self._run(rank, W)
            to_do -= 1
        # What is left is shorter than a weight half. Filling it delays the rank, which is harmless
        # unless it thereby falls behind the rank that has most idle time.
        gap = arrival - self.clock[rank]
        if to_do and gap > 0:
            has_time = gap <= self.worst - self.gaps[rank]
            if not has_time or self.policy.are_small_gaps_filled:
                self._run(rank, W)

    def _run_weights(self, rank: int) -> None:
        while self.count[W][rank] < self.count[I][rank]:
            self._run(rank, W)

    def _arrival(self, rank: int, kind: int) -> Number:
        """Returns when the input of the rank's next action of a kind arrives."""
        source = rank - 1 if kind == F else rank + 1
        if kind == W or not 0 <= source < self.problem.num_ranks:
            return 0
        ended = self.ended[kind][source][self.count[kind][rank]]
        return ended + self.problem.latency[source][rank]

    def _run(self, rank: int, kind: int) -> None:
        start = max(self.clock[rank], self._arrival(rank, kind))
        if self.count[F][rank]:
            self.gaps[rank] += start - self.clock[rank]
            self.worst = max(self.worst, self.gaps[rank])
        self.placed[rank].append((kind, self.count[kind][rank]))
        self.count[kind][rank] += 1
        self.memory[rank] += self.problem.memory[kind][rank]
        self.clock[rank] = start + self.problem.time[kind][rank]
        self.ended[kind][rank].append(self.clock[rank])
