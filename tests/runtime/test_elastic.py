"""A rank killed under torchrun: all start again, and go on from the last commit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from serried.runtime.checkpoint.checkpoint import describe, find
from serried.runtime.job.settings import CheckpointSettings, TrainSettings
from serried.runtime.run.launch import as_restarted

COMMAND = "from serried.views.cli.main import main; main()"
PATIENCE_S = 240


def ranks_of(agent: int) -> list[int]:
    """Returns the processes that a torchrun agent has started."""
    threads = Path(f"/proc/{agent}/task").glob("*/children")
    return sorted(int(pid) for thread in threads for pid in thread.read_text().split())


def test_a_rank_that_starts_again_resumes_and_records_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    settings = TrainSettings(
        world_size=2, trace_dir=Path("trace"), checkpoints=CheckpointSettings(Path("runs"))
    )
    assert as_restarted(settings) == settings
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    again = as_restarted(settings)
    assert again.checkpoints == CheckpointSettings(Path("runs"), resume=True)
    assert again.trace_dir == Path("trace/restart-2")
    assert as_restarted(TrainSettings(world_size=2)) == TrainSettings(world_size=2)


@pytest.mark.soak
def test_a_killed_rank_starts_again_from_the_last_commit(tmp_path: Path) -> None:
    log, runs = tmp_path / "log.jsonl", tmp_path / "runs"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    launcher += ["--nproc-per-node", "2", "--max-restarts", "1", sys.executable, "-c", COMMAND]
    words = ["train", "--steps", "60", "--layers", "1", "--device", "cpu", "--timeout", "60"]
    words += ["--save-dir", str(runs), "--save-every", "5", "--keep", "3", "--log-file", str(log)]
    told, has_killed = [], False
    with subprocess.Popen([*launcher, *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            for line in process.stderr:
                told.append(line)
                if not has_killed and line.startswith("saved") and "step-000010" in line:
                    os.kill(ranks_of(process.pid)[-1], signal.SIGKILL)
                    has_killed = True
            assert process.wait(PATIENCE_S) == 0, "".join(told)
        finally:
            process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (resumed,) = (line for line in lines if line.get("event") == "resumed")
    assert 10 <= resumed["step"] < 60
    assert [line["step"] for line in lines if "event" not in line] == list(range(60))
    assert describe(find(runs)).step == 60
