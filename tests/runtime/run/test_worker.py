"""Where a rank's process finds its place, and how it tells what ended it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.runtime.job.report import Place
from serried.runtime.run.worker import failure, place_of_launcher, prepare_environment

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")


@pytest.fixture(autouse=True)
def outside_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, *SLURM):
        monkeypatch.delenv(name, raising=False)


def test_without_rank_there_is_no_torchrun() -> None:
    assert place_of_launcher() is None


def test_torchrun_s_variables_give_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(NAMES, ("5", "8", "1", "4"), strict=True):
        monkeypatch.setenv(name, value)
    assert place_of_launcher() == Place(rank=5, world_size=8, local_rank=1, local_world_size=4)


@pytest.mark.parametrize(("tasks", "local"), [("4(x2)", 4), ("4,4", 4), ("8", 8)])
def test_slurm_s_variables_give_the_place(
    tasks: str, local: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(SLURM, ("5", "8", "1", tasks), strict=True):
        monkeypatch.setenv(name, value)
    assert place_of_launcher() == Place(5, 8, 1, local)


def test_a_slurm_step_of_one_task_is_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(SLURM, ("0", "1", "0", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert place_of_launcher() is None


def test_a_slurm_step_that_is_not_whole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "8")
    with pytest.raises(InputError) as refused:
        place_of_launcher()
    assert str(refused.value) == (
        "SLURM_PROCID is set, so this process joins a Slurm step, but SLURM_PROCID=None is not a "
        "number; start it with srun, or unset SLURM_STEP_NUM_TASKS"
    )


@pytest.mark.parametrize(
    ("values", "name"), [({"RANK": "x"}, "RANK=x"), ({"RANK": "0"}, "WORLD_SIZE=None")]
)
def test_a_rank_without_a_whole_torchrun_is_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], name: str
) -> None:
    for variable, value in values.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(InputError) as refused:
        place_of_launcher()
    assert str(refused.value) == (
        f"RANK is set, so this process joins a torchrun job, but {name} is not a number; "
        "start it with torchrun, or unset RANK"
    )


def test_a_failure_is_told_by_the_error_that_began_it() -> None:
    try:
        try:
            raise ValueError("the real reason\nand much more")
        except ValueError as error:
            raise RuntimeError("stage 1 failed to run forward") from error
    except RuntimeError as error:
        failed = failure(3, error)
    assert (failed.rank, failed.exit_code) == (3, 1)
    assert failed.message == "ValueError: the real reason"
    assert "stage 1 failed to run forward" in failed.traceback


@pytest.mark.parametrize("kind", [InputError, EnvironmentProblem])
def test_our_own_error_keeps_its_sentence_and_exit_code(kind: type[SerriedError]) -> None:
    try:
        try:
            raise kind("{what} is missing", what="text")
        except SerriedError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as wrapped:
        told = failure(2, wrapped).error()
    assert type(told) is kind
    assert str(told) == "rank 2 failed: text is missing; the other ranks were ended"
    assert "wrapped" in told.__notes__[0]


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert failure(0, KeyboardInterrupt()).message == "KeyboardInterrupt"


def test_the_environment_is_set_where_the_user_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for name in ("TORCH_GLOO_LAZY_INIT", "TORCH_CPP_LOG_LEVEL", "GLOO_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "")  # restored afterwards, whatever is set below
        monkeypatch.delenv(name)
    prepare_environment(local=False)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["TORCH_GLOO_LAZY_INIT"] == "1"
    assert "GLOO_SOCKET_IFNAME" not in os.environ
    prepare_environment(local=True)
    assert os.environ.get("GLOO_SOCKET_IFNAME") == (
        "lo" if Path("/sys/class/net/lo").exists() else None
    )


NO_NAMESPACE = subprocess.run(
    ["unshare", "-n", "true"], capture_output=True, check=False
).returncode
NEEDED = "from serried.runtime.run.worker import require_loopback; require_loopback()"


@pytest.mark.skipif(bool(NO_NAMESPACE), reason="this machine lacks unshare -n: root, for a network")
@pytest.mark.parametrize(("before", "is_refused"), [("", True), ("ip link set lo up; ", False)])
def test_local_ranks_need_a_loopback_card_that_is_up(before: str, is_refused: bool) -> None:
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", f'{before}exec "$0" -c "$1"', sys.executable, NEEDED],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("GLOO_")},
    )
    assert bool(done.returncode) == is_refused, done.stderr
    assert ("the loopback card lo, which has no address here; give it one" in done.stderr) == (
        is_refused
    )
