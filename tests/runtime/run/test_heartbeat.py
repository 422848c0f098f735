"""When a step does not end, the rank that keeps it from ending is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch.distributed import FileStore, Store  # type: ignore[attr-defined]

from serried.errors import SerriedError
from serried.runtime.run import heartbeat
from serried.runtime.run.heartbeat import Heartbeat


def failing(heart: Heartbeat, name: str) -> str:
    with pytest.raises(SerriedError) as blamed, heart.step(name):
        raise RuntimeError("timed out\nand more")
    return str(blamed.value)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(heartbeat, "STAY_S", 0.1)  # ranks that only beat never look for a cause
    return FileStore(str(tmp_path / "store"), 8)


def test_a_rank_whose_heart_stands_still_is_named(store: Store) -> None:
    with Heartbeat(store, 0, 3) as heart, Heartbeat(store, 2, 3):
        with Heartbeat(store, 1, 3):
            pass  # it joined, and beats no more
        told = failing(heart, "all_reduce of dp")
    assert told == "rank 1 does not answer; rank 0 waited for it in: all_reduce of dp"


def test_where_all_hearts_beat_those_furthest_behind_are_named(store: Store) -> None:
    with Heartbeat(store, 0, 3) as heart, Heartbeat(store, 1, 3) as other, Heartbeat(store, 2, 3):
        for each in (heart, other):
            with each.step("members of tp"):
                pass
        told = failing(heart, "members of dp")
    assert told == "rank 2 is still in: start; rank 0 waited for it in: members of dp"


def test_a_rank_that_left_for_a_reason_is_not_the_cause(store: Store) -> None:
    with Heartbeat(store, 0, 3) as heart, Heartbeat(store, 2, 3) as third:
        with Heartbeat(store, 1, 3) as second:
            with third.step("members of tp"), second.step("members of tp"):
                pass
            assert failing(second, "members of dp").startswith("rank 0 is still in: start")
        with heart.step("members of tp"):
            pass
        told = failing(heart, "members of dp")
    assert told == "rank 2 is still in: members of tp; rank 0 waited for it in: members of dp"


def test_a_step_that_fails_by_itself_is_told_by_its_error(store: Store) -> None:
    with Heartbeat(store, 0, 1) as heart:
        assert failing(heart, "making groups") == "making groups failed: timed out"


def test_the_stores_host_stays_until_the_others_know(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "STAY_S", 60.0)
    with Heartbeat(store, 0, 3) as heart, Heartbeat(store, 1, 3):
        with Heartbeat(store, 2, 3):
            pass
        store.set("knows/1", "")  # without it, and with rank 2 silent, the test would not end
        assert failing(heart, "all_reduce of dp").startswith("rank 2 does not answer")
