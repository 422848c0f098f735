"""Pings: who asks whom, what is written down, and that nothing of it holds a job up."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording.ping_tree import CHILDREN, Leader, PingTree
from serried.runtime.recording.pings import Answerer, Asker, Pings, ping_others
from serried.trace.clocks.pings import ping_file
from tests.runtime.rank_group import run_ranks

PASSWORD = "0123456789abcdef" * 2


@pytest.fixture
def answerer() -> Iterator[tuple[str, int]]:
    server = socket.create_server(("127.0.0.1", 0))
    running = Answerer(server, PASSWORD, HostTime(now_ns=iter(range(1000, 2000)).__next__))
    address = server.getsockname()
    running.start()
    yield address
    running.finish()


def test_an_answer_stands_between_the_times_it_came_and_left(answerer: tuple[str, int]) -> None:
    mine = HostTime(now_ns=iter(range(10, 99)).__next__)
    with socket.create_connection(answerer) as channel, Asker(channel, mine) as asker:
        channel.sendall(PASSWORD.encode())
        assert asker.ask() == (10, 1000, 1001, 11)
        assert asker.ask() == (12, 1002, 1003, 13)


def test_a_stranger_is_told_no_time(answerer: tuple[str, int]) -> None:
    with socket.create_connection(answerer) as channel, Asker(channel, HostTime()) as asker:
        channel.sendall(b"x" * len(PASSWORD))
        with pytest.raises(OSError):
            asker.ask()
    with socket.create_connection(answerer):
        pass  # one that goes without a word holds up nobody
    with socket.create_connection(answerer) as channel:
        channel.sendall(PASSWORD.encode())
        with Asker(channel, HostTime(now_ns=lambda: 5)) as asker:
            assert asker.ask()[0] == 5


class Shared:
    """Is a store that all meetings of a test share, and whose clones are itself."""

    def __init__(self) -> None:
        self.store = dist.HashStore()  # type: ignore[attr-defined]

    def clone(self) -> Any:
        return self.store


def test_a_host_asks_its_parent_and_few_ask_one_host() -> None:
    store, found = Shared(), []
    for number in range(30):
        meeting = PingTree(store, "run/0")
        assert meeting.leads(HostTime(name=f"host-{number}", boot="boot"))
        meeting.tell(Leader(number, "10.0.0.1", 1000 + number, PASSWORD))
        found.append(meeting)
    asked = [each.parent(lambda wait_s: False) for each in found[1:]]
    assert [each and each.rank for each in asked] == [(n - 1) // CHILDREN for n in range(1, 30)]
    assert [each.num_children(0) for each in found[:6]] == [8, 8, 8, 5, 0, 0]


def test_only_the_first_rank_of_a_host_leads() -> None:
    store = Shared()
    host = HostTime(name="a", boot="boot")
    assert PingTree(store, "run/0").leads(host)
    again = PingTree(store, "run/0")
    assert again.leads(host)  # of the same rank, which this process is
    assert PingTree(store, "run/0").leads(HostTime(name="a", boot="rebooted"))
    assert PingTree(store, "run/1").leads(host)


def test_a_host_is_counted_before_its_leader_so_that_no_job_seems_of_one_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serried.runtime.recording.ping_tree.world_size_here", lambda: 2)
    store = Shared()
    first, second = PingTree(store, "run/0"), PingTree(store, "run/0")
    assert first.leads(HostTime(name="a")) and second.leads(HostTime(name="b"))
    first.tell(Leader(0, "10.0.0.1", 1000, PASSWORD))
    assert (first.has_all_ranks(), first.num_hosts()) == (False, 1)
    second.tell(Leader(1, "10.0.0.2", 1000, PASSWORD))
    assert (first.has_all_ranks(), first.num_hosts()) == (True, 2)


def test_a_parent_that_never_comes_is_waited_for_no_longer_than_the_job() -> None:
    meeting = PingTree(Shared(), "run/0")
    meeting.number = 1
    assert meeting.parent(lambda wait_s: True) is None


def test_a_process_alone_compares_nothing(tmp_path: Path) -> None:
    assert ping_others(tmp_path, "run", HostTime()) is None


def two_hosts(folder: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Is a rank that stands for a host of its own, and says what it did."""
    host = HostTime(name=f"{name}-{dist.get_rank()}")
    pings = ping_others(folder, name, host)
    assert isinstance(pings, Pings)
    dist.barrier()
    pings.finish()
    yield "threads", sorted(each.name for each in threading.enumerate())
    yield "told", (folder / ping_file(dist.get_rank())).exists()


def one_host(folder: Path) -> Iterator[tuple[str, Any]]:
    """Is a rank of a host whose launcher does not say that there is no other."""
    pings = ping_others(folder, "one", HostTime())
    said = ping_others(folder, "one", HostTime(), num_local_ranks=dist.get_world_size())
    assert pings is not None
    pings.finish()
    yield "said", said is None
    yield "written", sorted(path.name for path in folder.glob("clock-*"))


def both(folder: Path) -> Iterator[tuple[str, Any]]:
    yield from two_hosts(folder / "two", "two")
    yield from one_host(folder / "one")


def test_ranks_of_two_hosts_ask_and_ranks_of_one_do_not(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, second = run_ranks(both, 2, tmp_path, tmp_path)
    for each in (first, second):
        assert not {"clock-asker", "clock-answerer"} & set(each["threads"])
        assert (each["said"], each["written"]) == (True, [])
    assert sorted((first["told"], second["told"])) == [False, True]
    asker = 0 if first["told"] else 1
    heading, *lines = (tmp_path / "two" / ping_file(asker)).read_text().splitlines()
    assert json.loads(heading) == {"run": "two", "rank": asker}
    assert len(lines) >= 32
    for line in lines:
        ping = json.loads(line)
        sent, there, answered, back = ping["times"]
        assert ping["peer"] == 1 - asker
        assert sent <= there <= answered <= back  # two names, but one clock
