"""``serried plan --from``: what it prints of a recorded run, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call
from tests.trace.recorded_run import Run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Holds six steps of 1F1B on four stages: 33 ms of pipeline and 1 ms around it."""
    return str(Run(num_steps=6).write(tmp_path_factory.mktemp("runs") / "pp4"))


def test_a_recorded_step_is_timed_again_on_fewer_stages(serried: Call, recorded: str) -> None:
    told = serried("plan", "--from", recorded, "--pp", "2")
    assert told.code == 0
    # (8 + 2 - 1) microbatches of 2 + 4 ms, and 1 ms around them.
    assert told.out.startswith("step 34.0 ms as recorded, 55.0 ms as asked")
    assert "what changes most is computation, 24.0 ms to 48.0 ms" in " ".join(told.out.split())
    assert "asked: tp 1 pp 2 dp 1, 1f1b (stages on each rank: 1), 1 x 8 microbatches" in told.out
    assert "assumed: the run does not say its layers" in told.out


def test_the_command_that_checks_an_emulated_step_is_printed(serried: Call, recorded: str) -> None:
    told = serried(
        "plan",
        "--from",
        recorded,
        "--pp",
        "2",
        "--schedule",
        "zbv",
        "--dp",
        "2",
        *("--microbatches", "4"),
    )
    (command,) = (line for line in told.out.splitlines() if line.startswith("  serried train"))
    _, *words = command.split()
    assert "--nproc 4 --tp 1 --pp 2 --schedule zbv --chunks 2" in command
    assert "--forward-ms 1.000 --backward-ms 2.000" in command
    assert serried(*words, "--emit", "torchrun", "--gpus-per-node", "4").code == 0


def test_real_compute_has_no_such_command(serried: Call, tmp_path: Path) -> None:
    folder = str(Run(num_steps=6, compute="real").write(tmp_path))
    assert "serried train" not in serried("plan", "--from", folder, "--pp", "2").out


def test_another_gpu_and_network_change_the_step(serried: Call, recorded: str) -> None:
    fast = ("--compute-speed", "2", "--hop", "1000", "--format", "json")
    told = json.loads(serried("plan", "--from", recorded, *fast).out)
    # 11 slots of 1.5 ms, 6 hops of 1 ms that nothing hides, and more where 1F1B waits for them.
    assert 0.0165 + 0.006 < told["step_s"] < 0.034
    assert (told["compute_speed"], told["hop_s"]) == (2.0, 0.001)
    assert told["stage_ms"]["forward"] == pytest.approx(0.5)


def test_the_plan_is_written_for_a_later_comparison(
    serried: Call, recorded: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    assert serried("plan", "--from", recorded, "--from", recorded, "-o", str(file)).code == 0
    assert json.loads(file.read_text())["schema"] == "serried.retimed-step/1"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "llama3-8b"), "--model says a job of a model on a cluster, and --from takes"),
        (("train.sh",), "train.sh says a job of a model on a cluster"),
        (("--pp", "3", "--microbatches", "5"), "do not divide the run's global batch of 8"),
        (("--schedule", "zbw"), "zbw"),
        (("--hop", "-1"), "a message of -1.0 us cannot be"),
        (("--format", "svg"), "this answer has no svg form; it has table, json"),
    ],
)
def test_what_does_not_go_with_a_run_is_refused_in_a_sentence(
    words: tuple[str, ...], sentence: str, serried: Call, recorded: str
) -> None:
    told = serried("plan", "--from", recorded, *words)
    assert (told.code, told.out) == (2, "")
    assert sentence in told.err


def test_what_changes_a_run_needs_one(serried: Call) -> None:
    told = serried("plan", "--microbatches", "8", "--model", "llama3-8b")
    assert told.code == 2
    assert "--microbatches changes a recorded run; give it with --from RUN" in told.err


def test_constants_are_not_fitted_to_emulated_compute(serried: Call, recorded: str) -> None:
    told = serried("plan", "--calibrate", recorded)
    assert told.code == 2
    assert "has emulated compute, which tells nothing of hardware" in told.err
