"""``serried train`` tells the planned memory with --explain, and the measured one of GPUs."""

from __future__ import annotations

import pytest

from serried.runtime.job.report import (
    MemoryPeaks,
    Progress,
    RankReport,
    Started,
    StepDone,
    TrainResult,
)
from serried.runtime.job.settings import TrainSettings
from serried.runtime.run import launch
from tests.conftest import Call

TINY = ["--layers", "2", "--hidden", "32", "--heads", "4", "--seq-len", "16"]


@pytest.fixture(autouse=True)
def outside_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a run end at once as if two GPUs had trained one step."""

    def ran(settings: TrainSettings, on_progress: Progress) -> TrainResult:
        ranks = tuple(
            RankReport(
                rank=rank,
                pid=rank,
                device=f"cuda:{rank}",
                coordinates={"pp": rank, "dp": 0, "tp": 0},
                groups={"pp": (0, 1), "dp": (rank,), "tp": (rank,)},
                modules=(f"layers.{rank}",),
                parameter_bytes=86_272,
                reads_data=True,
            )
            for rank in range(2)
        )
        measured = MemoryPeaks(1, (700_000, 900_000))
        for event in (Started("run", ranks), step := StepDone(0, 5.5, 12.0), measured):
            on_progress(event)
        return TrainResult("run", ranks, (step,), measured)

    monkeypatch.setattr(launch, "train", ran)


@pytest.mark.usefixtures("gpus")
def test_what_gpus_held_is_told_beside_what_was_planned_for_gpus(serried: Call) -> None:
    words = ("train", "--pp", "2", "--steps", "1", *TINY)
    told = serried(*words, "--explain").out.splitlines()
    rows = [" ".join(line.split()) for line in told if "computing" in line]
    assert [row.rsplit(" ", 5)[0] for row in rows] == [
        "0 0 84.2 KiB 84.2 KiB 168 KiB",
        "1 1 84.4 KiB 84.4 KiB 169 KiB",
    ]
    fullest = rows[1].removesuffix(" computing").rsplit(" ", 2)
    assert told[-1] == f"peak memory 879 KiB, of rank 1; planned {' '.join(fullest[1:])}"
    assert serried(*words).out.splitlines()[-1] == told[-1]


@pytest.mark.usefixtures("gpus")
def test_without_a_plan_what_gpus_held_is_told_alone(serried: Call) -> None:
    done = serried("train", "--pp", "2", "--steps", "1", *TINY, "--experts", "2", "--explain")
    assert "memory is not planned here: how much an expert keeps" in done.out
    assert done.out.splitlines()[-1] == "peak memory 879 KiB, of rank 1"


def test_on_cpus_the_plan_is_told_and_nothing_is_measured(serried: Call) -> None:
    done = serried("train", "--steps", "1", *TINY, "--device", "cpu", "--explain")
    assert "activations" in done.out
    assert "peak memory" not in done.out
