"""Local ranks end together: after an error, a kill, a hang, Ctrl-C, or with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import torch.distributed as dist

from serried.action import ActionKind
from serried.errors import InputError, SerriedError
from serried.runtime.job.report import Event, RankReport, Started, StepDone
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.run import worker
from serried.runtime.run.launch import train
from serried.runtime.run.local_ranks import run_locally
from serried.trace.model.record import read_rank_record
from serried.views.cli.main import run
from tests.runtime.rank_jobs import FunctionJob, on_ranks
from tests.runtime.rank_processes import all_ended, in_a_process, watch

ENDLESS = TrainSettings(
    world_size=4,
    pp=4,
    steps=1_000_000,
    model=ModelSizes(layers=4, hidden=32, heads=4, seq_len=32),
    global_batch_size=4,
    device="cpu",
    timeout_s=60,
)

Disturb = Callable[[tuple[RankReport, ...]], object]


def ended_by(disturb: Disturb, settings: TrainSettings, *, at_step: int = 2) -> SerriedError:
    """Runs ``settings``, disturbs the ranks after a step, and returns the error that comes.

    Asserts that no rank lives on.
    """
    ranks: tuple[RankReport, ...] = ()
    watched: list[int] = []

    def tell(event: Event) -> None:
        nonlocal ranks
        if isinstance(event, Started):
            ranks = event.ranks
            watched.extend(watch(report.pid for report in ranks))
        elif isinstance(event, StepDone) and event.step == at_step:
            disturb(ranks)

    with pytest.raises(SerriedError) as raised:
        train(settings, tell)
    assert len(watched) == settings.world_size
    assert all_ended(watched)
    return raised.value


def test_an_error_in_one_rank_ends_all_and_is_told_first(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"to be or not to be " * 100)
    error = ended_by(lambda ranks: text.unlink(), replace(ENDLESS, data=text))
    # The first and the last stage read text; either may be first to miss it.
    assert str(error) in {
        f"rank {rank} failed: {text} cannot be read any more: No such file or directory; "
        "the other ranks were ended"
        for rank in (0, 3)
    }
    assert error.exit_code == 2
    assert "Traceback" in error.__notes__[0] and "in _read_file" in error.__notes__[0]


def test_a_killed_rank_is_named_and_its_complete_records_stay(tmp_path: Path) -> None:
    error = ended_by(
        lambda ranks: os.kill(ranks[2].pid, signal.SIGKILL),
        replace(ENDLESS, trace_dir=tmp_path / "trace"),
    )
    assert str(error) == "rank 2 ended by signal SIGKILL without a word; the other ranks were ended"
    assert error.exit_code == 1
    spans = read_rank_record(tmp_path / "trace" / "rank-00002.spans").spans
    kinds = Counter(ActionKind(int(kind)) for kind in spans.kind[spans.step < 2])
    assert kinds[ActionKind.F] == kinds[ActionKind.RECV_B] == 2 * ENDLESS.microbatches


def test_ranks_end_when_the_server_that_forked_them_is_killed() -> None:
    def kill_server(ranks: tuple[RankReport, ...]) -> None:
        status = Path(f"/proc/{ranks[0].pid}/status").read_text()
        server = next(line for line in status.splitlines() if line.startswith("PPid:"))
        os.kill(int(server.split()[1]), signal.SIGKILL)

    error = ended_by(kill_server, ENDLESS)
    assert str(error) == (
        "rank 0 ended by exit code 255 without a word; the other ranks were ended"
    )


def test_a_rank_that_is_stopped_is_named_and_not_those_that_wait_for_it() -> None:
    error = ended_by(
        lambda ranks: os.kill(ranks[2].pid, signal.SIGSTOP), replace(ENDLESS, timeout_s=5)
    )
    assert str(error) == (
        "rank 2 does not answer: stopped by a signal, such as SIGSTOP, or by a debugger; the "
        "other ranks were ended"
    )


def hang_on_rank_1(rank: int) -> None:
    dist.barrier()  # it connects: gloo tells of a connection that takes too long in other words
    if rank == 1:
        signal.pause()


def test_the_time_out_asked_for_ends_a_run_whose_rank_hangs() -> None:
    with pytest.raises(SerriedError, match="Timed out waiting 4000ms for"):
        list(run_locally(FunctionJob(hang_on_rank_1, 2, timeout_s=4)))


def test_an_exception_of_the_caller_ends_all_ranks() -> None:
    watched: list[int] = []

    def tell(event: Event) -> None:
        if isinstance(event, Started):
            watched.extend(watch(report.pid for report in event.ranks))
            return
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(ENDLESS, tell)
    assert all_ended(watched)


def test_a_taken_trace_folder_is_refused_before_any_rank_starts(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.spans").touch()
    told: list[Event] = []
    with pytest.raises(InputError) as refused:
        train(replace(ENDLESS, trace_dir=tmp_path), told.append)
    assert str(refused.value) == (
        f"{tmp_path} already holds a recording; choose another folder or remove it"
    )
    assert told == []


def test_a_trace_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as refused:
        train(replace(ENDLESS, trace_dir=tmp_path / "file"))
    assert str(refused.value) == f"trace folder {tmp_path}/file cannot be made: File exists"


# ------------------------------------------------------------------------------- the parent goes

COMMAND = "from serried.views.cli.main import main; main()"
PARENT = """
from serried.runtime.run.local_ranks import run_locally
from tests.runtime.rank_jobs import EndlessJob

