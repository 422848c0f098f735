"""Replay: the recorded operations run again with other durations, to ask what would have been.

    stage 0  F0 F1 ──send──.            .──recv── B0 B1 ── reduce ── clip ── optimizer
    stage 1         recv ──'── F0 B0 ───'── …               (replicas)  (all)

One pipeline's operations of one step are the graph; every step and every replica (data
parallel copy) is a lane through it, computed together. An operation starts when all it comes
after have ended; those that *meet* (a send and its receive, the ranks of a collective) end
their own transfer time after the last of them has started. Nothing else delays anything.

Slowdown, ideal durations and shares follow Lin et al., "Understanding Stragglers in Large
Model Training Using What-if Analysis" (OSDI 2025), section 3: the ideal of a computation is
the mean over steps, stages and replicas, that of a communication the median of its transfer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError

Lanes = NDArray[np.float64]
"""Seconds, with the axes (operation, step, replica)."""


@dataclass(frozen=True)
class SyncGroup:
    """Says which operations of one pipeline end together, and with which replicas.

    ``across`` gives each replica a number: those with the same one meet. None keeps every
    replica to itself.
    """

    operations: tuple[int, ...]
    across: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Replay:
    """Holds the operations of a run: what each is, what it comes after, how long it took."""

    types: tuple[str, ...]
    """Each operation's type: ``forward-compute``, ``F`` …; ideal durations are taken by type."""
    stages: NDArray[np.int64]
    is_message: NDArray[np.bool_]
    after: tuple[tuple[int, ...], ...]
    meetings: tuple[SyncGroup, ...]
    seconds: Lanes
    """How long each took; of an operation that meets others, its transfer alone."""
    steps: tuple[int, ...]
    ranks: NDArray[np.int64]
    """The global rank of every (pipeline stage, replica)."""
    final: frozenset[int] = field(default=frozenset())
    """Operations whose end is the step's; all where none is named."""

    def __len__(self) -> int:
        return len(self.types)

    def step_seconds(self, seconds: Lanes | None = None) -> NDArray[np.float64]:
        """Returns how long each step takes with ``seconds``, by default as recorded."""
        durations = self.seconds if seconds is None else seconds
        ends = np.zeros_like(durations)
        for node in self._order:
            self._run(node, durations, ends)
        last = sorted(self.final) or list(range(len(self)))
        return np.asarray(ends[last].max(axis=(0, 2)))

    def ideal(self) -> Lanes:
        """Returns each operation's ideal duration: what none of its kind would exceed."""
        seconds = np.empty_like(self.seconds)
        types = np.asarray(self.types)
        for type_ in set(self.types):
            rows = types == type_
            middle = np.median if self.is_message[rows].any() else np.mean
            seconds[rows] = middle(self.seconds[rows])
        return seconds

    def _run(self, node: SyncGroup, durations: Lanes, ends: Lanes) -> None:
        begun = np.zeros(durations.shape[1:])
        for before in (before for each in node.operations for before in self.after[each]):
            np.maximum(begun, ends[before], out=begun)
        # In a collective over replicas nobody begins before the last of them is there.
        for replicas in _together(node.across):
            begun[:, replicas] = begun[:, replicas].max(axis=1, keepdims=True)
        for each in node.operations:
            ends[each] = begun + durations[each]

    @property
    def has_an_order(self) -> bool:
        """Whether the operations can run at all: none waits, by way of others, for itself."""
        try:
            return bool(self._order) or not len(self)
        except InputError:
            return False

    @cached_property
    def _order(self) -> tuple[SyncGroup, ...]:
        """Meetings, and every other operation alone, each behind all that it comes after."""
        met = {each for meeting in self.meetings for each in meeting.operations}
        alone = [SyncGroup((each,)) for each in range(len(self)) if each not in met]
        nodes = [*self.meetings, *alone]
        node_of = {each: place for place, node in enumerate(nodes) for each in node.operations}
        # What meets is one node, which waits for all that any of its operations comes after.
        waits = [
            {node_of[before] for each in node.operations for before in self.after[each]}
            for node in nodes
        ]
        return tuple(nodes[place] for place in _sorted(waits))


def _together(across: tuple[int, ...] | None) -> list[NDArray[np.int64]]:
    """Returns the sets of replicas that meet, those of one alone left out."""
    if across is None:
        return []
    numbers = np.asarray(across)
    sets = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    return [replicas for replicas in sets if len(replicas) > 1]


def _sorted(waits: Sequence[set[int]]) -> list[int]:
    """Returns the nodes in an order in which none comes before one that it waits for.

    Raises InputError when they wait for one another in a circle.
    """
    followers: list[list[int]] = [[] for _ in waits]
    for node, before in enumerate(waits):
        for each in before:
            followers[each].append(node)
    # Kahn's algorithm. What it does not reach waits, by way of others, for itself.
    left = [len(before) for before in waits]
    ready = deque(node for node, count in enumerate(left) if not count)
    order: list[int] = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for each in followers[node]:
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    if len(order) < len(waits):
        raise InputError(
            "{count} of the recorded operations wait for one another in a circle; the order of "
            "the first step cannot be replayed",
            count=len(waits) - len(order),
        )
    return order
