"""A store whose host is stopped: calls end within the time-out, and the host is named."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NoReturn

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from serried.errors import SerriedError
from serried.runtime.groups.rendezvous import free_port, meet
from serried.runtime.groups.store_limit import limited, limited_clone
from serried.runtime.job.report import Place
from serried.runtime.run.heartbeat import Heartbeat
from serried.views.cli.main import run
from tests.runtime.rank_processes import PATIENCE_S

WORLD_SIZE = 3
CHECK = (
    *("check", "--device", "cpu", "--framework", "custom", "--set", f"axes=all={WORLD_SIZE}"),
    *("--operations", "all_reduce", "--sizes", "1KiB", "--rounds", "100000", "--timeout", "5"),
)


def at(port: int, rank: int, world_size: int) -> dict[str, str]:
    """Returns the environment of a rank that no launcher's agent hosts the store for."""
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
    }


@contextmanager
def started(entry: Callable[..., NoReturn], *given: Any) -> Iterator[ForkServerProcess]:
    """Runs ``entry`` in a process of its own, which is killed at the end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    process = context.Process(target=entry, args=given, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def stop(process: ForkServerProcess) -> None:
    """Stops a process, and returns when its last thread has answered what it had begun."""
    os.kill(process.pid or 0, signal.SIGSTOP)
    threads = Path(f"/proc/{process.pid}/task")
    while any("State:\tT" not in (t / "status").read_text() for t in threads.iterdir()):
        time.sleep(0.01)


# ------------------------------------------------------------------------------- calls


def host(port: int) -> NoReturn:
    os.environ.update(at(port, 0, 2))
    store = meet(Place(0, 2, 0, 2), None, PATIENCE_S)
    store.set("host", str(os.getpid()))
    while True:
        signal.pause()


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    port = free_port()
    for name, value in at(port, 1, 2).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    return port


def test_calls_to_a_host_that_stops_end_within_the_time_out(port: int) -> None:
    with started(host, port) as process:
        store = meet(Place(1, 2, 1, 2), None, 2)
        store.get("host")
        second = limited_clone(store)
        assert second.add("count", 1) == 1
        stop(process)
        with pytest.raises(RuntimeError):
            store.add("count", 1)
        with pytest.raises(RuntimeError):
            second.check(["host"])


def test_a_host_that_is_lost_before_a_rank_beats_is_named(port: int) -> None:
    with started(host, port) as process:
        store = meet(Place(1, 2, 1, 2), None, 2)
        store.get("host")
        process.kill()
        process.join()
        with pytest.raises(SerriedError) as missed:
            Heartbeat(store, 1, 2)
    assert str(missed.value).startswith("rank 0 does not answer, nor the store it hosts")


def test_a_host_that_is_stopped_before_ranks_connect_is_named(port: int) -> None:
    with started(host, port) as process:
        meet(Place(1, 2, 1, 2), None, PATIENCE_S).get("host")
        stop(process)
        with pytest.raises(SerriedError) as missed:
            meet(Place(1, 2, 1, 2), None, 2)
    assert str(missed.value).startswith(f"rank 0 did not open 127.0.0.1:{port}, where the ranks")


def test_a_try_after_one_that_was_hung_up_on_is_hung_up_on_too() -> None:
    ended: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hold() -> None:
            with suppress(OSError):  # the test is over
                while True:
                    with listening.accept()[0] as connection:
                        connection.settimeout(PATIENCE_S)
                        while connection.recv(1 << 12):
                            pass
                        ended.append("hung up")

        threading.Thread(target=hold, daemon=True).start()
        port = listening.getsockname()[1]
        # Torch has time for further tries, as it has by chance where both limits are the same.
        with pytest.raises(RuntimeError), limited(port, 0.1):
            TCPStore("127.0.0.1", port, 2, False, timedelta(seconds=2), wait_for_workers=False)
    assert len(ended) >= 2


# ------------------------------------------------------------------------------- drawn moments


def be_rank(environment: dict[str, str], err: Path) -> NoReturn:
    os.environ.update(environment)
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    for path, descriptor in (("/dev/null", 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    code = run(list(CHECK))
    sys.stdout.flush()
    os._exit(code)


def stop_one_of_a_check(lost: int, delay_s: float, folder: Path) -> dict[int, tuple[Any, str]]:
    """Returns the exit code and the last line of the ranks that were not stopped."""
    port, told = free_port(), {rank: folder / f"rank-{rank}.err" for rank in range(WORLD_SIZE)}
    with (
        started(be_rank, at(port, 0, WORLD_SIZE), told[0]) as first,
        started(be_rank, at(port, 1, WORLD_SIZE), told[1]) as second,
        started(be_rank, at(port, 2, WORLD_SIZE), told[2]) as third,
    ):
        ranks = [first, second, third]
        time.sleep(delay_s)
        stop(ranks[lost])
        others = {rank: each for rank, each in enumerate(ranks) if rank != lost}
        for each in others.values():
            each.join(PATIENCE_S)
        return {
            rank: (each.exitcode, told[rank].read_text().strip().rpartition("\n")[2])
            for rank, each in others.items()
        }


def is_named(lost: int, words: str) -> bool:
    return f"rank {lost} does not answer" in words or (
        f"1 of {WORLD_SIZE} ranks did not come within 5 s: rank {lost};" in words
        or (lost == 0 and "rank 0 did not open" in words)
    )


def stop_at_drawn_moment(seed: int, folder: Path) -> None:
    draw = random.Random(seed)
    lost, delay_s = draw.choice((0, 0, 1, 2)), draw.uniform(0, 3)
    ended = stop_one_of_a_check(lost, delay_s, folder)
    drawn = f"seed {seed}: rank {lost} after {delay_s:.3f} s: {ended}"
    assert all(code == 1 and is_named(lost, words) for code, words in ended.values()), drawn


def stop_at_drawn_moments(times: int, folder: Path) -> None:
    """Stops a rank of ``times`` checks, two of which run side by side: most of it is waiting."""
    seeds = [random.SystemRandom().randrange(1 << 32) for _ in range(times)]
    folders = [folder / str(number) for number in range(times)]
    for each in folders:
        each.mkdir()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(stop_at_drawn_moment, seeds, folders))


def test_a_rank_that_stops_is_named_by_all_others_also_the_stores_host(tmp_path: Path) -> None:
    stop_at_drawn_moments(1, tmp_path)


@pytest.mark.soak
def test_a_rank_that_stops_at_40_moments_is_named_by_all_others(tmp_path: Path) -> None:
    stop_at_drawn_moments(40, tmp_path)