if __name__ == "__main__":
    for told in run_locally(EndlessJob(2)):
        print(*told, flush=True)
"""
ENDINGS = [(how, stopped) for how in (signal.SIGKILL, signal.SIGTERM) for stopped in range(3)]
"""By which signal a parent ends, and how many of its two ranks are stopped then."""
FEW = [(signal.SIGKILL, 2), (signal.SIGTERM, 1)]
"""All stopped, and one that is beside one that runs."""


def ended(process: subprocess.Popen[str]) -> int:
    """Returns the exit status; ends a process that does not end, so that the test fails."""
    try:
        return process.wait(timeout=60)
    finally:
        process.kill()


def started(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def end_parents(endings: list[tuple[signal.Signals, int]]) -> None:
    """Ends parents, side by side since each loads torch anew, and asserts that no rank is left."""
    words = [sys.executable, "-c", PARENT]
    with ExitStack() as stack:
        parents = [stack.enter_context(started(words)) for _ in endings]
        for parent, (how, stopped) in zip(parents, endings, strict=True):
            assert parent.stdout
            pids = [int(pid) for pid in parent.stdout.readline().split()]
            watched = watch(pids)
            assert len(watched) == 2
            for pid in pids[:stopped]:
                os.kill(pid, signal.SIGSTOP)
            parent.send_signal(how)
            assert ended(parent) == -how
            assert all_ended(watched), (how, stopped)


def test_no_rank_outlives_its_parent_also_if_it_is_stopped() -> None:
    end_parents(FEW)


@pytest.mark.soak
def test_no_rank_outlives_its_parent_however_that_ends_and_how_many_are_stopped() -> None:
    end_parents(ENDINGS)


def test_ctrl_c_ends_the_command_in_one_line() -> None:
    # A shell that started these tests behind it (&) lets them, and what they start, ignore Ctrl+C.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + COMMAND
    process = subprocess.Popen(
        [sys.executable, "-c", heard, "train", "--nproc", "2", "--pp", "2", "--steps", "1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stderr and process.stdout
        lines = [process.stderr.readline() for _ in range(2)]
        os.killpg(process.pid, signal.SIGINT)
        assert ended(process) == 130
        assert process.stdout.read() == ""
        rest = process.stderr.read().splitlines()
    assert lines[0].startswith("2 ranks (tp 1, pp 2, dp 1")
    assert rest[-1] == "serried: stopped"
    assert all(line.startswith("step ") for line in rest[:-1] if line)


# ------------------------------------------------------------------------------- torchrun


def torchrun(*words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Starts two processes of ``serried`` under torchrun."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    return subprocess.run(
        [*launcher, "--nproc-per-node", "2", sys.executable, "-c", COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def test_under_torchrun_the_command_joins_instead_of_spawning(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    done = torchrun(
        *("train", "--pp", "2", "--steps", "2", "--layers", "2", "--device", "cpu"),
        *("--trace-dir", str(trace), "--log-file", str(tmp_path / "log.jsonl")),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 steps on 2 ranks (tp 1, pp 2, dp 1") == 1
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 2
    headers = [read_rank_record(file).header for file in sorted(trace.glob("*.spans"))]
    assert [header.rank for header in headers] == [0, 1]
    assert len({header.run for header in headers}) == 1


def train_as_rank_1(trace: Path) -> None:
    os.environ.update(zip(worker.TORCHRUN, "1212", strict=True))
    run(["train", "--tp", "2", "--trace-dir", str(trace)])


def test_a_rank_of_torchrun_that_fails_says_which_and_why(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    (trace / "rank-00001.spans").touch()
    assert in_a_process(train_as_rank_1, trace) == 2
    assert trace.with_suffix(".err").read_text() == (
        f"serried: rank 1: {trace} already holds a recording; choose another folder or remove it\n"
    )


# ------------------------------------------------------------------------------- many times

SHORT = replace(ENDLESS, world_size=2, pp=1, tp=2, steps=1)
"""Tensor parallel: functional collectives are what makes an interpreter abort as it ends."""


def exits_well_and_badly(times: int) -> None:
    """Runs once to the end and once into an error, ``times`` times; each ends as it should."""
    for _ in range(times):
        assert len(train(SHORT).steps) == 1  # raises where a rank's exit code is not 0
        with pytest.raises(SerriedError) as failed:
            on_ranks(2, fail_on_rank_1)
        assert str(failed.value) == ("rank 1 failed: this cannot be; the other ranks were ended")
        assert failed.value.exit_code == 2


def fail_on_rank_1(rank: int) -> None:
    if rank == 1:
        raise InputError("this cannot be")


def test_ranks_end_with_the_right_exit_code() -> None:
    exits_well_and_badly(1)


@pytest.mark.soak
def test_ranks_end_with_the_right_exit_code_200_times_in_200() -> None:
    exits_well_and_badly(100)


@pytest.mark.soak
def test_a_command_that_succeeds_exits_well_every_time() -> None:
    words = ["train", "--nproc", "4", "--tp", "2", "--pp", "2", "--steps", "2", "--layers", "2"]
    for _ in range(30):
        subprocess.run(
            [sys.executable, "-c", COMMAND, *words], check=True, capture_output=True, timeout=120
        )
