"""Of whom evidence tells: a rank that a hang has not reached yet was heard of all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.diagnose.causes.missing import beside_dumps
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

GROUPS = {
    "1": {"desc": "tp_0", "ranks": [0, 1]},
    "2": {"desc": "tp_1", "ranks": [2, 3]},
}


def leave(folder: Path, rank: int, calls: int, *, waits: bool, doing: str) -> None:
    """Writes a gloo dump and a stack of one rank."""
    number = str(1 + rank // 2)
    entries = [
        {
            "record_id": seq,
            "process_group": [number, GROUPS[number]["desc"]],
            "profiling_name": "gloo:all_reduce",
            "collective_seq_id": seq,
            "op_id": seq,
            "retired": not (waits and seq == calls),
            "input_sizes": [[8]],
            "input_dtypes": ["Float"],
            "time_created_ns": seq,
        }
        for seq in range(1, calls + 1)
    ]
    (folder / f"fr_trace_{rank}.json").write_text(json.dumps({"entries": entries}), "utf-8")
    stack = f'Thread 4 (active): "MainThread"\n    {doing}\n    main (train.py:9)\n'
    (folder / f"stack_rank_{rank}.txt").write_text(stack, "utf-8")


def test_ranks_that_a_hang_has_not_reached_were_heard_of(tmp_path: Path) -> None:
    layout = {"tp": 2, "dp": 2, "order": "tp-dp", "groups": GROUPS}
    (tmp_path / "layout.json").write_text(json.dumps(layout), "utf-8")
    leave(tmp_path, 0, 2, waits=False, doing="read_batch (train.py:4)")
    leave(tmp_path, 1, 3, waits=True, doing="all_reduce (torch/distributed/c10d.py:2)")
    leave(tmp_path, 2, 3, waits=False, doing="forward (train.py:6)")
    found = diagnosed(gather([tmp_path]))
    assert found.causes[0].ranks == (0,)
    assert [each.rank for each in found.causes[0].waiting] == [1]
    assert found.ranks_heard == (0, 1, 2)


def test_where_dumps_are_there_no_dumps_are_asked_for(tmp_path: Path) -> None:
    leave(tmp_path, 0, 3, waits=True, doing="all_reduce (torch/distributed/c10d.py:2)")
    leave(tmp_path, 1, 3, waits=True, doing="all_reduce (torch/distributed/c10d.py:2)")
    layout = {"tp": 2, "dp": 2, "order": "tp-dp", "groups": GROUPS}
    (tmp_path / "layout.json").write_text(json.dumps(layout), "utf-8")
    told = " ".join(map(str, diagnosed(gather([tmp_path])).missing))
    assert "no record of what each rank called" not in told


def test_a_stack_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    for rank, calls in ((0, 2), (1, 3)):
        leave(tmp_path, rank, calls, waits=True, doing="all_reduce (torch/distributed/c10d.py:2)")
    (tmp_path / "stack_rank_0.txt").unlink()
    state = gather([tmp_path]).state
    assert state is not None
    asked = [str(each) for each in beside_dumps(state, ())]
    assert [each.split(":")[0] for each in asked] == ["no stack of rank 0"]


def hang(folder: Path) -> None:
    """Writes a job of two ranks in which rank 1 is in code of its own."""
    folder.mkdir()
    (folder / "layout.json").write_text(
        json.dumps({"groups": {"1": {"desc": "tp_0", "ranks": [0, 1]}}}, indent=1), "utf-8"
    )
    leave(folder, 0, 3, waits=True, doing="all_reduce (torch/distributed/c10d.py:2)")
    leave(folder, 1, 2, waits=False, doing="read_batch (train.py:4)")


def test_what_breaks_off_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    hang(tmp_path / "job")
    for name in ("layout.json", "stack_rank_1.txt"):
        path = tmp_path / "job" / name
        path.write_bytes(path.read_bytes()[:-7])
    found = diagnosed(gather([tmp_path / "job"]))
    assert found.causes[0].ranks == (1,)
    assert [str(note) for note in found.notes] == [
        "layout.json breaks off or is damaged: it is no whole JSON",
        "stack_rank_1.txt breaks off within a stack; what came before was read",
    ]


def test_a_log_of_json_lines_whose_last_breaks_off_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_text('{"step": 1}\n{"step": 2}\n{"st', "utf-8")
    assert diagnosed(gather([tmp_path])).notes == ()


def test_folders_that_are_linked_to_are_read_once(tmp_path: Path) -> None:
    hang(tmp_path / "job")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "latest").symlink_to(tmp_path / "job", target_is_directory=True)
    (tmp_path / "job" / "above").symlink_to(tmp_path / "links", target_is_directory=True)
    linked = gather([tmp_path / "links"])
    assert diagnosed(linked).causes[0].ranks == (1,)
    assert len(gather([tmp_path]).sources) == len(linked.sources) == 5


def test_a_host_that_sent_nothing_to_a_collection_is_no_fault_of_the_job(tmp_path: Path) -> None:
    hang(tmp_path / "job")
    refused = "nothing whole came: ssh: connect to host node2 port 22: Connection refused"
    hosts = {"node1": {"host": "node1", "problem": None}}
    hosts["node2"] = {"host": "node2", "problem": refused}
    manifest = {"schema": "serried.collection/1", "hosts": hosts}
    (tmp_path / "job" / "manifest.json").write_text(json.dumps(manifest, indent=1), "utf-8")
    found = diagnosed(gather([tmp_path / "job"]))
    assert [cause.ranks for cause in found.causes] == [(1,)]
    assert [str(note) for note in found.notes] == [
        "nothing of host node2 is here: it sent nothing whole as the evidence was collected"
    ]


@pytest.mark.parametrize("name", ["pyspy.txt", "console.log"])
def test_stacks_whose_rank_nothing_tells_are_not_passed_over(name: str, tmp_path: Path) -> None:
    stack = 'Thread 4 (idle): "MainThread"\n    get (queue.py:170)\n    main (train.py:9)\n'
    (tmp_path / name).write_text(stack, "utf-8")
    [note] = diagnosed(gather([tmp_path])).notes
    assert f"{name} holds the stacks of a process, and nothing tells its rank" in str(note)


def test_many_logs_are_read_with_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serried.diagnose.gather.TOLD_EVERY", 1000)
    for rank in range(8):
        (tmp_path / f"log_{rank}.log").write_text("step 5\n" * 50, "utf-8")
    told: list[str] = []
    gather([tmp_path], lambda sentence: told.append(str(sentence)))
    assert told == [f"0.0 GB of {count} logs are read" for count in (3, 6)]
