"""``serried check`` on local ranks: its tables, its document, its busbw table, its refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.plan.busbw import read_busbw
from tests.conftest import Call
from tests.schemas.conform import conform

QUICK = ("--operations", "all_reduce", "--sizes", "1KiB", "--rounds", "4", "--iterations", "2")


def test_a_healthy_job_is_told_well_in_tables_and_exits_with_0(
    serried: Call, tmp_path: Path
) -> None:
    table = tmp_path / "busbw.json"
    answer = serried(
        *("check", "--nproc", "4", "--tp", "2", "--device", "cpu", *QUICK),
        *("--kind", "tp", "--busbw", str(table)),
    )
    assert answer.code == 0, answer.err
    assert "4 ranks have met (gloo, nodes: 1); " in answer.err
    assert "every group has the members of the layout, and nothing is slow" in answer.out
    rows = [line.split() for line in answer.out.splitlines()]
    assert ["tp", "2", "x", "2", "all_reduce", "1.02", "kB"] in [row[:7] for row in rows]
    assert "tp = mp" in answer.out
    (row,) = read_busbw(table).rows
    assert (row.operation, row.ranks, row.nodes, row.groups) == ("all_reduce", 2, 1, 2)


def test_a_launch_file_says_the_layout_and_json_holds_everything(
    serried: Call, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text(
        "torchrun --nproc_per_node 2 pretrain_gpt.py --tensor-model-parallel-size 2\n"
    )
    answer = serried(
        *("check", str(script), "--device", "cpu", *QUICK, "--kind", "tp", "--format", "json"),
        *("--lang", "zh"),
    )
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    conform(document, "serried.check/1")
    assert document["world_size"] == 2
    assert document["findings"] == []
    assert {entry["operation"] for entry in document["timings"]} == {"all_reduce"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--world-size", "16", "--tp", "2", "--nproc", "8"],
            "the layout is of 16 ranks and the job has 8; start 16 ranks, or give the sizes of 8",
        ),
        (["--tp", "2"], "the number of ranks is missing; give it, such as --world-size 16"),
        (["--nproc", "6", "--tp", "4"], "tp=4 does not divide 6 ranks; sizes that do: 1, 2, 3, 6"),
        (
            ["--nproc", "2", "--sizes", "big"],
            "--sizes takes sizes such as 4KiB,1MiB,16MiB; it got 'big'",
        ),
        (
            ["--nproc", "2", "-o", "check.csv"],
            "check.csv has no suffix that says what to write; those that do: .txt, .json",
        ),
    ],
)
def test_what_cannot_be_checked_is_refused_before_any_rank_starts(
    words: list[str], sentence: str, serried: Call
) -> None:
    answer = serried("check", *words)
    assert (answer.code, answer.err) == (2, f"serried: {sentence}\n")


def test_under_torchrun_another_number_of_ranks_is_refused(
    serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)
    answer = serried("check", "--nproc", "4")
    assert answer.code == 2
    assert "--nproc 4 differs from the 8 ranks that torchrun started" in answer.err
