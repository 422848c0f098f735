"""What if: how much faster a run's steps had been without the slowness of some ranks.

    slowdown      = replay(recorded) / replay(ideal)                      S of the paper
    without(rank) = 1 - replay(rank's operations ideal) / replay(recorded)
    share(ranks)  = (recorded - their operations ideal) / (recorded - all ideal)   M_W, M_S

All are of mean step times. See ``replay`` for the model and its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.trace.model.replay import Lanes, Replay

_NOTHING = 1e-9
_MOST_CELLS = 4_000_000
"""How many durations are replayed at once, 32 MB of them."""
SLOWEST_PERCENT = 3
"""How many of the ranks count as the slowest workers of M_W, in percent, rounded up."""


@dataclass(frozen=True)
class RankGain:
    """Says how much shorter the mean step is when one rank's operations take their ideal time."""

    rank: int
    shorter: float
    """A share of the step: 0.08 for 8 %; below 0 where the rank was faster than the ideal."""


@dataclass(frozen=True)
class WhatIf:
    """Holds what replaying a run says of it; times are seconds of a mean step."""

    num_steps: int
    recorded: float
    """Replayed as recorded, without the gaps that no operation explains."""
    ideal: float
    ranks: tuple[RankGain, ...]
    """The largest gain first."""
    slowest_share: float | None
    """The share of the slowdown that the slowest ranks explain, M_W; None without a slowdown."""
    last_stage_share: float | None
    """The share that the last stage explains, M_S; None too where it is the only one."""
    by_type: dict[str, float]
    """By type of operation, the slowdown when only it is as slow as recorded."""

    @property
    def slowdown(self) -> float:
        """How many times as long the mean step is as the ideal one, S.

        Under 1 it is no slowdown: what the step waited for took less than the ideal of its kind.
        """
        return self.recorded / self.ideal


def what_if(replay: Replay) -> WhatIf:
    """Returns what replaying ``replay`` with ideal durations says."""
    ideal = replay.ideal()
    recorded_s = float(replay.step_seconds().mean())
    ideal_s = float(replay.step_seconds(ideal).mean())

    def cured(lanes: NDArray[np.bool_]) -> float:
        """Returns the mean step when the operations in ``lanes`` take their ideal time."""
        return float(replay.step_seconds(np.where(lanes, ideal, replay.seconds)).mean())

    def share(lanes: NDArray[np.bool_]) -> float | None:
        # A loss within the rounding of sums is nothing that anybody could explain a share of.
        lost = recorded_s - ideal_s
        return (recorded_s - cured(lanes)) / lost if lost > _NOTHING * ideal_s else None

    ranks = replay.ranks.ravel().tolist()
    gains = [
        RankGain(rank, 1 - cured_s / recorded_s)
        for rank, cured_s in zip(ranks, _cured_each(replay, ideal, ranks), strict=True)
    ]
    last = int(replay.stages.max(initial=0))
    return WhatIf(
        num_steps=len(replay.steps),
        recorded=recorded_s,
        ideal=ideal_s,
        ranks=tuple(sorted(gains, key=lambda gain: (-gain.shorter, gain.rank))),
        slowest_share=share(_of_ranks(replay, _slowest(replay, ideal, ideal_s))),
        last_stage_share=share(_lanes(replay, replay.stages == last)) if last else None,
        by_type={
            type_: float(
                replay.step_seconds(
                    np.where(_lanes(replay, types == type_), replay.seconds, ideal)
                ).mean()
                / ideal_s
            )
            for types in (np.asarray(replay.types),)
            for type_ in sorted(set(replay.types))
        },
    )


def _cured_each(replay: Replay, ideal: Lanes, ranks: Sequence[int]) -> list[float]:
    """Returns the mean step of each rank's cure; many are replayed at once, as further steps."""
    at_once = max(1, _MOST_CELLS // replay.seconds.size)
    found: list[float] = []
    for first in range(0, len(ranks), at_once):
        part = [
            np.where(_of_ranks(replay, {rank}), ideal, replay.seconds)
            for rank in ranks[first : first + at_once]
        ]
        times = replay.step_seconds(np.concatenate(part, axis=1))
        found += times.reshape(len(part), -1).mean(axis=1).tolist()
    return found


def _lanes(replay: Replay, operations: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Returns ``operations`` in every step and replica."""
    return np.broadcast_to(operations[:, None, None], replay.seconds.shape)


def _of_ranks(replay: Replay, ranks: set[int]) -> NDArray[np.bool_]:
    """Returns the operations that ``ranks`` did, in every step."""
    chosen = np.isin(replay.ranks, list(ranks))[replay.stages]
    return np.broadcast_to(chosen[:, None, :], replay.seconds.shape)


def _slowest(replay: Replay, ideal: Lanes, ideal_s: float) -> set[int]:
    """Returns the slowest ranks: a rank scores the less of its replica's and its stage's slowdown.

    Equal scores go to the lower rank, as in the paper's artifact.
    """

    def slowdown(lanes: NDArray[np.bool_]) -> float:
        seconds = np.where(lanes, replay.seconds, ideal)
        return float(replay.step_seconds(seconds).mean()) / ideal_s

    num_stages, num_replicas = replay.ranks.shape
    by_stage = [slowdown(_lanes(replay, replay.stages == each)) for each in range(num_stages)]
    places = np.arange(num_replicas)
    by_replica = [
        slowdown(np.broadcast_to(places == each, replay.seconds.shape)) for each in places
    ]
    score = np.minimum.outer(by_stage, by_replica)
    count = -(-replay.ranks.size * SLOWEST_PERCENT // 100)
    order = np.lexsort((replay.ranks.ravel(), -score.ravel()))
    return set(replay.ranks.ravel()[order[:count]].tolist())
