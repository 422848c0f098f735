"""Shared cores: when each entry of a schedule runs, if ranks compute on fewer cores than they are.

    two ranks, one core      rank 0  |=== 0F0 ===|==== 0F1 ====|== 0F2 ==|
                             rank 1              |==== 1F0 ====|==== 1F1 ====|
    busy at once                           1            2          2      1
    speed                                  1           1/2        1/2     1

Every entry has its work, in seconds of a core of its own. While ``busy`` ranks compute on ``cores``
each proceeds at min(1, cores / busy): processor sharing, as an operating system's fair scheduler
gives it. All that run proceed alike, so one running sum of that speed serves them all: an entry
that begins when the sum is v ends when it has grown by its work.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from serried.errors import InputError
from serried.pipeline.longest_path import EndTimes, Lists, Times


@dataclass(frozen=True)
class SharedCores:
    """Says how many cores the ranks share, and for how many ranks each list stands.

    >>> SharedCores(2, copies=2).speed(2), SharedCores(2).speed(1)
    (0.5, 1.0)

    Raises InputError for cores or copies that cannot be.
    """

    cores: float
    """Cores, or where a rank computes with several threads, cores over those."""
    copies: int = 1
    """Ranks that run each list at the same time: replicas, and those of a tensor group."""

    def __post_init__(self) -> None:
        if not self.cores > 0 or self.copies < 1:
            raise InputError(
                "{cores} cores for {copies} copies of each rank cannot be; both are above 0",
                cores=self.cores,
                copies=self.copies,
            )

    def speed(self, busy: int) -> float:
        """Returns how fast each of ``busy`` lists proceeds, 1 where each rank has a core."""
        return min(1.0, self.cores / (busy * self.copies))


@dataclass(frozen=True, eq=False)
class SharedTimes:
    """Holds when every entry starts and ends, and each stuck rank with the entry it cannot run."""

    start: Times
    ends: EndTimes


def shared_times(lists: Lists, shared: SharedCores) -> SharedTimes:
    """Runs the lists on shared cores; ``lists.duration`` is each entry's work.

    Of two ranks on one core that compute 1 s each, both end after 2 s; alone one takes 1 s:

    >>> work, none = np.array([1.0, 1.0]), np.array([-1, -1])
    >>> two = Lists(np.array([0, 1, 2]), none, work, np.zeros(2))
    >>> shared_times(two, SharedCores(1)).ends.end.tolist()
    [2.0, 2.0]
    >>> shared_times(two, SharedCores(2)).ends.end.tolist()
    [1.0, 1.0]
    """
    return _Run(lists, shared).finished()


class _Run:
    """Runs the lists from event to event: an entry ends, or a message arrives."""

    def __init__(self, lists: Lists, shared: SharedCores) -> None:
        self.shared = shared
        self.first, self.producer = lists.first.tolist(), lists.producer.tolist()
        self.work = [float(each) for each in lists.duration]
        self.delay = [float(each) for each in lists.delay]
        count = len(self.producer)
        self.start, self.end = [-1.0] * count, [-1.0] * count
        self.position = self.first[:-1]
        self.now, self.done = 0.0, 0.0
        """The time, and the running sum of the speed: the work that any entry has got so far."""
        self.running: list[tuple[float, int]] = []
        """Entries that compute: the sum at which each ends, and its rank."""
        self.arriving: list[tuple[float, int]] = []
        """Ranks whose next entry's message is on its way: when it arrives, and the rank."""
        self.waiting: dict[int, list[int]] = {}
        """Ranks by the entry that their next one waits for, which has not ended."""

    def finished(self) -> SharedTimes:
        for rank in range(len(self.position)):
            self._await(rank)
        while self.running or self.arriving:
            self._step()
        stuck = {rank: self.position[rank] for ranks in self.waiting.values() for rank in ranks}
        ends = EndTimes(np.array(self.end), stuck)
        return SharedTimes(np.array(self.start), ends)

    def _step(self) -> None:
        """Goes on to the next event, whichever comes first."""
        speed = self.shared.speed(len(self.running)) if self.running else 1.0
        ends = self.now + (self.running[0][0] - self.done) / speed if self.running else np.inf
        arrives = self.arriving[0][0] if self.arriving else np.inf
        if arrives < ends:
            self.done += (arrives - self.now) * speed
            self.now = arrives
            self._begin(heappop(self.arriving)[1])
        else:
            self.now = ends
            self.done, rank = heappop(self.running)
            self._finish(rank)

    def _begin(self, rank: int) -> None:
        entry = self.position[rank]
        self.start[entry] = self.now
        heappush(self.running, (self.done + self.work[entry], rank))

    def _finish(self, rank: int) -> None:
        entry = self.position[rank]
        self.end[entry] = self.now
        self.position[rank] += 1
        self._await(rank)
        for other in self.waiting.pop(entry, ()):
            self._await(other)

    def _await(self, rank: int) -> None:
        """Lets a rank's next entry begin now, when its message arrives, or once that is sent."""
        entry = self.position[rank]
        if entry == self.first[rank + 1]:
            return
        source = self.producer[entry]
        if source < 0:
            self._begin(rank)
        elif self.end[source] < 0:
            self.waiting.setdefault(source, []).append(rank)
        elif self.end[source] + self.delay[entry] <= self.now:
            self._begin(rank)
        else:
            heappush(self.arriving, (self.end[source] + self.delay[entry], rank))
