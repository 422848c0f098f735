"""A step under ZeRO takes the job's own model, and its exchanges what the planner says."""

from __future__ import annotations

from typing import Any

import pytest

from serried.errors import InputError
from serried.plan.traffic.transfers import step_transfers
from serried.views.web.plan.query import read_plan_request
from serried.views.web.plan.sharding import sharding_answer
from serried.views.web.wire.query import read_query

JOB = {
    **{"world_size": ["64"], "tp": ["2"], "zero": ["3"], "framework": ["fsdp"]},
    **{"model": ["llama3-8b"], "cluster": ["dgx-h100"], "sequence": ["8192"]},
    **{"global_batch": ["64"], "priced": ["plan"]},
}
SHARDED = ("fsdp", "all_gather")


def answer(**changed: str) -> dict[str, Any]:
    words = JOB | {name: [text] for name, text in changed.items()}
    return sharding_answer(read_query(words), words, "en")


def test_a_planned_step_has_the_model_s_layers_and_the_batch_s_microbatches() -> None:
    planned = answer(parameters="1M", layers="3", microbatches="9")["planned"]
    assert planned["parameters"] == 8_030_261_248
    assert (planned["layers"], planned["microbatches"]) == (32, 2)


def test_exchanges_take_what_the_planner_says_of_as_many_bytes() -> None:
    found = answer()
    transfers = step_transfers(read_plan_request(read_query(JOB), JOB))
    gather = next(each for each in transfers if (each.kind, each.collective) == SHARDED)
    (event, *_), (seconds, *_) = found["step"]["events"], found["planned"]["event_s"]
    assert event["moved"]["ranks"] == gather.ranks
    per_byte = seconds / event["moved"]["size"]
    assert per_byte == pytest.approx(gather.seconds / gather.size_bytes, rel=0.05)
    moves = [each["moved"] is not None for each in found["step"]["events"]]
    assert [each is not None for each in found["planned"]["event_s"]] == moves


def test_without_a_plan_nothing_is_priced_and_a_plan_that_cannot_be_is_refused() -> None:
    assert answer(priced="", parameters="7.5B", microbatches="1")["planned"] is None
    with pytest.raises(InputError, match="no-such-model"):
        answer(model="no-such-model")
