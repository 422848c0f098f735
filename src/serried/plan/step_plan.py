"""What each rank of a run gathers and reduces in one step, as a file beside what they recorded.

    planned-step.json
    ├── zero      the stage: 0 to 3
    ├── groups    data, shard, replicate: the ranks of every group
    └── stages    ranks, and their collectives in order: what, over which group, of how many bytes

It is made from the settings of the run itself, so that a record can be held against its own plan
long after. A recording without this file, as serried made until 2026-11, reads as before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serried import user_file
from serried.errors import InputError
from serried.finding import said
from serried.limits import STEP_PLAN_BYTES
from serried.plan.sharded_step import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Moved
from serried.whole_file import whole_file

PLAN_FILE = "planned-step.json"
SCHEMA = "serried.planned-step/1"

Group = tuple[int, ...]


@dataclass(frozen=True)
class StagePlan:
    """Holds the collectives of the ranks of one pipeline stage, in order."""

    ranks: Group
    moves: tuple[Moved, ...]


@dataclass(frozen=True)
class StepPlan:
    """Holds what every rank of a run gathers and reduces of its weights in one step.

    >>> moved = Moved("all-reduce", ("data",), 2, 1000)
    >>> plan = StepPlan(0, {"data": ((0, 1),)}, (StagePlan((0, 1), (moved,)),))
    >>> plan.members_of(1), plan.moves_of(1) == (moved,), read_document(plan.document()) == plan
    ({'data': (0, 1)}, True, True)
    """

    zero: int
    groups: Mapping[str, tuple[Group, ...]]
    """The ranks of every group, by the kinds that the collectives name."""
    stages: tuple[StagePlan, ...]

    def moves_of(self, rank: int) -> tuple[Moved, ...]:
        """Returns the collectives of a rank; none where it is in no stage."""
        return next((stage.moves for stage in self.stages if rank in stage.ranks), ())

    def members_of(self, rank: int) -> dict[str, Group]:
        """Returns the ranks of a rank's groups, by kind."""
        found = {
            kind: next((ranks for ranks in groups if rank in ranks), None)
            for kind, groups in self.groups.items()
        }
        return {kind: ranks for kind, ranks in found.items() if ranks}

    def document(self) -> dict[str, Any]:
        """Returns the ``serried.planned-step/1`` document."""
        return {
            "schema": SCHEMA,
            "zero": self.zero,
            "groups": {kind: [*map(list, groups)] for kind, groups in self.groups.items()},
            "stages": [
                {
                    "ranks": list(stage.ranks),
                    "collectives": [
                        {
                            "collective": each.collective,
                            "over": each.over[0],
                            "ranks": each.ranks,
                            "size": each.size_bytes,
                        }
                        for each in stage.moves
                    ],
                }
                for stage in self.stages
            ],
        }


def write_step_plan(folder: Path, plan: StepPlan) -> None:
    """Writes the plan into a folder of records, whole or not at all.

    Raises InputError where it cannot be written.
    """
    with whole_file(folder / PLAN_FILE) as file:
        file.write(json.dumps(plan.document()).encode() + b"\n")


def read_step_plan(folder: Path) -> StepPlan:
    """Returns the plan that lies in a folder of records.

    Raises InputError where there is none, and for a file that does not hold one.
    """
    path = folder / PLAN_FILE
    if not path.exists():
        raise InputError(
            "{folder} holds no planned-step.json, the plan of a step; serried train --trace-dir "
            "writes it for dense models with one stage on each rank, computed for real",
            folder=folder,
        )
    text = user_file.read_text(path, STEP_PLAN_BYTES.most, said("the plan of a step"))
    try:
        return read_document(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            "{path} is damaged, or of a newer serried: it holds no {schema}",
            path=path,
            schema=SCHEMA,
        ) from error


def read_document(document: Any) -> StepPlan:
    """Returns the plan of a document; raises ValueError, TypeError or KeyError for no such one."""
    if document["schema"] != SCHEMA or document["zero"] not in range(4):
        raise ValueError(document["schema"])
    groups = {
        str(kind): tuple(_ranks(each) for each in found)
        for kind, found in document["groups"].items()
    }
    return StepPlan(
        int(document["zero"]), groups, tuple(_stage(each, groups) for each in document["stages"])
    )


def _stage(document: Any, groups: Mapping[str, tuple[Group, ...]]) -> StagePlan:
    ranks = _ranks(document["ranks"])
    moves = tuple(_moved(each) for each in document["collectives"])
    for kind in {move.over[0] for move in moves}:
        inside = {rank for group in groups[kind] for rank in group}
        if not inside.issuperset(ranks):
            raise ValueError(kind)
    return StagePlan(ranks, moves)


def _moved(document: Any) -> Moved:
    collective, over = document["collective"], document["over"]
    if collective not in (ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE) or type(over) is not str:
        raise ValueError(collective)
    return Moved(collective, (over,), _count(document["ranks"]), _count(document["size"]))


def _ranks(found: Any) -> Group:
    return tuple(_count(each) for each in found)


def _count(found: Any) -> int:
    if type(found) is not int or not 0 <= found < 2**62:
        raise ValueError(found)
    return found
