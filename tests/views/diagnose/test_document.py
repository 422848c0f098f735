import json
from pathlib import Path

import pytest

from serried.views.cli.main import run

LINE = (
    "[rank{rank}]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7753, OpType=ALLREDUCE, NumelIn=64, "
    "NumelOut=64, Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n"
)


def test_a_timeout_of_two_ranks_accuses_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.log").write_text(LINE.format(rank=0) + LINE.format(rank=3))
    assert run(["diagnose", str(tmp_path), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "serried.diagnosis/1"
    assert (told["class"], told["ranks"]) == ("hang", None)
    assert told["collective"]["seq"] == 7753
    assert told["ranks_heard"] == [0, 3]


def test_a_log_without_a_word_of_trouble_exits_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.log").write_text("step 1 loss 2.0\n")
    assert run(["diagnose", str(tmp_path), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["class"], told["ranks"]) == ("no_fault", [])
