"""Store replay: a run's operations, where its writer said more than spans hold, as Parquet.

    _replay.parquet    type     stage  is_message  seconds              a row per operation;
                       gc           0       false  [0.0, 0.0, …]        by step, then replica

What comes after what, what meets and the ranks stand in the file's own metadata, as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from serried.trace.model.replay import Replay, SyncGroup
from serried.trace.store.table import read_table

REPLAY = "_replay.parquet"
"""The file's name in a store; table engines pass over names that begin with an underscore."""

_KEY = b"serried.replay"


def write_replay(replay: Replay, folder: Path) -> None:
    """Writes ``replay`` into the store ``folder``; raises OSError when it cannot be written."""
    import pyarrow as pa
    from pyarrow import parquet

    order = {
        "steps": list(replay.steps),
        "ranks": replay.ranks.tolist(),
        "after": [list(each) for each in replay.after],
        "meetings": [[list(each.operations), each.across] for each in replay.meetings],
        "final": sorted(replay.final),
    }
    lanes = replay.seconds.reshape(len(replay), -1)
    table = pa.table(
        {
            "type": pa.array(replay.types, pa.string()),
            "stage": pa.array(replay.stages, pa.int64()),
            "is_message": pa.array(replay.is_message, pa.bool_()),
            "seconds": pa.FixedSizeListArray.from_arrays(
                pa.array(lanes.ravel(), pa.float64()), lanes.shape[1]
            ),
        }
    )
    written = table.replace_schema_metadata({_KEY: json.dumps(order).encode()})
    parquet.write_table(written, folder / REPLAY, compression="zstd")


def read_replay(folder: Path) -> Replay:
    """Reads the replay of a store back.

    Raises what Arrow, JSON and numpy do where the file is damaged, and ValueError.
    """
    table = read_table(folder / REPLAY)
    order = json.loads(table.schema.metadata[_KEY])
    ranks = np.array(order["ranks"], dtype=np.int64)
    shape = (table.num_rows, len(order["steps"]), ranks.shape[1])
    replay = Replay(
        types=tuple(table["type"].to_pylist()),
        stages=table["stage"].to_numpy(),
        is_message=table["is_message"].to_numpy(),
        after=tuple(tuple(each) for each in order["after"]),
        meetings=tuple(
            SyncGroup(tuple(operations), across if across is None else tuple(across))
            for operations, across in order["meetings"]
        ),
        seconds=table["seconds"].combine_chunks().flatten().to_numpy().reshape(shape),
        steps=tuple(order["steps"]),
        ranks=ranks,
        final=frozenset(order["final"]),
    )
    _require_sound(replay)
    return replay


def _require_sound(replay: Replay) -> None:
    """Raises ValueError for operations that are none of the replay's."""
    named: list[Any] = [each for before in replay.after for each in before]
    named += [each for meeting in replay.meetings for each in meeting.operations]
    named += replay.final
    count, (num_stages, num_replicas) = len(replay), replay.ranks.shape
    # These numbers are places in arrays, where one below 0 would count from the end. type(),
    # for isinstance takes `true` for an int.
    if len(replay.after) != count or not all(
        type(each) is int and 0 <= each < count for each in named
    ):
        raise ValueError("operations are missing")
    if not count or not replay.steps or not np.isfinite(replay.seconds).all():
        raise ValueError("operations hold no time")
    if not ((replay.stages >= 0) & (replay.stages < num_stages)).all():
        raise ValueError("stages are missing")
    if any(len(each.across or replay.ranks[0]) != num_replicas for each in replay.meetings):
        raise ValueError("replicas are missing")
