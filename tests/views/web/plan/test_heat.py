"""A plan's figures of ranks for the map: those of its own document, rank by rank."""

from __future__ import annotations

import numpy as np
import pytest

from serried.errors import InputError
from serried.plan.job_plan import job_plan
from serried.views.web.plan.heat import FIGURES, plan_heat_payload
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.payload import unpack
from serried.views.web.wire.query import read_query

WORDS = {
    "world_size": ["16"],
    "tp": ["2"],
    "pp": ["4"],
    "model": ["llama3-8b"],
    "cluster": ["h100"],
    "sequence": ["8192"],
    "global_batch": ["64"],
}
QUERY = read_query(WORDS)


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_a_value_for_every_rank_and_a_scale_from_0(figure: str) -> None:
    header, columns = unpack(plan_heat_payload(QUERY, WORDS | {"figure": [figure]}))
    assert len(columns["value"]) == 16
    assert header["scales"][header["scale"]]["low"] == 0


def test_memory_is_that_of_the_rank_s_place_in_the_pipeline() -> None:
    _, columns = unpack(plan_heat_payload(QUERY, WORDS | {"figure": ["memory"]}))
    made = job_plan(read_plan_request(QUERY, WORDS))
    totals = [each.total for each in made.memory.of_ranks]
    assert columns["value"].tolist() == [totals[rank // 4] for rank in range(16)]


def test_what_is_sent_to_other_nodes_is_a_part_of_what_is_sent() -> None:
    sent, across = (
        unpack(plan_heat_payload(QUERY, WORDS | {"figure": [name]}))[1]["value"].tolist()
        for name in ("sent", "sent_across")
    )
    assert all(part <= whole for part, whole in zip(across, sent, strict=True))
    # Only the middle of the pipeline crosses from node 0 to node 1.
    assert np.flatnonzero(across).tolist() == [4, 5, 6, 7]


def test_a_figure_that_a_plan_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="'speed' is no figure of a plan"):
        plan_heat_payload(QUERY, WORDS | {"figure": ["speed"]})
