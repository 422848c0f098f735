"""Longest path: when each entry of a schedule ends, if every rank runs its list in order.

    end = max(end of the entry before it on its rank, end of its producer + delay) + duration

Each entry has one entry before it and at most one producer, so one pass suffices. Two ways
give the same numbers: ``followed`` takes one rank as far as it goes, in plain Python, for any
kind of number; ``in_waves`` takes one entry of every rank at a time, in numpy, which is three
times as fast for many ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.pipeline.costs import Number
from serried.pipeline.packed import Numbers

Times = NDArray[Any]
"""64-bit integers; floats where a time is no fraction, Python's integers where 64 bits are few."""

WIDE = 16
"""From this many ranks on, waves pay for the overhead of a numpy call."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Holds what the passes run: entry bounds of the ranks, producers, durations and delays.

    ``delay`` is the time from the end of an entry's producer to its arrival.
    """

    first: Numbers
    producer: Numbers
    duration: Times
    delay: Times


@dataclass(frozen=True, eq=False)
class EndTimes:
    """Holds when every entry ends, and for each stuck rank the entry that it cannot run."""

    end: Times
    stuck: dict[int, int]


def longest_path(lists: Lists) -> EndTimes:
    """Runs the lists the quicker way.

    >>> one, two = np.array([3, 4]), np.array([0, 1])
    >>> longest_path(Lists(np.array([0, 1, 2]), np.array([-1, 0]), one, two)).end.tolist()
    [3, 8]
    """
    is_wide = len(lists.first) > WIDE and lists.duration.dtype != object
    return in_waves(lists) if is_wide else followed(lists)


def followed(lists: Lists) -> EndTimes:
    """Follows a rank until its next entry waits for one that has not run, then another."""
    # A rank runs until its next entry waits for one that has not run; it is then noted under that
    # entry and taken up again when that has run. Every entry is passed once, and looked at twice
    # at most. What is still noted in the end waits for ever: the lists deadlock.
    first, producer = lists.first.tolist(), lists.producer.tolist()
    duration: list[Number] = lists.duration.tolist()
    delay: list[Number] = lists.delay.tolist()
    end: list[Number] = [-1] * len(producer)
    waiting: dict[int, list[int]] = {}
    position = first[:-1]
    clock: list[Number] = [0] * len(position)
    ready = list(range(len(position) - 1, -1, -1))
    while ready:
        rank = ready.pop()
        now = clock[rank]
        for entry in range(position[rank], first[rank + 1]):
            source = producer[entry]
            if source >= 0:
                arrival = end[source]
                if arrival < 0:
                    waiting.setdefault(source, []).append(rank)
                    position[rank], clock[rank] = entry, now
                    break
                arrival += delay[entry]
                if arrival > now:
                    now = arrival
            now += duration[entry]
            end[entry] = now
            if entry in waiting:
                ready += waiting.pop(entry)
    stuck = {rank: position[rank] for ranks in waiting.values() for rank in ranks}
    return EndTimes(np.array(end, lists.duration.dtype), stuck)


def in_waves(lists: Lists) -> EndTimes:
    """Runs, again and again, the next entry of every rank whose producer has run.

    Each rank's list is followed by an entry whose producer never runs, where it comes to rest.
    """
    # Each wave runs at most one entry of a rank, so it is one numpy step over ranks. Entries get
    # one place more per rank for the rest after the last; ``always`` stands for a producer that
    # an entry without one has, which ended at 0, and ``never`` for that of the rest.
    num_ranks, count = len(lists.first) - 1, len(lists.producer)
    place = np.arange(count) + np.repeat(np.arange(num_ranks), np.diff(lists.first))
    always, never = count + num_ranks, count + num_ranks + 1
    producer = np.full(count + num_ranks, never)
    producer[place] = np.where(lists.producer < 0, always, place[lists.producer])
    duration, delay = (np.zeros(count + num_ranks, lists.duration.dtype) for _ in range(2))
    duration[place] = lists.duration
    delay[place] = np.where(lists.producer < 0, 0, lists.delay)
    end = np.full(count + num_ranks + 2, -1, lists.duration.dtype)
    end[always] = 0
    position = lists.first[:-1] + np.arange(num_ranks)
    clock = np.zeros(num_ranks, lists.duration.dtype)
    while True:
        produced = end[producer[position]]
        ready = np.flatnonzero(produced >= 0)
        if not len(ready):
            break
        entry = position[ready]
        now = np.maximum(produced[ready] + delay[entry], clock[ready]) + duration[entry]
        end[entry] = clock[ready] = now
        position[ready] += 1
    position -= np.arange(num_ranks)
    stuck = {r: int(at) for r, at in enumerate(position) if at < lists.first[r + 1]}
    return EndTimes(end[place], stuck)
