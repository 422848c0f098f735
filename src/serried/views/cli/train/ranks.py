"""What ``serried train`` prints of its ranks: what each holds, its buffers, and its memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from serried.plan.reference.memory import RankMemory, rank_memories
from serried.views.cli.language import current_language
from serried.views.runs.memory import memory_table, peak_line, states_table
from serried.views.sentences import tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.runtime.job.report import MemoryPeaks, RankReport
    from serried.runtime.job.settings import TrainSettings


def rank_table(ranks: tuple[RankReport, ...]) -> Table:
    """Returns what each rank holds and its groups, as the ranks themselves reported."""
    axes = tuple(ranks[0].groups)
    table = Table()
    lang = current_language()
    for title in ("rank", *axes, tell("parameters", lang)):
        table.add_column(title, justify="right")
    for title in (tell("holds", lang), *(tell("{axis} group", lang, axis=axis) for axis in axes)):
        table.add_column(title)
    for each in ranks:
        table.add_row(
            str(each.rank),
            *(str(each.coordinates[axis]) for axis in axes),
            f"{each.parameter_bytes:,} B",
            " ".join(each.modules),
            *(" ".join(map(str, each.groups[axis])) for axis in axes),
        )
    return table


def buffer_parts(ranks: tuple[RankReport, ...]) -> Iterator[str | Table]:
    """Yields the gradient buffers of one rank of each stage, which its other ranks have alike."""
    lang, shown = current_language(), set[int]()
    for each in ranks:
        # The buffers of a stage are alike on all its ranks, so the first of them speaks for it.
        if each.coordinates["pp"] in shown:
            continue
        shown.add(each.coordinates["pp"])
        for number, buffer in enumerate(each.buffers):
            yield tell(
                "rank {rank}, buffer {number}: {num_bytes:,} bytes, {gradients} gradients of "
                "{parameters} parameters, summed over {axis}",
                lang,
                rank=each.rank,
                number=number,
                num_bytes=buffer.num_bytes,
                gradients=buffer.gradient_dtype,
                parameters=buffer.parameter_dtype,
                axis=buffer.axis,
            )
            rows = Table()
            rows.add_column(tell("offset", lang), justify="right")
            rows.add_column(tell("elements", lang), justify="right")
            rows.add_column(tell("parameter", lang))
            for part in buffer.parts:
                rows.add_row(f"{part.offset:,}", f"{part.count:,}", part.name)
            yield rows


def planned_memory(settings: TrainSettings, ranks: Sequence[RankReport]) -> Iterator[Table | str]:
    """Yields the planned memory of each place in the pipeline, and why there is no more of it."""
    from serried.runtime.job.config_model import ConfigModel
    from serried.runtime.job.planned import unplanned

    lang = current_language()
    if isinstance(settings.model, ConfigModel):
        from serried.runtime.pretrained.states import planned_states

        yield states_table(tuple(planned_states(settings)), _places(ranks), lang)
    if reason := unplanned(settings):
        yield tell("memory is not planned here: {reason}", lang, reason=reason)
    else:
        yield memory_table(_plan(settings, ranks), _places(ranks), lang)


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
