"""What a straggler costs: a run replayed as if it had been as fast as its like (what-if replay).

    cost = (replay as recorded - replay with its operations as quick as its like's) / step

The model of the replay is ``trace.model.replay``'s (Lin et al., OSDI 2025). What stands in for a
slow operation is here the median of the same operation on ranks that do equal work, in the same
steps; where there is none, its own from before the change; else that of its type on other ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.model.replay import Lanes, Replay
from serried.trace.model.trace import Trace

MOST_SPANS = 400_000
"""How many spans are replayed; of a longer run as many whole steps as that are, evenly spread."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Costing:
    """Replays a run without somebody's slowness; times are of a step."""

    replay: Replay
    recorded: NDArray[np.float64]
    """Seconds of each step, replayed as recorded."""

    @classmethod
    def of(cls, trace: Trace, steps: NDArray[np.int32]) -> Costing | None:
        """Returns what replays ``steps`` of ``trace``; None where it cannot be replayed."""
        if trace.replay is not None:
            found: Replay | None = trace.replay
        else:
            parts = -(-len(trace.spans) // MOST_SPANS)
            at = np.linspace(0, len(steps) - 1, max(1, len(steps) // parts)).astype(int)
            is_chosen = np.isin(trace.spans.step, steps[at])
            found = replay_of_trace(replace(trace, spans=trace.spans.where(is_chosen)))
        return None if found is None else cls(found, found.step_seconds())

    def without_ranks(self, ranks: Sequence[int], first: int, last: int) -> float:
        """Returns the seconds saved where ``ranks`` are as quick as their like.

        It is the mean of the steps from ``first`` to ``last``; 0 where none of them is replayed.
        """
        of_ranks = np.isin(self.replay.ranks, list(ranks))[self.replay.stages]
        steps = np.asarray(self.replay.steps)
        during = np.asarray((steps >= first) & (steps <= last))
        before = np.asarray(steps < first)
        if not during.any():
            return 0.0
        quick = self._of_their_like(of_ranks, during, before)
        return self._saved(np.broadcast_to(of_ranks[:, None, :], quick.shape), quick, during)

    def without_stage(self, ranks: Sequence[int]) -> float:
        """Returns the share of a step saved where the stages of ``ranks`` take the ideal time.

        The ideal is the mean of all stages, as if layers were moved to the others.
        """
        holds = np.asarray(np.isin(self.replay.ranks, list(ranks)).any(axis=1))
        of_stage = holds[self.replay.stages]
        quick = self.replay.ideal()
        saved = self._saved(np.broadcast_to(of_stage[:, None, None], quick.shape), quick)
        return saved / float(self.recorded.mean())

    def without_links(
        self, usual_ns: Mapping[tuple[int, int], float], first: int, last: int
    ) -> float:
        """Returns the seconds saved where no message of some links takes more than is usual.

        ``usual_ns`` tells that by sender and receiver. It is the mean of the steps from ``first``
        to ``last``; 0 where none of them is replayed.
        """
        steps = np.asarray(self.replay.steps)
        during = np.asarray((steps >= first) & (steps <= last))
        if not during.any():
            return 0.0
        quick, slow = self.replay.seconds, np.zeros(self.replay.seconds.shape, dtype=np.bool_)
        for (sender, receiver), usual in usual_ns.items():
            of_link = self._messages(sender, receiver)[:, None, :]
            slow = slow | of_link
            quick = np.where(of_link, np.minimum(quick, usual / 1e9), quick)
        return self._saved(slow, quick, during)

    def _messages(self, sender: int, receiver: int) -> Mask:
        """Tells which operations, by lane, are the two ends of messages between two ranks."""
        ranks = self.replay.ranks[self.replay.stages]
        # A rank sends forwards to one neighbour and backwards to the other.
        way = "_F" if self._stage(receiver) > self._stage(sender) else "_B"
        ends = [
            np.array([each == f"{kind}{way}" for each in self.replay.types])[:, None]
            & (ranks == rank)
            for rank, kind in ((sender, "SEND"), (receiver, "RECV"))
        ]
        return np.asarray(ends[0] | ends[1])

    def with_even_microbatches(self) -> float:
        """Returns the share of a step saved where all microbatches of a stage take equal time."""
        seconds = self.replay.seconds
        quick = np.array(seconds)
        pairs = zip(self.replay.types, self.replay.stages.tolist(), strict=True)
        names = np.array([f"{type_} {stage}" for type_, stage in pairs])
        for name in np.unique(names[~self.replay.is_message]):
            quick[names == name] = seconds[names == name].mean()
        whole = np.broadcast_to(~self.replay.is_message[:, None, None], quick.shape)
        return self._saved(whole, quick) / float(self.recorded.mean())

    def _stage(self, rank: int) -> int:
        return int(np.argwhere(self.replay.ranks == rank)[0][0])

    def _of_their_like(self, slow: Mask, during: Mask, before: Mask) -> Lanes:
        seconds = self.replay.seconds
        found = np.array(seconds)
        for at in np.flatnonzero(slow.any(axis=1)).tolist():
            others = seconds[at][during][:, ~slow[at]]
            past = seconds[at][before]
            if not others.size:
                alike = np.array([each == self.replay.types[at] for each in self.replay.types])
                alike &= ~slow.any(axis=1)
                others = past if past.size else seconds[alike][:, during]
            if others.size:
                found[at] = np.median(others)
        return found

    def _saved(self, slow: Mask, quick: Lanes, during: Mask | None = None) -> float:
        cured = self.replay.step_seconds(np.where(slow, quick, self.replay.seconds))
        saved = self.recorded - cured
        return float((saved if during is None else saved[during]).mean())
