"""Dumps that do not go together: of two jobs, of one that was resized, or against the layout."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.job_state.given import given_groups
from serried.diagnose.reason import diagnosed

SECOND = 1_000_000_000
DONE = 8
"""Collectives that all ranks came to; who issued no more is missing in the next."""


def dump(
    rank: int,
    ranks: list[int],
    seq: int,
    group: str = "default_pg",
    start: int = 0,
    number: int = 0,
) -> dict[str, Any]:
    entries = [
        {
            "record_id": n,
            "process_group": [str(number), group],
            "profiling_name": "nccl:all_reduce",
            "collective_seq_id": n,
            "input_sizes": [[8]],
            "output_sizes": [[8]],
            "input_dtypes": ["Float"],
            "output_dtypes": ["Float"],
            "state": "completed" if n <= DONE else "started",
            "retired": n <= DONE,
            "time_created_ns": (start + n) * SECOND,
        }
        for n in range(1, seq + 1)
    ]
    config = {str(number): {"name": group, "desc": group, "ranks": str(ranks)}}
    return {"version": "2.10", "pg_config": config, "entries": entries}


def left(folder: Path, dumps: dict[str, dict[str, Any]], groups: object = None) -> Diagnosis:
    folder.mkdir(exist_ok=True)
    for name, each in dumps.items():
        (folder / name).write_text(json.dumps(each))
    if groups is not None:
        (folder / "layout.json").write_text(json.dumps({"groups": groups}))
    return diagnosed(gather([folder]))


def notes(found: Diagnosis) -> list[str]:
    return [str(note) for note in found.notes]


def test_a_dump_of_another_job_is_named_and_left_out(tmp_path: Path) -> None:
    own = {f"trace_rank_{r}": dump(r, [0, 1, 2, 3], 9 if r != 2 else 8) for r in range(4)}
    alone = left(tmp_path / "own", own)
    mixed = left(tmp_path / "mixed", {**own, "trace_rank_6": dump(6, list(range(8)), 3)})
    assert alone.causes[0].ranks == (2,)
    assert mixed.causes[0].ranks == (2,)
    assert mixed.world_size == 4
    assert notes(alone) == []
    assert len(notes(mixed)) == 1
    assert notes(mixed)[0].startswith("trace_rank_6 is of another job, or of this one before it")


@pytest.mark.parametrize("silent", [(2,), (3,), (0, 1, 3)])
def test_a_dump_that_does_not_tell_a_group_s_ranks_is_of_the_job_too(
    tmp_path: Path, silent: tuple[int, ...]
) -> None:
    own = {r: dump(r, [0, 1, 2, 3], 9 if r != 2 else 8) for r in range(4)}
    for rank in silent:
        own[rank]["pg_config"]["0"]["ranks"] = "[]"
    found = left(tmp_path / "own", {f"trace_rank_{r}": each for r, each in own.items()})
    assert found.causes[0].ranks == (2,)
    assert notes(found) == []


def test_of_a_job_that_was_resized_the_dumps_of_most_ranks_stay(tmp_path: Path) -> None:
    before = {f"0_trace_rank_{r}": dump(r, list(range(8)), 5) for r in (6, 7)}
    after = {
        f"1_trace_rank_{r}": dump(r, list(range(6)), 9 if r != 4 else 8, start=100)
        for r in range(6)
    }
    found = left(tmp_path, {**before, **after})
    assert (found.world_size, found.causes[0].ranks) == (6, (4,))
    assert [note.split(" ")[0] for note in notes(found)] == list(before)


def test_of_two_starts_of_one_size_the_later_dump_of_a_rank_is_read(tmp_path: Path) -> None:
    first = {f"0_trace_rank_{r}": dump(r, [0, 1, 2], 3 if r else 2) for r in range(3)}
    again = {
        f"1_trace_rank_{r}": dump(r, [0, 1, 2], 9 if r != 2 else 8, start=50) for r in range(3)
    }
    found = left(tmp_path, {**first, **again})
    assert found.causes[0].ranks == (2,)
    assert len(notes(found)) == 3
    assert all("the later was read" in note and note.startswith("1_") for note in notes(found))


LONG = 3 * 3600


@pytest.mark.parametrize(
    ("start", "pace", "named", "note"),
    [
        (-LONG, 1.0, (2,), "by the collectives in both, the clock of trace_rank_2"),
        (-LONG - 1000, 1.0, None, "trace_rank_2, trace_rank_3 end 3.3 hours before"),
        (-LONG, 1.5, None, "trace_rank_2, trace_rank_3 end 3.0 hours before"),
        (-60, 1.0, (2,), ""),
    ],
    ids=["a clock of another zone", "an odd number of hours", "another pace", "a minute"],
)
def test_dumps_of_another_time_accuse_nobody_unless_they_go_with_the_others(
    tmp_path: Path, start: int, pace: float, named: tuple[int, ...] | None, note: str
) -> None:
    own = {f"trace_rank_{r}": dump(r, [0, 1, 2, 3], 9 if r != 2 else 8) for r in range(4)}
    for rank in (2, 3):
        for entry in own[f"trace_rank_{rank}"]["entries"]:
            at = LONG + start + pace * entry["record_id"]
            entry["time_created_ns"] = int(at * SECOND)
    for rank in (0, 1):
        for entry in own[f"trace_rank_{rank}"]["entries"]:
            entry["time_created_ns"] += LONG * SECOND
    found = left(tmp_path, own)
    assert found.causes[0].ranks == named
    assert [each[: len(note)] for each in notes(found)] == [note] * bool(note)


def test_a_dump_that_is_left_from_before_accuses_nobody(tmp_path: Path) -> None:
    own = {f"trace_rank_{r}": dump(r, [0, 1, 2, 3], 9, start=LONG) for r in range(3)}
    old = dump(3, [0, 1, 2, 3], 4, start=-LONG + 777)
    found = left(tmp_path, {**own, "trace_rank_3": old})
    assert found.causes[0].ranks is None
    assert notes(found)[0].startswith("trace_rank_3 ends ")


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (
            {"7": {"desc": "tp_0", "ranks": [0, 1]}},
            "layout.json has 2 ranks, and trace_rank_0 tells of rank 3",
        ),
        (
            {"0": {"desc": "dp_0", "ranks": [0, 1, 2, 3]}},
            "layout.json calls group 0 dp_0, and trace_rank_0 calls it default_pg",
        ),
        (
            {"0": {"desc": "default_pg", "ranks": [0, 1, 2, 3]}},
            "",
        ),
    ],
)
def test_where_a_layout_contradicts_dumps_the_first_way_is_said(
    tmp_path: Path, groups: dict[str, Any], said: str
) -> None:
    own = {f"trace_rank_{r}": dump(r, [0, 1, 2, 3], 9 if r != 2 else 8) for r in range(4)}
    found = left(tmp_path, own, groups)
    assert found.causes[0].ranks == (2,)
    if not said:
        assert notes(found) == []
        return
    first, left_out = notes(found)
    assert first.startswith(said)
    assert left_out.startswith("layout.json contradicts the dumps and was left out")


def test_a_layout_whose_group_has_other_ranks_is_said(tmp_path: Path) -> None:
    own = {f"trace_rank_{r}": dump(r, [0, 1, 2, 3], 9, "dp_1", number=4) for r in range(4)}
    found = left(tmp_path, own, {"4": {"desc": "dp_1", "ranks": [0, 1, 2, 5]}})
    assert notes(found)[0] == (
        "layout.json has ranks 0, 1, 2, 5 in dp_1, and trace_rank_0 has ranks 0, 1, 2, 3"
    )


def test_without_a_dump_a_wait_names_nobody_and_says_what_would_tell(tmp_path: Path) -> None:
    row = (
        "[rank{0}]:[E1206 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600061 milliseconds before timing out."
    )
    (tmp_path / "job.log").write_text("".join(f"{row.format(rank)}\n" for rank in (0, 1, 3)))
    groups = {"0": {"desc": "default_pg", "ranks": [0, 1, 2, 3]}}
    found = left(tmp_path, {}, groups)
    assert found.causes[0].ranks is None
    missing = " ".join(map(str, found.missing))
    assert "no line from rank 2" in missing and "TORCH_FR_BUFFER_SIZE" in missing


def test_of_two_folders_of_dumps_the_fuller_is_read_whole(tmp_path: Path) -> None:
    whole, other = tmp_path / "whole", tmp_path / "other"
    for folder, ranks, start in ((whole, [0, 1, 2], 0), (other, [0, 1], 90)):
        folder.mkdir()
        for rank in ranks:
            told = dump(rank, ranks, DONE + (rank != 1), start=start)
            told["pg_config"] = {}
            (folder / f"fr_trace_{rank}.json").write_text(json.dumps(told))
    found = diagnosed(gather([tmp_path]))
    assert (found.causes[0].ranks, found.world_size) == ((1,), 3)
    assert notes(found) == [
        "the dumps in other are of another job than those in whole, or of another moment, and were "
        "left out: give the folder of one job"
    ]


def test_one_pickle_of_several_that_asks_for_a_program_is_named_with_what_it_asks(
    tmp_path: Path,
) -> None:
    (tmp_path / "fr_trace_0").write_bytes(pickle.dumps(os.getcwd))
    [note] = notes(diagnosed(gather([tmp_path])))
    assert "fr_trace_0 asks for posix.getcwd" in note


@pytest.mark.parametrize("name", ["dp", "mesh_dp"])
def test_groups_that_dumps_call_by_their_kind_are_the_layout_s(tmp_path: Path, name: str) -> None:
    pairs = {1: [0, 2], 2: [1, 3]}
    dumps = {
        f"trace_rank_{rank}": dump(rank, ranks, 9, name, number=number)
        for number, ranks in pairs.items()
        for rank in ranks
        if rank != 3
    }
    for each in dumps.values():
        each["pg_config"] = {}  # as gloo leaves it
    layout = {"schema": "serried.groups/1", "world_size": 4, "groups": {"dp": list(pairs.values())}}
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "groups.json").write_text(json.dumps(layout))
    found = left(folder, dumps)
    [waits] = found.causes[0].waiting
    assert (waits.rank, waits.waits_for) == (1, (3,))
    assert "dp_1" in str(found.causes[0].verdict)


def test_groups_of_a_layout_that_are_called_alike_stay_apart(tmp_path: Path) -> None:
    pairs = {1: [0, 2], 2: [1, 3]}
    dumps = {
        f"trace_rank_{rank}": dump(rank, ranks, 9 if rank != 3 else 8, "mesh_dp", number=number)
        for number, ranks in pairs.items()
        for rank in ranks
        if rank != 2
    }
    for each in dumps.values():
        each["pg_config"] = {}  # as gloo leaves it
    groups = {str(n): {"desc": "mesh_dp", "ranks": ranks} for n, ranks in pairs.items()}
    found = left(tmp_path, dumps, groups)
    assert notes(found) == []
    assert found.causes[0].ranks == (3,)
    assert "all_reduce 9 of mesh_dp [1, 3]" in str(found.causes[0].verdict)


def test_groups_of_a_layout_to_which_nobody_gave_a_name_are_told_apart_by_their_shape() -> None:
    ranks = {"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3], "5": [0, 1]}
    groups = {number: {"desc": "undefined", "ranks": each} for number, each in ranks.items()}
    given = given_groups({"groups": groups}, "layout.json").by_number
    kinds = [given[number].kind for number in ranks]
    assert kinds == [kinds[0], kinds[0], kinds[2], kinds[2], f"{kinds[0]} #2"]
    assert kinds[0] != kinds[2]
    assert len({group.name for group in given.values()}) == len(ranks)
