"""StragglerAnalysis tables: Megatron operations of a production job, read and replayed.

    optype            stage  dp_rank  step  seq_id  mc  start_ts  duration
    forward-compute       0        0     7       3   0    0.0455    0.0603     seconds

A row is one operation of one rank; ``rules`` says what it comes after and meets.

Source: ByteDance-Seed/StragglerAnalysis 8efcd7f, readme.md and data/*.parquet (the columns),
Apache-2.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.errors import EnvironmentProblem, InputError, listed
from serried.trace.formats.straggler.rules import (
    BACKWARD,
    CLIP,
    EMBEDDING,
    FORWARD,
    GATHER,
    LAYERNORM,
    OPTIMIZER,
    P2P,
    SCATTER,
    SEPARATE,
    Key,
    Operation,
    rules_of,
)
from serried.trace.model.admission import require_within
from serried.trace.model.replay import Replay, SyncGroup
from serried.trace.store.table import read_table

COLUMNS = ("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mc")
"""The columns that are read, besides ``gmc`` and ``mb_id``; times are seconds."""

_MESSAGES = frozenset({*P2P, GATHER, SCATTER, SEPARATE, LAYERNORM, EMBEDDING, CLIP})
_OVER_REPLICAS = frozenset({GATHER, SCATTER, SEPARATE, CLIP})
_WRONG_S = -1e-2
"""A transfer that ends this long before its last start is a clock error and counts as none."""

_TIMES = ("start_ts", "duration")
# The year 2096 in seconds since 1970; in nanoseconds it still fits 64 bits.
_LATEST_S = 4e9
_LEAST = {"dp_rank": 0, "stage": 0, "rank": 0, "step": 0, "seq_id": 0}
_BEYOND = 2**31
_OFTEN_ABSENT = frozenset({"mc", "mb_id", "gmc"})
"""Columns that only computations have a number in; others hold -1, or nothing."""

Table = Mapping[str, NDArray[Any]]


def is_straggler_table(path: Path) -> bool:
    """Tells whether ``path`` is a Parquet file with the columns of a StragglerAnalysis table."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return False
    if not path.is_file():
        return False  # a pipe of that name would wait for its writer
    try:
        return {*COLUMNS} <= {*parquet.read_schema(path).names}
    except (ArrowException, OSError):
        return False


def read_straggler_table(path: Path) -> Table:
    """Returns the columns of a StragglerAnalysis Parquet file.

    Raises EnvironmentProblem without a reader of Parquet, InputError for another file.
    """
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        raise EnvironmentProblem(
            "reading Parquet needs pyarrow; pip install 'serried[trace]' brings it"
        ) from error
    try:
        table = read_table(path)
    except (ArrowException, OSError) as error:
        raise InputError("{path} is not a Parquet file that can be read", path=path) from error
    wanted = (*COLUMNS, "mb_id", "gmc")
    if missing := [name for name in wanted if name not in table.column_names]:
        raise InputError(
            "{path} lacks the columns {missing}; a StragglerAnalysis table has {wanted}",
            path=path,
            missing=listed(missing),
            wanted=listed(wanted),
        )
    return _sound(path, {name: table[name].to_numpy() for name in wanted})


def _sound(path: Path, table: Table) -> Table:
    """Returns ``table`` with whole numbers as int64 and times as float64.

    Raises InputError for a value that is neither, and for a table without rows.
    """
    if not len(table["step"]):
        raise InputError("{path} holds no row", path=path)
    columns: dict[str, NDArray[Any]] = {}
    for name, values in table.items():
        if name == "optype":
            fits = np.array([isinstance(each, str) for each in values.tolist()])
        elif values.dtype.kind not in "iuf":
            fits = np.zeros(len(values), dtype=bool)
        elif name in _TIMES:
            fits = np.abs(values) < _LATEST_S  # false for what is no number
            fits &= (values > _WRONG_S) | (name == "start_ts")
        else:
            if name in _OFTEN_ABSENT and values.dtype.kind == "f":
                values = np.where(np.isnan(values), -1, values)
            fits = (values >= _LEAST.get(name, -1)) & (values < _BEYOND)
            fits[fits] &= values[fits] % 1 == 0
        if not fits.all():
            raise InputError(
                "column {column} of {path} holds {value}, which does not belong there",
                column=name,
                path=path,
                value=values[int(np.argmin(fits))],
            )
        kind = None if name == "optype" else np.float64 if name in _TIMES else np.int64
        columns[name] = values if kind is None else values.astype(kind)
    return columns


def replay_of(table: Table) -> Replay:
    """Returns the operations of ``table`` with the rules of their streams.

    Steps in which some replica lacks an operation of the first step are left out. Raises
    InputError where none is left, and where the first step lacks a stage's computations.
    """
    rows = _first_replica(table)
    _require_replayable(table, rows)
    after, meetings = rules_of(rows, uses_dp=_uses_dp(table))
    place = {row.key: at for at, row in enumerate(rows)}
    starts, ends, steps, ranks = _lanes(table, place)
    return Replay(
        types=tuple(row.type for row in rows),
        stages=np.array([row.stage for row in rows]),
        is_message=np.array([row.type in _MESSAGES for row in rows]),
        after=tuple(tuple(place[each] for each in after[row.key]) for row in rows),
        meetings=tuple(
            SyncGroup(
                tuple(place[each] for each in keys),
                # All replicas have the number 0, so they meet; None keeps each to itself.
                (0,) * starts.shape[2] if keys[0][0] in _OVER_REPLICAS else None,
            )
            for keys in meetings
        ),
        seconds=_seconds(starts, ends, meetings, place),
        steps=steps,
        ranks=ranks,
        final=frozenset(place[row.key] for row in rows if row.type == OPTIMIZER),
    )


