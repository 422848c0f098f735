"""A program of one's own gets its ranks and its groups by one call each."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from serried.errors import InputError, SerriedError
from serried.runtime.groups.rendezvous import free_port
from serried.runtime.run.program import join, start
from tests.runtime.rank_processes import in_a_process


def _sums() -> dict[str, object]:
    groups = join(tp=2, pp=2)
    summed = {}
    for axis in ("tp", "pp", "dp", "dp_cp"):
        number = torch.tensor([groups.rank])
        dist.all_reduce(number, group=groups.group(axis))
        summed[axis] = int(number)
    everybody: list[object] = [None] * 8
    dist.all_gather_object(everybody, (groups.members("tp"), groups.mesh["tp"].size(), summed))
    return {"ranks": everybody}


def test_every_rank_gets_the_groups_of_the_layout() -> None:
    ranks = start(_sums, ranks=8, timeout_s=60)["ranks"]
    for rank, (members, size, summed) in enumerate(ranks):
        assert members == (rank - rank % 2, rank - rank % 2 + 1) and size == 2
        assert summed["tp"] == sum(members)
        assert summed["pp"] == 2 * (rank % 4) + 4
        assert summed["dp"] == summed["dp_cp"] == 2 * (rank % 2 + 4 * (rank // 4)) + 2


def _fails() -> None:
    join(tp=2)
    raise ValueError("no such file")


def test_a_rank_that_fails_ends_the_program_with_its_words() -> None:
    with pytest.raises(SerriedError, match="ValueError: no such file"):
        start(_fails, ranks=2, timeout_s=60)


def _wrong() -> None:
    join(tp=3)


def test_sizes_that_do_not_fit_are_refused_with_those_that_do() -> None:
    with pytest.raises(InputError, match="tp=3 does not divide 2 ranks; sizes that do: 1, 2"):
        start(_wrong, ranks=2, timeout_s=60)
    with pytest.raises(InputError, match="ranks=0 cannot be"):
        start(_wrong, ranks=0)


def test_a_process_that_nothing_started_is_a_job_of_one_rank(tmp_path: Path) -> None:
    assert in_a_process(_alone, tmp_path / "alone") == 0
    assert (tmp_path / "alone.out").read_text() == "0 (0,) 1\n"


def _alone(folder: Path) -> None:
    groups = join()
    os.write(1, f"{groups.rank} {groups.members('dp')} {groups.size('tp')}\n".encode())


def test_a_process_of_torchrun_is_a_rank_already(tmp_path: Path) -> None:
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    (tmp_path / "0").mkdir()
    (tmp_path / "1").mkdir()
    (tmp_path / "address").write_text(json.dumps(address | {"LOCAL_WORLD_SIZE": "2"}))
    with ThreadPoolExecutor() as both:
        codes = list(both.map(partial(in_a_process, _as_torchrun), tmp_path.glob("[01]")))
    assert codes == [0, 0]
    said = sorted(each.read_text() for each in tmp_path.glob("?.out"))
    assert said == ["rank 0 of (0, 1)\n", "rank 1 of (0, 1)\n"]


def _as_torchrun(folder: Path) -> None:
    os.environ |= json.loads((folder.parent / "address").read_text())
    os.environ |= {"RANK": folder.name, "LOCAL_RANK": folder.name}
    start(_say, ranks=8, timeout_s=60)  # torchrun's number of ranks counts


def _say() -> None:
    groups = join(tp=2)
    os.write(1, f"rank {groups.rank} of {groups.members('tp')}\n".encode())
