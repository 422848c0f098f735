"""What ``serried train --explain`` prints: what each rank holds, and its buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from serried.views.table import Table

if TYPE_CHECKING:
    from serried.runtime.job.report import RankReport


def rank_table(ranks: tuple[RankReport, ...]) -> Table:
    """Returns what each rank holds and its groups, as the ranks themselves reported."""
    axes = tuple(ranks[0].groups)
    table = Table()
    groups = [f"{axis} group" for axis in axes]
    for title in ("rank", *axes, "parameters", "holds", *groups):
        table.add_column(title, justify="left" if title in ("holds", *groups) else "right")
    for each in ranks:
        table.add_row(
            str(each.rank),
            *(str(each.coordinates[axis]) for axis in axes),
            f"{each.parameter_bytes:,} B",
            " ".join(each.modules),
            *(" ".join(map(str, each.groups[axis])) for axis in axes),
        )
    return table


def buffer_lines(ranks: tuple[RankReport, ...]) -> Iterator[str]:
    """Yields the gradient buffers of one rank of each stage, which its other ranks have alike."""
    shown: set[int] = set()
    for each in ranks:
        if each.coordinates["pp"] in shown:
            continue
        shown.add(each.coordinates["pp"])
        for number, buffer in enumerate(each.buffers):
            yield (
                f"rank {each.rank}, buffer {number}: {buffer.num_bytes:,} bytes, "
                f"{buffer.gradient_dtype} gradients of {buffer.parameter_dtype} parameters, "
                f"summed over {buffer.axis}"
            )
            yield f"{'offset':>12}  {'elements':>10}  parameter"
            yield from (
                f"{part.offset:>12,}  {part.count:>10,}  {part.name}" for part in buffer.parts
            )
