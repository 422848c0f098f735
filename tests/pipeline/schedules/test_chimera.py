"""Chimera against the picture of its paper: two 1F1B pipelines merged slot by slot."""

from __future__ import annotations

from serried.action import Action
from serried.pipeline import Costs, simulate
from serried.pipeline.schedules.chimera import chimera

MERGED = """
     0F   .  1F  ,0F  ,0B  ,1F  ,1B   0B   .   1B
      .  0F ,0F   1F  ,1F  ,0B   0B  ,1B  1B    .
      . ,0F  0F  ,1F   1F   0B  ,0B   1B ,1B    .
    ,0F   . ,1F   0F   0B   1F   1B  ,0B   .  ,1B
"""
"""Figure 3 of arXiv 2107.06925 (D = N = 4); a comma marks the pipeline that goes up.

Forward i of stage s stands in slot 2i + s, backward i in slot 2i + 2D - 1 - s, and no two meet.
"""


def mark(action: Action) -> str:
    return f"{',' * action.direction}{action.microbatch}{action.kind.name}"


def test_four_microbatches_on_four_ranks_are_the_papers_picture() -> None:
    drawn = [line.split() for line in MERGED.strip().splitlines()]
    schedule = chimera(4, 4)
    assert [[mark(action) for action in actions] for actions in schedule] == [
        [cell for cell in row if cell != "."] for row in drawn
    ]
    assert simulate(schedule, Costs(1, backward=1)).makespan == len(drawn[0])


def test_the_picture_obeys_the_rule_of_its_slots() -> None:
    drawn = [line.split() for line in MERGED.strip().splitlines()]
    for stage in range(4):
        for i in range(2):
            assert drawn[stage][2 * i + stage] == f"{i}F"
            assert drawn[stage][2 * i + 7 - stage] == f"{i}B"
            assert drawn[3 - stage][2 * i + stage] == f",{i}F"
            assert drawn[3 - stage][2 * i + 7 - stage] == f",{i}B"
