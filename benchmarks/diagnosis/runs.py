"""How often the root of a real hang is named: by serried, by torchfrtrace, and by torchrun.

    python -m benchmarks.diagnosis.runs FOLDER                 a line for each run, then the score
    python -m benchmarks.diagnosis.runs FOLDER --format json   every answer

A folder holds a folder for each run (console, dumps, stacks, the job's groups) and ``cases.json``
with the truth of each: ``root_ranks`` and, where its kind has one, ``class``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.frtrace import frtrace_words
from benchmarks.diagnosis.torchrun_word import torchrun_word
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document

DUMPS, CONSOLE = "fr", "console.log"


@dataclass(frozen=True)
class Run:
    """Holds a real run, its truth, and what each tool names; None where a tool names nobody."""

    name: str
    roots: tuple[int, ...]
    cause_class: str | None
    answer: Mapping[str, Any]
    torchfrtrace: tuple[int, ...] | None
    torchfrtrace_word: str
    torchrun: tuple[int, ...] | None

    @property
    def ours(self) -> tuple[int, ...]:
        """The ranks that serried names."""
        return tuple(self.answer["ranks"] or ())

    @property
    def is_right(self) -> bool:
        """Whether serried names the root and nobody else, and its class where that is known."""
        is_class = self.cause_class is None or self.answer["class"] == self.cause_class
        return self.ours == self.roots and is_class

    @property
    def accused(self) -> bool:
        """Whether serried names a rank that is innocent."""
        return not set(self.ours) <= set(self.roots)


def read_runs(folder: Path) -> list[Run]:
    """Returns the runs of a folder with every tool's answer."""
    truth: dict[str, dict[str, Any]] = json.loads((folder / "cases.json").read_text("utf-8"))
    names = [name for name in truth if (folder / name).is_dir()]
    words = frtrace_words([folder / name / DUMPS for name in names])
    return [
        _run(folder / name, truth[name], *word) for name, word in zip(names, words, strict=True)
    ]


def _run(place: Path, truth: Mapping[str, Any], traced: tuple[int, ...] | None, word: str) -> Run:
    console = place / CONSOLE
    text = console.read_text("utf-8", "replace") if console.exists() else ""
    launcher = torchrun_word(text)["ranks"]
    return Run(
        place.name,
        tuple(truth["root_ranks"]),
        truth.get("class"),
        diagnosis_document(diagnosed(gather([place]))),
        traced,
        word,
        None if launcher is None else tuple(launcher),
    )


def main() -> None:
    """Prints the score of a folder of runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis.runs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    asked = parser.parse_args()
    runs = read_runs(asked.folder)
    if asked.format == "json":
        print(json.dumps({"runs": [asdict(run) for run in runs]}, ensure_ascii=False, indent=1))
        return
    print("\n".join(lines(runs)))


def lines(runs: Sequence[Run]) -> list[str]:
    """Returns a line for each run and the score of each tool."""
    faults = [run for run in runs if run.roots]
    count = len(faults)
    title = f"{len(runs)} real runs"
    rows = [f"{title:<22}{'root':>6}{'serried':>9}  {'torchrun':>8}  {'torchfrtrace':<28}kind"]
    for run in runs:
        mark = "" if run.is_right else "  wrong"
        rows.append(
            f"{run.name:<22}{_named(run.roots):>6}{_named(run.ours):>9}  "
            f"{_named(run.torchrun):>8}  {run.torchfrtrace_word[:26]:<28}"
            f"{run.answer['class']}: {run.answer['kind']}{mark}"
        )
    right = sum(run.is_right for run in faults)
    launcher = sum(run.torchrun == run.roots for run in faults)
    traced = sum(run.torchfrtrace == run.roots for run in faults)
    accused = sum(run.accused for run in runs)
    quiet = [run for run in runs if not run.roots]
    rows += [
        f"root named and class right: serried {right} of {count}, torchrun's first failure "
        f"{launcher} (ranks alone), torchfrtrace {traced}",
        f"an innocent rank named by serried: {accused} of {len(runs)}; no fault found in runs "
        f"without one: {sum(run.is_right for run in quiet)} of {len(quiet)}",
    ]
    return rows


def _named(ranks: Sequence[int] | None) -> str:
    return ",".join(map(str, ranks)) if ranks else "-"


if __name__ == "__main__":
    main()
