"""How long the step of every layout of a search takes, by the planner's own ``plan.time.step``.

A schedule that splits backward fills part of the bubble: with forward, input and weight gradients
alike, what ``FILLED`` says is left of that of 1F1B (arXiv 2401.10241, table 2: ZB-H1 a third, ZB-V
nothing).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from serried.plan.rank_order import inner_axis
from serried.plan.request import PlanRequest
from serried.plan.search.space import DEGREES, Whole
from serried.plan.time.constants import Constants
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

Real = NDArray[np.float64]
FILLED: Mapping[str, float] = {"zb-h1": 1 / 3, "zb-h2": 0.0, "zbv": 0.0, "v-half": 1 / 2}
"""The part of 1F1B's bubble that a schedule leaves; 1 for the others."""


def times_of(
    asked: PlanRequest,
    rows: Mapping[str, Whole],
    constants: Constants | None = None,
    orders: tuple[str, ...] = (),
) -> tuple[Real, dict[str, Real]]:
    """Returns the seconds of each row's step, and its parts, which sum to it.

    ``orders`` are those that the rows' column of that name numbers.
    """
    count = len(rows["tp"])
    found = step_times(_jobs(asked, rows, orders), constants)
    step = np.broadcast_to(found.step, count).astype(np.float64)
    parts = {name: np.broadcast_to(each, count).copy() for name, each in found.parts.items()}
    left = FILLED.get(asked.schedule, 1.0)
    if left < 1.0:
        slower = step / np.maximum(step - parts["straggling"], 1e-12)
        spared = parts["bubble"] * (1.0 - left)
        parts["bubble"] = parts["bubble"] - spared
        parts["straggling"] = parts["straggling"] - spared * (slower - 1.0)
        step = step - spared * slower
    return step, parts


def _jobs(asked: PlanRequest, rows: Mapping[str, Whole], orders: tuple[str, ...]) -> Jobs:
    """Returns the rows as the columns that times follow from."""
    given = {name: rows[name].astype(np.float64) for name in DEGREES}
    # An order of none is -1, which is the last: nobody says which of the two is nearer.
    inner = np.array([*(inner_axis(each) for each in orders), ""])[rows["order"]]
    shared = given["cp"] * given["dp"]
    if asked.shard_ranks is not None:
        shared = np.minimum(shared, asked.shard_ranks)
    slowest, last = _loads(asked.model.layers, rows["pp"], rows["chunks"])
    return Jobs.of([asked]).varied(
        **given,
        is_dp_inner=(inner == "dp").astype(np.float64),
        is_pp_inner=(inner == "pp").astype(np.float64),
        shard_ranks=shared if asked.zero else np.ones_like(shared),
        is_sequence_parallel=(asked.has_sequence_parallel & (rows["tp"] > 1)).astype(np.float64),
        slowest_layers=slowest,
        last_layers=last,
    )


def _loads(layers: int, pp: Whole, chunks: Whole) -> tuple[Real, Real]:
    """Returns the layers of the fullest rank but the last, and of the last, as ``time.jobs``."""
    stages = pp * chunks
    counts_ends = (layers % stages != 0) & ((layers + 2) % stages == 0)
    whole = np.where(counts_ends, (layers + 2) // pp, -(-layers // pp))
    last = np.where(counts_ends, whole - 1, layers - whole * (pp - 1))
    alone = pp == 1
    slowest = np.where(alone, layers, whole)
    return slowest.astype(np.float64), np.where(alone, layers, last).astype(np.float64)