# ----------------------------------------------------------------------- the table's lanes


def _first_replica(table: Table) -> list[Operation]:
    """Returns the operations of replica 0 in the first step, by stage and start."""
    mine = (table["dp_rank"] == 0) & (table["step"] == table["step"].min())
    names = ("optype", "seq_id", "stage", "start_ts", "duration", "mc", "gmc")
    columns = zip(*(table[name][mine].tolist() for name in names), strict=True)
    rows = [Operation(t, q, s, at, at + d, c, g) for t, q, s, at, d, c, g in columns]
    return sorted(rows, key=lambda row: (row.stage, row.start, row.seq, row.type))


def _require_replayable(table: Table, rows: Sequence[Operation]) -> None:
    """Raises InputError for a first step in which an operation is lacking, twice or of no time."""
    # Arrays of every stage and replica follow: one damaged number would fill the memory.
    num_stages, num_replicas = (1 + int(table[name].max()) for name in ("stage", "dp_rank"))
    if num_stages * num_replicas > len(table["step"]):
        raise InputError(
            "the table's {stages} stages of {replicas} replicas are more ranks than it has rows, "
            "{rows}; a number in it is damaged",
            stages=num_stages,
            replicas=num_replicas,
            rows=len(table["step"]),
        )
    keys = Counter(row.key for row in rows)
    twice = next((key for key, times in keys.items() if times > 1), None)
    if twice is not None:
        raise InputError(
            "{type} {number} of stage {stage} stands twice in the first step; a table with each "
            "operation once can be replayed",
            type=twice[0],
            number=twice[1],
            stage=twice[2],
        )
    numbers_of: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        numbers_of.setdefault((row.stage, row.type), []).append(row.seq)
    for stage in range(num_stages):
        for type_ in (FORWARD, BACKWARD):
            numbers = numbers_of.get((stage, type_), [])
            if not numbers or sorted(numbers) != list(range(len(numbers))):
                raise InputError(
                    "stage {stage} has no {type} numbered from 0 in the first step of replica 0; "
                    "a table with forwards and backwards on every stage can be replayed",
                    stage=stage,
                    type=type_,
                )


def _uses_dp(table: Table) -> bool:
    return bool(table["dp_rank"].max() > 0 or np.isin(table["optype"], (GATHER, SCATTER)).any())


def _lanes(
    table: Table, place: Mapping[Key, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...], NDArray[np.int64]]:
    """Returns starts and ends by (operation, step, replica), the steps, and the ranks."""
    replica, stage = table["dp_rank"].astype(int), table["stage"].astype(int)
    names = zip(table["optype"].tolist(), table["seq_id"].tolist(), stage.tolist(), strict=True)
    row = np.array([place.get(name, -1) for name in names])
    # Steps that have too few rows lack some: room for them could be the cube of the table's.
    every, of = np.unique(table["step"], return_inverse=True)
    is_full = np.bincount(of[row >= 0], minlength=len(every)) >= len(place) * (replica.max() + 1)
    steps = every[is_full]
    step = np.where(is_full, np.cumsum(is_full) - 1, -1)[of]
    starts = np.full((len(place), len(steps), replica.max() + 1), np.nan)
    ends = starts.copy()
    known = (row >= 0) & (step >= 0)
    at = (row[known], step[known], replica[known])
    starts[at] = table["start_ts"][known].astype(float)
    ends[at] = starts[at] + table["duration"][known].astype(float)
    whole = ~np.isnan(starts).any(axis=(0, 2))
    computes = [at for (type_, *_), at in place.items() if type_ in (FORWARD, BACKWARD)]
    if not (ends[computes][:, whole] > starts[computes][:, whole]).any():
        raise InputError(
            "no step of the table has every operation of its first step on every replica, with "
            "computations that take time; none can be replayed"
        )
    return starts[:, whole], ends[:, whole], tuple(steps[whole].tolist()), _ranks_of(table)


def _ranks_of(table: Table) -> NDArray[np.int64]:
    """Returns the rank of each (stage, replica).

    Raises InputError where one place has two ranks, or one rank two places.
    """
    stage, replica, rank = (table[name].astype(int) for name in ("stage", "dp_rank", "rank"))
    require_within("rank", float(rank.max()))
    ranks = np.full((stage.max() + 1, replica.max() + 1), -1, dtype=np.int64)
    # Of several rows of a place the last one's rank stays, and shows those that have another.
    ranks[stage, replica] = rank
    wrong = ranks[stage, replica] != rank
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "stage {stage} of replica {replica} is rank {rank} in one row and rank {other} in "
            "another; a table gives each place one rank",
            stage=int(stage[row]),
            replica=int(replica[row]),
            rank=int(rank[row]),
            other=int(ranks[stage[row], replica[row]]),
        )
    numbers, times = np.unique(ranks, return_counts=True)
    if (times > 1).any():
        raise InputError(
            "rank {rank} stands for {count} places of stage and replica; a table gives each place "
            "a rank of its own",
            rank=int(numbers[np.argmax(times)]),
            count=int(times.max()),
        )
    return ranks


def _seconds(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    meetings: Iterable[Sequence[Key]],
    place: Mapping[Key, int],
) -> NDArray[np.float64]:
    """Returns each operation's own time: what came after the last start, where it meets others."""
    seconds = ends - starts
    for keys in meetings:
        rows = [place[key] for key in keys]
        last = starts[rows].max(axis=0)
        if keys[0][0] in _OVER_REPLICAS:
            last = np.broadcast_to(last.max(axis=1, keepdims=True), last.shape)
        transfer = ends[rows] - last
        seconds[rows] = np.where(transfer <= _WRONG_S, 0, transfer)
    return seconds
