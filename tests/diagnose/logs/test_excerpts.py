"""Excerpts of real logs: the class, the culprit where the log tells it, nobody elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document

EXCERPTS = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "excerpts"
UNTELLABLE = {"V04", "V05", "V06", "V30"}
"""Their class stands in the thread and not in the excerpt."""


def cases() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((EXCERPTS / "cases.json").read_text("utf-8"))
    return rows


def told(case: dict[str, Any], lang: str = "en") -> dict[str, Any]:
    return diagnosis_document(diagnosed(gather([EXCERPTS / case["file"]])), lang)


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["id"]))
def test_an_excerpt_is_read_as_its_thread_established(case: dict[str, Any]) -> None:
    answer = told(case)
    if case["id"] not in UNTELLABLE:
        assert answer["class"] == case["class"]
    assert (answer["ranks"] or None) == (case["culprit_ranks"] or None)


def test_a_verdict_is_short_and_said_in_both_languages() -> None:
    for case in cases():
        english, chinese = told(case)["verdict"], told(case, "zh")["verdict"]
        assert len(english) <= 300, case["id"]
        assert english != chinese, case["id"]
