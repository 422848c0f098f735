"""A StragglerAnalysis table as a Trace: its computations, messages and steps as spans.

A table's ranks are (stage, replica) pairs, laid out as Megatron lays out pp and dp. They keep the
table's numbers where others stand between them, as where one of every tensor parallel group was
profiled. Its steps are samples, seconds or hours apart, each with a clock of its own: they stand
one after another here. Operations without an action (garbage collection, the small all-reduces
after the last backward) are left to the replay, which the Trace carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.trace.formats.foreign import foreign_trace, renumbered
from serried.trace.formats.straggler.rules import BACKWARD, FORWARD, GATHER, OPTIMIZER, P2P, SCATTER
from serried.trace.formats.straggler.table import read_straggler_table, replay_of
from serried.trace.model.admission import require_within
from serried.trace.model.laid_out import laid_out
from serried.trace.model.trace import Trace

_KINDS = {
    FORWARD: ActionKind.F,
    BACKWARD: ActionKind.B,
    "forward-send": ActionKind.SEND_F,
    "forward-recv": ActionKind.RECV_F,
    "backward-send": ActionKind.SEND_B,
    "backward-recv": ActionKind.RECV_B,
    GATHER: ActionKind.UNSHARD,
    SCATTER: ActionKind.REDUCE_GRAD,
    OPTIMIZER: ActionKind.OPTIMIZER,
}
_PEER = {"forward-send": 1, "forward-recv": -1, "backward-send": -1, "backward-recv": 1}
_BETWEEN_STEPS_S = 1e-3

Column = NDArray[np.int64]


def straggler_trace(path: Path) -> Trace:
    """Returns the Trace of a StragglerAnalysis Parquet file, its replay with it.

    Raises InputError for a file that is not one, EnvironmentProblem without pyarrow.
    """
    table = read_straggler_table(path)
    replay = replay_of(table)
    ranks = replay.ranks
    num_stages, num_replicas = ranks.shape
    plain = laid_out("megatron", ranks.size, {"pp": num_stages, "dp": num_replicas})
    layout = renumbered(plain, ranks.ravel().tolist())
    machines = {path.stem: ranks.ravel().tolist()}
    return foreign_trace(path.stem, layout, machines, _spans(table, ranks), replay=replay)


def _spans(table: Mapping[str, NDArray[Any]], ranks: Column) -> Spans:
    num_stages = len(ranks)
    types = table["optype"].tolist()
    kept = np.array([type_ in _KINDS for type_ in types])
    columns = {name: column[kept] for name, column in table.items()}
    types = columns["optype"].tolist()
    stage, replica = columns["stage"].astype(int), columns["dp_rank"].astype(int)
    towards = np.array([_PEER.get(type_, 0) for type_ in types])
    of_stage, microbatch = _places(table, columns, num_stages)
    start_s = columns["start_ts"].astype(float) + _offsets(table, columns["step"])
    require_within("start_ns", float(np.abs(start_s).max(initial=0)) * 1e9)
    start_ns = np.rint(start_s * 1e9).astype(np.int64)
    # A clock error of some milliseconds can make an operation end before it began.
    length_s = np.maximum(columns["duration"].astype(float), 0)
    # Rounded as the start of what follows is, so that neighbours do not overlap by a nanosecond.
    end_ns = np.rint((start_s + length_s) * 1e9).astype(np.int64)
    peer = ranks[(stage + towards) % num_stages, replica]
    return Spans(
        rank=ranks[stage, replica].astype(np.int32),
        stage=of_stage.astype(np.int32),
        kind=np.array([_KINDS[type_] for type_ in types], dtype=np.int32),
        microbatch=microbatch.astype(np.int32),
        step=columns["step"].astype(np.int32),
        peer=np.where(towards != 0, peer, -1).astype(np.int32),
        start_ns=start_ns,
        end_ns=end_ns,
    )


def _places(
    table: Mapping[str, NDArray[Any]], columns: Mapping[str, NDArray[Any]], num_stages: int
) -> tuple[Column, Column]:
    """Returns the virtual stage and microbatch of each row: a message's are its computation's."""
    # A message is found by its computation: forward-send 7 of a stage carries forward-compute 7.
    of_compute = {
        (type_, stage, seq): (int(chunk) * num_stages + stage, int(microbatch))
        for type_, stage, seq, chunk, microbatch in zip(
            *(table[name].tolist() for name in ("optype", "stage", "seq_id", "mc", "mb_id")),
            strict=True,
        )
        if type_ in (FORWARD, BACKWARD)
    }
    places = []
    for type_, stage, seq, chunk in zip(
        *(columns[name].tolist() for name in ("optype", "stage", "seq_id", "mc")), strict=True
    ):
        if type_ == OPTIMIZER:
            places.append((-1, -1))
        elif type_ in (GATHER, SCATTER):
            places.append((max(int(chunk), 0) * num_stages + stage, -1))
        else:
            computed = f"{type_.split('-')[0]}-compute" if type_ in P2P else type_
            places.append(of_compute.get((computed, stage, seq), (stage, -1)))
    stages, microbatches = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return stages, microbatches


def _offsets(table: Mapping[str, NDArray[Any]], step: NDArray[Any]) -> NDArray[np.float64]:
    """Returns for each row when its step begins, one step after another."""
    steps, of = np.unique(table["step"], return_inverse=True)
    firsts, ends = np.full(len(steps), np.inf), np.full(len(steps), -np.inf)
    np.minimum.at(firsts, of, table["start_ts"])
    np.maximum.at(ends, of, table["start_ts"] + table["duration"])
    begins = np.concatenate([[0], np.cumsum(ends - firsts + _BETWEEN_STEPS_S)[:-1]])
    return np.asarray((begins - firsts)[np.searchsorted(steps, step)])
