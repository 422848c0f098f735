"""The figures of a watched job, as every way of exporting them tells them.

    serried_step_seconds                  {}              0.5
    serried_rank_lateness_seconds         {rank: 3}       0.05
    serried_notices                       {kind: gone}    1      counted

Prometheus scrapes them, OpenTelemetry sends them, experiment trackers keep them by step.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from serried.diagnose.watch.figures import LatestFigures
from serried.diagnose.watch.look import JobLook, RankIs
from serried.diagnose.watch.watching import Notice


@dataclass(frozen=True)
class WatchedState:
    """Holds what is told of a job between two looks."""

    look: JobLook
    figures: LatestFigures | None
    moved_at: float
    """When the job last went on, in seconds since 1970."""
    allowed_s: float
    """How long it may stand still."""
    has_ended: bool


class WatchListener(Protocol):
    """Takes what the watch sees of a job."""

    def hear(self, notice: Notice) -> None:
        """Hears one thing that the watch said."""

    def tell(self, state: WatchedState) -> None:
        """Takes what was seen now."""

    def linger(self) -> None:
        """Ends, once all that was told is where it should be."""


@dataclass(frozen=True)
class WatchedFamily:
    """Holds one figure of a job, with a value for each of its labels."""

    name: str
    text: str
    values: Mapping[str, float]
    """By the label's value; "" where the job as a whole has one."""
    label: str = ""
    is_counted: bool = False
    """Whether it only ever grows."""


def families(state: WatchedState, notices: Mapping[str, int]) -> Iterator[WatchedFamily]:
    """Yields all figures of a job as it was seen last, and how often the watch spoke, by kind."""
    yield from _progress(state)
    if state.figures is not None:
        yield from _steps(state.figures)
    text = "What the watch said of the job, by its kind."
    yield WatchedFamily(
        "serried_notices", text, dict(sorted(notices.items())), "kind", is_counted=True
    )


def _progress(state: WatchedState) -> Iterator[WatchedFamily]:
    look = state.look
    yield _one("serried_look_timestamp_seconds", "When the job was last looked at.", look.time)
    still = 0.0 if state.has_ended else max(0.0, time.time() - state.moved_at)
    yield _one("serried_still_seconds", "For how long no rank has gone on.", still)
    text = "For how long the job may stand still, as its own steps and pauses tell."
    yield _one("serried_still_allowed_seconds", text, state.allowed_s)
    yield _one("serried_job_ended", "1 where the job has ended.", float(state.has_ended))
    if look.world_size is not None:
        yield _one("serried_world_size", "Ranks of the job.", look.world_size)
    states = Counter(each.state for each in look.ranks.values())
    counts = {each.value: states[each] for each in RankIs}
    text = "Ranks that wrote anything, by what became of them."
    yield WatchedFamily("serried_ranks", text, counts, "state")
    steps = {str(rank): seen.step for rank, seen in look.ranks.items() if seen.step >= 0}
    yield WatchedFamily("serried_rank_step", "The step that a rank began last.", steps, "rank")


def _steps(figures: LatestFigures) -> Iterator[WatchedFamily]:
    text = "Mean time from a step's start to the next one's, over the latest steps."
    yield _one("serried_step_seconds", text, figures.step_s)
    text = "Microbatches a second, of all replicas together."
    yield _one("serried_microbatches_per_second", text, figures.microbatches_per_s)
    text = "Share of the ranks' time in which they computed nothing, over the latest steps."
    name = "serried_bubble_ratio" if figures.has_pipeline else "serried_idle_ratio"
    yield _one(name, text, figures.idle)
    yield _one("serried_steps_measured", "Steps that these figures are of.", figures.num_steps)
    for name, text, attribute in (
        ("serried_rank_compute_seconds", "Computing in a step, waits left out.", "compute_s"),
        ("serried_rank_wait_seconds", "Waiting in a step for messages and collectives.", "waits_s"),
        (
            "serried_rank_lateness_seconds",
            "How much longer than it the others of its stages wait in a step.",
            "waited_for_s",
        ),
    ):
        values = {str(each.rank): getattr(each, attribute) for each in figures.ranks}
        known = {rank: value for rank, value in values.items() if value is not None}
        yield WatchedFamily(name, text, known, "rank")


def _one(name: str, text: str, value: float) -> WatchedFamily:
    return WatchedFamily(name, text, {"": value})
