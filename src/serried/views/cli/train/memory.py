"""What ``serried train`` says of memory: the plan with ``--explain``, and what GPUs really held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from serried.plan.memory import RankMemory, rank_memories
from serried.views.cli.language import current_language
from serried.views.runs.memory import memory_table, peak_line
from serried.views.sentences import tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.runtime.job.report import MemoryPeaks, RankReport
    from serried.runtime.job.settings import TrainSettings


def planned_memory(settings: TrainSettings, ranks: Sequence[RankReport]) -> Table | str:
    """Returns the planned memory of each place in the pipeline, or why there is no plan."""
    from serried.runtime.job.planned import unplanned

    lang = current_language()
    if reason := unplanned(settings):
        return tell("memory is not planned here: {reason}", lang, reason=reason)
    return memory_table(_plan(settings, ranks), _places(ranks), lang)


def measured_memory(
    settings: TrainSettings, ranks: Sequence[RankReport], measured: MemoryPeaks
) -> str:
    """Returns the line that says what GPUs held at most, beside the plan where there is one."""
    from serried.runtime.job.planned import unplanned

    planned = None if unplanned(settings) else _plan(settings, ranks)
    return peak_line(measured.peak_bytes, planned, _places(ranks), current_language())


def _plan(settings: TrainSettings, ranks: Sequence[RankReport]) -> tuple[RankMemory, ...]:
    from serried.runtime.job.planned import training_of

    return rank_memories(training_of(settings, ranks[0].device))


def _places(ranks: Sequence[RankReport]) -> dict[int, int]:
    """Returns where in the pipeline each rank stands."""
    return {each.rank: each.coordinates["pp"] for each in ranks}
