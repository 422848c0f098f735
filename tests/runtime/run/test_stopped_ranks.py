"""A local rank that is stopped, at whatever moment of its life, is named, and none lives on."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from serried.errors import InputError, SerriedError
from serried.runtime.check.check import Told, check
from serried.runtime.check.report import StepBegun
from serried.runtime.check.settings import CheckSettings
from serried.runtime.job.report import Event, Place, StepDone
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.run import local_ranks
from serried.runtime.run.launch import train
from serried.runtime.run.local_ranks import LocalRanks, run_locally
from serried.runtime.run.stopped_ranks import LOOK_S, StoppedRanks, stop_of
from serried.runtime.run.worker import RankJob, Rendezvous
from tests.frameworks.asking import asked
from tests.runtime.rank_processes import PATIENCE_S, all_ended, watch

WORLD_SIZE = 4
CHECK = CheckSettings(
    asked(f"megatron {WORLD_SIZE} tp=2"),
    operations=("all_reduce",),
    sizes_bytes=(512,),
    rounds=100_000,
    timeout_s=5,
    device="cpu",
)
TRAIN = TrainSettings(
    world_size=WORLD_SIZE,
    pp=2,
    steps=1_000_000,
    model=ModelSizes(layers=2, hidden=32, heads=4, seq_len=32),
    device="cpu",
    timeout_s=10,
)
Tell = Callable[[Any], None]
Work = Callable[[Place, Rendezvous, Tell], None]


def stopped(rank: int) -> str:
    return (
        f"rank {rank} does not answer: stopped by a signal, such as SIGSTOP, or by a debugger; "
        "the other ranks were ended"
    )


def stop_self() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


class Disturbed(LocalRanks[Any]):
    """Stops ``lost``, ``delay_s`` after its process is there; ends all where the job hangs."""

    lost = -1
    delay_s = 0.0

    def start(self, store: Path) -> None:
        self.guard = threading.Timer(PATIENCE_S, self.end)
        self.guard.start()
        if self.lost >= 0:
            threading.Thread(target=self.stop_lost).start()
        super().start(store)
        self.watched = watch(process.pid or 0 for process in self.processes)

    def stop_lost(self) -> None:
        while len(self.processes) <= self.lost:
            time.sleep(0.001)
        time.sleep(self.delay_s)
        os.kill(self.processes[self.lost].pid or 0, signal.SIGSTOP)


@contextmanager
def disturbed(
    monkeypatch: pytest.MonkeyPatch, lost: int = -1, delay_s: float = 0.0
) -> Iterator[None]:
    """Disturbs the job that runs inside, which must end with all of its ranks, not by patience."""
    made: list[Disturbed] = []

    def make(job: RankJob[Any], preload: Sequence[str]) -> Disturbed:
        made.append(Disturbed(job, preload))
        made[0].lost, made[0].delay_s = lost, delay_s
        return made[0]

    with monkeypatch.context() as patch:
        patch.setattr(local_ranks, "LocalRanks", make)
        try:
            yield
        finally:
            made[0].guard.cancel()
            assert all_ended(made[0].watched)


# ------------------------------------------------------------------------------- what a stop is


def test_a_stop_lasts_until_the_process_runs_again() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        assert stop_of(process.pid) == ""
        stops = []
        for _ in range(2):
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            stops.append(stop_of(process.pid))
            assert stop_of(process.pid) == stops[-1] != ""
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        assert stops[0] != stops[1]
        process.kill()
    assert stop_of(process.pid) == ""


class Fake:
    """Stands for a rank's process."""

    def __init__(self) -> None:
        self.pid = 1
        self.was_killed = False

    def kill(self) -> None:
        self.was_killed = True


def test_a_rank_that_goes_on_in_between_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(["T 1", "T 1", "T 2", "T 2", "", "T 3", "T 3", "T 4"])
    has_looked = threading.Event()

    def next_look(pid: int) -> str:
        if (stop := next(looks, None)) is None:
            has_looked.set()
        return stop or ""

    monkeypatch.setattr("serried.runtime.run.stopped_ranks.stop_of", next_look)
    monkeypatch.setattr("serried.runtime.run.stopped_ranks.LOOK_S", LOOK_S / 50)
    process = Fake()
    watched = StoppedRanks([process], timeout_s=2 * LOOK_S / 50)  # type: ignore[list-item]
    watched.start()
    assert has_looked.wait(PATIENCE_S)
    watched.end()
    assert (process.was_killed, watched.ranks()) == (False, [])


# ------------------------------------------------------------------------------- certain moments


