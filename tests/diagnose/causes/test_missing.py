"""What to collect next, where what was read names nobody."""

from __future__ import annotations

from pathlib import Path

from serried.diagnose.causes.missing import all_have_come
from serried.diagnose.gather import gather
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document

PIPELINE = """Process {pid}: python train.py
Thread {pid} (idle): "MainThread"
    _wait_batch_p2p (torch/distributed/pipelining/schedules.py:{line})
    main (train.py:33)
"""
ALONE = """Process {pid}: python train.py
Thread {pid} (idle): "MainThread"
    read (train.py:{line})
"""
STOP = (
    "W1128 02:25:21.1 15676 torch/distributed/elastic/agent/server/api.py:753] "
    "Received 15 death signal, shutting down workers"
)


def missing(folder: Path, *stacks: str) -> list[str]:
    for rank, each in enumerate(stacks):
        text = each.format(pid=100 + rank, line=680 + rank)
        (folder / f"pyspy_rank_{rank}.txt").write_text(text)
    return [str(each) for each in diagnosed(gather([folder])).missing]


def test_ranks_that_all_stand_in_communication_are_to_be_looked_at_again(tmp_path: Path) -> None:
    [told] = missing(tmp_path, PIPELINE, PIPELINE, PIPELINE)
    assert told.startswith("all 3 ranks stood in torch's communication")
    (tmp_path / "console.log").write_text(STOP)
    [first, *_] = missing(tmp_path, PIPELINE, PIPELINE, PIPELINE)
    assert first.startswith("whose call is missing: use serried.guard()")


def test_a_rank_that_is_elsewhere_is_named_and_nothing_is_missing(tmp_path: Path) -> None:
    assert missing(tmp_path, PIPELINE, ALONE, PIPELINE) == []


def test_lines_of_own_code_hide_a_wait_and_no_stack_says_that_nothing_is_wrong(
    tmp_path: Path,
) -> None:
    [told] = missing(tmp_path, ALONE, ALONE, ALONE)
    assert told.startswith("the stacks of ranks 0, 1 and 2 end at lines of the job's own code")
    assert "--native" in told
    answer = diagnosis_document(diagnosed(gather([tmp_path])))
    assert answer["verdict"].startswith("what was read does not tell whether this job hangs")
    assert (answer["class"], answer["ranks"]) == ("no_fault", None)


def test_a_start_says_how_many_ranks_are_not_heard_of(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "Waiting in store based barrier to initialize process group for rank: 1, key: "
        "store_based_barrier_key:1 (world_size=16, worker_count=7, timeout=0:30:00)\n"
    )
    told = map(str, diagnosed(gather([log])).missing)
    assert any(each.startswith("no line from ranks 0 and 2-15:") for each in told)


def all_came(through: dict[int, int], size: int = 4) -> list[str]:
    """Ranks that have each issued two broadcasts, and stand in the one that ``through`` tells."""
    group = JobGroup("world", "world", tuple(range(size)))
    states = []
    for rank in range(size):
        at = through[rank]
        calls = [
            RankOperation("broadcast", "world", n, is_finished=n < at) for n in range(1, at + 1)
        ]
        states.append(RankState(rank, issued=tuple(calls), counts={"world": at}, doing=calls[-1]))
    return [str(each) for each in all_have_come(JobState.of(size, [group], states))]


def test_a_collective_that_some_are_through_and_others_not_is_named() -> None:
    [told] = all_came({0: 2, 1: 1, 2: 2, 3: 1})
    assert told.startswith("all have come to broadcast 1 of world and some are through it, but not")
    assert "not ranks 1 and 3: compare" in told
    assert all_came({0: 1, 1: 1, 2: 1, 3: 1}) == []
    assert all_came({0: 2, 1: 2, 2: 2, 3: 2}) == []
