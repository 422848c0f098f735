"""What carries a log changes no answer: times, hosts, containers, quoting, colours, numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from serried.diagnose.causes.logs.order import log_causes
from serried.diagnose.evidence.log_file import LogFile
from serried.diagnose.evidence.text.reader import text_signs

EXCERPTS = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "excerpts"


def told(path: Path) -> object:
    causes = log_causes(list(text_signs(LogFile(path, path.name).lines())))
    first = next(causes, None)
    return first and (first.kind, first.ranks, first.collective)


@pytest.mark.parametrize(
    "carry",
    [
        lambda n, line: f"2026-04-22T21:34:20.123456789Z {line}",
        lambda n, line: f"[pod/train-worker-0/pytorch] {line}",
        lambda n, line: json.dumps({"log": line + "\n", "stream": "stderr"}),
        lambda n, line: f"> {line}",
        lambda n, line: f"worker-1  | {line}",
        lambda n, line: f"Apr 29 19:24:11 node-7 train[123]: {line}",
        lambda n, line: f"\x1b[36m{line}\x1b[0m",
        lambda n, line: f"{n}\t{line}",
        lambda n, line: f"node-1: {line}",
        lambda n, line: line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
    ],
)
def test_an_answer_is_the_same_behind_any_carrier(
    tmp_path: Path, carry: Callable[[int, str], str]
) -> None:
    for path in sorted(EXCERPTS.glob("*.log")):
        rows = path.read_text("utf-8").splitlines()
        carried = tmp_path / "job.log"
        carried.write_text("\n".join(carry(n, row) for n, row in enumerate(rows, 1)) + "\n")
        assert told(carried) == told(path), path.name