@dataclass(frozen=True)
class WorkJob:
    """Runs ``work`` on every rank."""

    work: Work
    world_size: int = 3
    timeout_s: float = 2.0

    def run_rank(self, place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
        self.work(place, rendezvous, tell)


def hold_the_lock(place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
    store = rendezvous["store"]
    if place.rank == 1:
        fcntl.flock(os.open(store.path, os.O_RDWR), fcntl.LOCK_EX)
        stop_self()
    dist.init_process_group("gloo", rank=place.rank, world_size=3, **rendezvous)


def stop_last(place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
    if place.rank == 0:
        stop_self()


def stop_before_an_error(place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
    if place.rank == 1:
        rendezvous["store"].set("stops", "")
        stop_self()
    rendezvous["store"].get("stops")
    if place.rank == 2:
        raise InputError("this cannot be")


def speak_twice(place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
    tell(os.getpid())
    tell(bytes(1 << 20))  # far beyond what the pipe takes while nobody reads
    tell(os.getpid())


def test_a_rank_stopped_with_the_lock_of_the_stores_file_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with disturbed(monkeypatch), pytest.raises(SerriedError) as lost:
        list(run_locally(WorkJob(hold_the_lock)))
    assert (str(lost.value), lost.value.exit_code) == (stopped(1), 1)


@pytest.mark.parametrize("world_size", [1, 3])
def test_a_rank_stopped_with_nothing_left_to_do_is_named(
    world_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disturbed(monkeypatch), pytest.raises(SerriedError) as lost:
        list(run_locally(WorkJob(stop_last, world_size)))
    assert str(lost.value) == stopped(0)


def test_a_rank_stopped_in_the_middle_of_a_message_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with disturbed(monkeypatch), pytest.raises(SerriedError) as lost:
        events = run_locally(WorkJob(speak_twice, 1))
        pid = next(events)
        time.sleep(0.5)  # it fills the pipe; where it has not yet, it is stopped before that
        os.kill(pid, signal.SIGSTOP)
        list(events)
    assert str(lost.value) == stopped(0)


def test_wrong_input_is_told_before_a_rank_that_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with disturbed(monkeypatch), pytest.raises(InputError) as failed:
        list(run_locally(WorkJob(stop_before_an_error, timeout_s=60)))
    assert str(failed.value) == "rank 2 failed: this cannot be; the other ranks were ended"


# ------------------------------------------------------------------------------- drawn moments


class Healthy(Exception):
    """Ends a run that came to what was waited for."""


def run_check(is_waited_for: Callable[[Told], bool] = lambda event: False) -> None:
    def tell(event: Told) -> None:
        if is_waited_for(event):
            raise Healthy

    check(CHECK, tell)


def run_train(is_waited_for: Callable[[Event], bool] = lambda event: False) -> None:
    def tell(event: Event) -> None:
        if is_waited_for(event):
            raise Healthy

    train(TRAIN, tell)


def time_s(run: Callable[[], None]) -> float:
    begun = time.monotonic()
    with pytest.raises(Healthy):
        run()
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def check_s() -> float:
    """How long a healthy check takes until its groups are made, the server being loaded."""
    return [
        time_s(
            lambda: run_check(
                lambda event: isinstance(event, StepBegun) and event.name.startswith("all_reduce")
            )
        )
        for _ in range(2)
    ][-1]


@pytest.fixture(scope="module")
def train_s() -> float:
    """How long a healthy training takes until its first step is done, the server being loaded."""
    return [time_s(lambda: run_train(lambda event: isinstance(event, StepDone))) for _ in range(2)][
        -1
    ]


def stop_at_drawn_moments(
    times: int, until_s: float, run: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs ``times`` jobs, each with a rank that is stopped before ``until_s`` have passed."""
    seed = random.SystemRandom().randrange(1 << 32)
    draws = random.Random(seed)
    for number in range(times):
        lost, delay_s = draws.randrange(WORLD_SIZE), draws.uniform(0, until_s)
        with disturbed(monkeypatch, lost, delay_s), pytest.raises(SerriedError) as ended:
            run()
        drawn = f"seed {seed}, draw {number}: rank {lost} after {delay_s:.3f} of {until_s:.3f} s"
        assert (str(ended.value), ended.value.exit_code) == (stopped(lost), 1), drawn


def test_a_rank_stopped_at_any_moment_of_a_check_is_named(
    check_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_drawn_moments(2, check_s, run_check, monkeypatch)


@pytest.mark.soak
def test_a_rank_stopped_at_60_moments_of_a_check_is_named(
    check_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_drawn_moments(60, check_s, run_check, monkeypatch)


@pytest.mark.soak
def test_a_rank_stopped_at_20_moments_of_a_training_is_named(
    train_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_drawn_moments(20, train_s, run_train, monkeypatch)
