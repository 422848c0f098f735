"""The plan of a step is read back as it was written, and a damaged one is refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.plan.step_plan import PLAN_FILE, read_step_plan, write_step_plan
from tests.trace.planned_run import PLAN


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_step_plan(tmp_path, PLAN)
    assert read_step_plan(tmp_path) == PLAN
    assert [each.name for each in tmp_path.iterdir()] == [PLAN_FILE]


def _with(**other: object) -> str:
    return json.dumps(PLAN.document() | other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 9999,
        _with(schema="serried.planned-step/2"),
        _with(zero=4),
        _with(groups=[]),
        _with(groups={"shard": [[0, -1]]}),
        _with(groups={"shard": [[0]], "replicate": [[0], [1]]}),
        _with(groups={}),
        _with(stages=[{"ranks": [0]}]),
        _with(stages=None),
        json.dumps(PLAN.document()).replace("13440", "1e9"),
        json.dumps(PLAN.document()).replace("all-gather", "barrier"),
    ],
)
def test_what_holds_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PLAN_FILE).write_text(text)
    with pytest.raises(InputError, match=r"planned-step.json is damaged, or of a newer serried"):
        read_step_plan(tmp_path)
