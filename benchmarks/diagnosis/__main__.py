"""How well ``serried diagnose`` reads real logs, beside torchrun's own word on them.

    python -m benchmarks.diagnosis FOLDER ...                 the figures, and what is wrong
    python -m benchmarks.diagnosis FOLDER ... --format json   every answer

A folder holds excerpts and ``cases.json`` with the truth of each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.cases import Case, read_cases
from benchmarks.diagnosis.score import Score, field_hits, scored
from benchmarks.diagnosis.torchrun_word import torchrun_word
from benchmarks.diagnosis.weights import class_weights
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document

TAXONOMY = Path(__file__).parents[1] / "data" / "fault_taxonomy.csv"


def main() -> None:
    """Prints the score of the folders that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    asked = parser.parse_args()
    cases = [case for folder in asked.folders for case in read_cases(folder)]
    answers = [answer(case) for case in cases]
    weights = class_weights(TAXONOMY)
    if asked.format == "json":
        print(json.dumps(_document(cases, answers, weights), ensure_ascii=False, indent=1))
        return
    words = [torchrun_word(case.file.read_text("utf-8", "replace")) for case in cases]
    print(f"{len(cases)} excerpts of real logs{'':17}   serried   torchrun's word")
    for title, ours, theirs in _rows(
        scored(cases, answers, weights), scored(cases, words, weights)
    ):
        print(f"{title:<45}{ours:>12}{theirs:>18}")
    for case, each in zip(cases, answers, strict=True):
        for wrong in _wrong(case, each):
            print(f"  {case.name}: {wrong}")


def answer(case: Case) -> dict[str, Any]:
    """Returns what serried says of one excerpt."""
    return diagnosis_document(diagnosed(gather([case.file])))


def _rows(ours: Score, theirs: Score) -> list[tuple[str, str, str]]:
    return [
        (
            "class right, weighted by how often it happens",
            f"{ours.weighted:.1%}",
            f"{theirs.weighted:.1%}",
        ),
        ("class right", _of(ours.cause_class), _of(theirs.cause_class)),
        ("culprit right, where the log tells it", _of(ours.culprit), _of(theirs.culprit)),
        ("a rank accused, where the log tells none", _of(ours.accused), _of(theirs.accused)),
        ("figures of the collective read right", _of(ours.fields), _of(theirs.fields)),
    ]


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}"


def _wrong(case: Case, told: dict[str, Any]) -> list[str]:
    found = []
    if told["class"] != case.cause_class:
        found.append(f"class {told['class']} for {case.cause_class} ({case.kind})")
    ranks = tuple(sorted(told["ranks"] or ())) or None
    if ranks != (case.culprits or None):
        found.append(f"ranks {ranks} for {case.culprits}")
    for name, is_right in field_hits(case, told).items():
        if not is_right:
            ours = (told["collective"] or {}).get("group" if name == "pg" else name)
            found.append(f"{name} {ours} for {case.collective[name]}")
    return found


def _document(
    cases: Sequence[Case], answers: Sequence[dict[str, Any]], weights: dict[str, float]
) -> dict[str, Any]:
    score = scored(cases, answers, weights)
    return {
        "schema": "serried.benchmark.diagnosis/1",
        "score": {**vars(score)},
        "weights": weights,
        "answers": [
            {"case": case.name, "wrong": _wrong(case, each), **each}
            for case, each in zip(cases, answers, strict=True)
        ],
    }


if __name__ == "__main__":
    main()
