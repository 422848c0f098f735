"""What a run's memory was planned to be, a row for ranks alike, and what GPUs really held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from serried.finding import said
from serried.plan.reference.memory import Moment, RankMemory
from serried.units import memory_text
from serried.views.layout.text import table
from serried.views.sentences import say, tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.runtime.pretrained.states import PlannedStates

MOMENTS = {
    Moment.COMPUTING: said("computing"),
    Moment.REDUCING: said("summing gradients"),
    Moment.LEARNING: said("optimizing"),
}
"""What a step does when most memory is held."""


def memory_table(memories: Sequence[RankMemory], pp_ranks: Mapping[int, int], lang: str) -> Table:
    """Returns planned bytes; ``pp_ranks`` says where in the pipeline each rank stands."""
    has_gathered = any(each.gathered for each in memories)
    rows = table(
        "rank",
        "stage",
        tell("parameters", lang),
        *((tell("gathered", lang),) if has_gathered else ()),
        *(tell("gradients", lang), tell("optimizer", lang), tell("activations", lang)),
        *(tell("peak", lang), tell("while", lang)),
    )
    for column in rows.columns[2:-1]:
        column.justify = "right"
    for memory in memories:
        # All ranks at one place in the pipeline hold the same amount, so they share a row.
        ranks = [rank for rank, place in pp_ranks.items() if place == memory.pp_rank]
        rows.add_row(
            ranks_in_runs(ranks),
            " ".join(map(str, memory.stages)),
            memory_text(memory.parameters),
            *((memory_text(memory.gathered),) if has_gathered else ()),
            memory_text(memory.gradients),
            memory_text(memory.optimizer),
            memory_text(memory.activations),
            memory_text(memory.peak),
            say(MOMENTS[memory.moment], lang),
        )
    return rows


def states_table(states: Sequence[PlannedStates], pp_ranks: Mapping[int, int], lang: str) -> Table:
    """Returns what weights take, where nothing is known of what layers keep for backward."""
    kept = [tell(name, lang) for name in ("parameters", "gradients", "optimizer")]
    rows = table("rank", "stage", *kept)
    for column in rows.columns[2:]:
        column.justify = "right"
    for each in states:
        ranks = [rank for rank, place in pp_ranks.items() if place == each.pp_rank]
        rows.add_row(
            ranks_in_runs(ranks),
            " ".join(map(str, each.stages)),
            *map(memory_text, (each.parameters, each.gradients, each.optimizer)),
        )
    return rows


def peak_line(
    peak_bytes: Sequence[int],
    planned: Sequence[RankMemory] | None,
    pp_ranks: Mapping[int, int],
    lang: str,
) -> str:
    """Returns what the fullest GPU held, beside its plan where there is one."""
    rank = max(range(len(peak_bytes)), key=lambda each: peak_bytes[each])
    measured = memory_text(peak_bytes[rank])
    if planned is None:
        return tell("peak memory {measured}, of rank {rank}", lang, measured=measured, rank=rank)
    return tell(
        "peak memory {measured}, of rank {rank}; planned {planned}",
        lang,
        measured=measured,
        rank=rank,
        planned=memory_text(planned[pp_ranks[rank]].peak),
    )


def ranks_in_runs(ranks: Sequence[int]) -> str:
    """Prints ascending ranks, neighbours as one run.

    >>> ranks_in_runs([0, 1, 2, 3, 8, 9, 12])
    '0-3 8 9 12'
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    # Two neighbours are written as '8 9', for '8-9' is no shorter.
    words = (f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(map(str, run)) for run in runs)
    return " ".join(words)
