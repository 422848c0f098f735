"""Ranks that meet: who never came is named, and a port that is taken, in one sentence."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from torch.distributed import Store  # type: ignore[attr-defined]

from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.runtime.groups.rendezvous import free_port, meet
from serried.runtime.job.report import Place


def place(rank: int, world_size: int) -> Place:
    return Place(rank, world_size, rank, world_size)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    port = free_port()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    return port


@pytest.fixture
def taken(port: int) -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("", port))
        other.listen()
        yield port


def test_a_rank_that_never_comes_to_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SerriedError) as missed:
        meet(place(1, 3), tmp_path / "store", 0.3)
    assert str(missed.value) == (
        "2 of 3 ranks did not come within 0.3 s: rank 0, 2; see that every node started its "
        "ranks with the same address, port and number of ranks"
    )


def test_a_rank_that_never_comes_to_the_port_is_named_by_all_that_did(port: int) -> None:
    heard: dict[int, str] = {}

    def come(rank: int) -> None:
        with pytest.raises(SerriedError) as missed:
            meet(place(rank, 3), None, 2)
        heard[rank] = str(missed.value)

    ranks = [Thread(target=come, args=(rank,)) for rank in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert {words.partition(";")[0] for words in heard.values()} == {
        "1 of 3 ranks did not come within 2 s: rank 2"
    }


def test_ranks_that_all_come_share_a_store(port: int) -> None:
    heard: dict[int, bytes] = {}
    stores: list[Store] = []  # rank 0's holds the server, which others still ask

    def come(rank: int) -> None:
        store = meet(place(rank, 2), None, 30)
        stores.append(store)
        store.set(f"word/{rank}", f"from {rank}")
        heard[rank] = store.get(f"word/{1 - rank}")

    ranks = [Thread(target=come, args=(rank,)) for rank in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert heard == {0: b"from 1", 1: b"from 0"}


def test_without_rank_0_nobody_can_meet(port: int) -> None:
    with pytest.raises(SerriedError) as missed:
        meet(place(1, 2), None, 1)
    assert str(missed.value) == (
        f"rank 0 did not open 127.0.0.1:{port}, where the ranks meet, within 1 s; see that it "
        "runs, and that this host reaches it"
    )


def test_a_port_of_another_program_is_told(taken: int) -> None:
    with pytest.raises(EnvironmentProblem) as refused:
        meet(place(0, 2), None, 2)
    told, _, free = str(refused.value).rpartition(" ")
    assert told == (
        f"rank 0 cannot open port {taken}: another program has it; set MASTER_PORT to a free "
        "one, such as"
    )
    assert int(free) != taken


@pytest.mark.parametrize(("host", "number"), [(None, "29500"), ("a", None), ("a", "http")])
def test_an_address_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, host: str | None, number: str | None
) -> None:
    for name, value in (("MASTER_ADDR", host), ("MASTER_PORT", number)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as refused:
        meet(place(0, 2), None, 2)
    assert str(refused.value) == (
        f"MASTER_ADDR={host} and MASTER_PORT={number} say no address to meet at; set them to "
        "rank 0's host and a free port of it, such as 10.0.0.1 and 29500"
    )
