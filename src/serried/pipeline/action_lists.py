"""Action lists that others wrote: PyTorch's CSV format, read and written.

    0F0,0F1,0B0,0B1          one row a rank, one cell an action, an empty cell is no action
    1F0,1B0,1F1,1B1

PyTorch's ``_PipelineScheduleRuntime._load_csv`` takes the same file, as do torchtitan's
``pipeline_parallel_schedule_csv`` and NeMo's ``pp_schedule_csv``. Communication actions (such as
``0SEND_F0`` or ``0UNSHARD``, in a "compute_comms" file) are read over: they follow from the rest.
Which rank holds a stage follows from where the stage's actions stand.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from serried import user_file
from serried.action import Action, ActionKind
from serried.errors import InputError
from serried.finding import said
from serried.limits import SCHEDULE_BYTES
from serried.pipeline.packed import Codes, chain, direction_of, microbatch_of, pack, stage_of, work
from serried.pipeline.placement import StagePlacement
from serried.pipeline.schedule import Schedule
from serried.pipeline.validate import validate


def read_csv(path: Path) -> Schedule:
    """Reads a schedule from a file; raises InputError with the reason when it cannot run."""
    rows = _rows(path)
    ranks = [_codes(path, row, cells) for row, cells in enumerate(rows)]
    schedule = _from_codes(path.name, ranks)
    try:
        validate(schedule)
    except InputError as error:
        raise _ragged(path, rows, error) from error
    return schedule


def _rows(path: Path) -> list[list[str]]:
    """Returns the cells of a file, without empty rows at its end."""
    data = user_file.read_bytes(path, SCHEDULE_BYTES.most, said("a schedule"))
    try:
        # Spreadsheets put a byte order mark before the text, and empty rows after it.
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            "{path} is no CSV text; a schedule has a row for each rank, such as 0F0,0F1,0B0,0B1",
            path=path,
        ) from error
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()
    return rows


_PLAIN = re.compile(r"(\d{1,4})([FBIW])(\d{1,9})")
"""Nearly every cell; of a million, reading each as an Action takes four times as long."""


def _codes(path: Path, row: int, cells: Sequence[str]) -> Codes:
    """Returns the actions of a row, packed."""
    codes: list[int] = []
    for column, cell in enumerate(cells):
        if found := _PLAIN.fullmatch(cell):
            codes.append(work(ActionKind[found[2]], int(found[1]), int(found[3])))
        elif cell.strip():
            codes += pack([_action(path, row, column, cell)]).tolist()
    return np.array(codes, np.int64)


def _action(path: Path, row: int, column: int, cell: str) -> Action:
    try:
        return Action.parse(cell)
    except InputError as error:
        raise InputError(
            "{path}, row {row}, cell {column}: {reason}",
            path=path,
            row=row + 1,
            column=column + 1,
            reason=error,
        ) from error


def _ragged(path: Path, rows: Sequence[Sequence[str]], error: InputError) -> InputError:
    """Returns the error for rows of unequal length, or the given one where they are equal.

    Unequal rows are no fault in themselves (PyTorch writes them for some schedules), but where
    an action is missing too, the file was most likely cut.
    """
    lengths = [len(cells) for cells in rows]
    if min(lengths) == max(lengths):
        return error
    return InputError(
        "{path} is ragged: row {short} has {few} cells, row {long} has {many}; {reason}",
        path=path,
        short=lengths.index(min(lengths)) + 1,
        few=min(lengths),
        long=lengths.index(max(lengths)) + 1,
        many=max(lengths),
        reason=error,
    )


def to_csv(schedule: Schedule) -> str:
    """Returns a schedule in PyTorch's format, its rows filled up with empty cells.

    >>> from serried.pipeline.schedules.one_f_one_b import one_f_one_b
    >>> print(to_csv(one_f_one_b(2, 1)), end="")
    0F0,0B0
    1F0,1B0
    """
    rows = [schedule.texts(rank) for rank in range(schedule.num_ranks)]
    longest = max(map(len, rows))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(row + [""] * (longest - len(row)) for row in rows)
    return text.getvalue()


def from_actions(name: str, ranks: Sequence[Sequence[Action]]) -> Schedule:
    """Makes a schedule of each rank's actions, placing stages where their actions stand.

    >>> ranks = [[Action.parse(word) for word in rank] for rank in (["0F0", "0B0"], ["1F0", "1B0"])]
    >>> from_actions("mine", ranks).placement.rank_of.tolist()
    [[0, 1]]

    Raises InputError for a rank without actions, and for a stage on no rank or on two.
    """
    return _from_codes(name, [pack(list(actions)) for actions in ranks])


def _from_codes(name: str, codes: Sequence[Codes]) -> Schedule:
    for rank, of_rank in enumerate(codes):
        if not len(of_rank):
            raise InputError(
                "rank {rank} of {name} has no actions; a schedule has a row for each rank that "
                "computes, and no other",
                rank=rank,
                name=name,
            )
    if not codes:
        raise InputError("{name} has no actions; a schedule has a row for each rank", name=name)
    placement = _placement(name, codes)
    each_way = int(max(microbatch_of(of_rank).max() for of_rank in codes)) + 1
    count = sum(map(len, codes))
    # A whole schedule has an action or more for each stage and microbatch. A lone 0F999999999 must
    # not make tables of a thousand million places.
    if placement.rank_of.size * each_way > 16 * count:
        raise InputError(
            "{name} has {count} actions, too few for {stages} stages and the {microbatches} "
            "microbatches that it names",
            name=name,
            count=count,
            stages=placement.num_stages,
            microbatches=each_way,
        )
    return Schedule.of(name, placement, each_way * placement.num_directions, codes)


def _placement(name: str, codes: Sequence[Codes]) -> StagePlacement:
    code, rank = chain(*codes), np.repeat(np.arange(len(codes)), [len(each) for each in codes])
    held = np.unique(np.stack([direction_of(code), stage_of(code), rank], axis=1), axis=0)
    num_directions, num_stages = held[:, :2].max(axis=0) + 1
    twice = np.flatnonzero((held[1:, :2] == held[:-1, :2]).all(axis=1))
    if len(twice):
        raise InputError(
            "stage {stage} of {name} is on ranks {one} and {two}; a stage is on one rank",
            stage=held[twice[0], 1],
            name=name,
            one=held[twice[0], 2],
            two=held[twice[0] + 1, 2],
        )
    rank_of = np.full((num_directions, num_stages), -1)
    rank_of[held[:, 0], held[:, 1]] = held[:, 2]
    # The first gap is told: of stages 0 and 2 it is stage 1.
    for _, stage in np.argwhere(rank_of < 0):
        raise InputError(
            "stage {stage} of {name} is on no rank; its stages are 0 to {last}, each on one",
            stage=stage,
            name=name,
            last=num_stages - 1,
        )
    return StagePlacement(rank_of)
