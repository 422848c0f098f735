"""Guards' files alone tell the root: who waits in what, and what became of those who do not."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from serried.diagnose.diagnosis import CauseClass, Diagnosis
from serried.diagnose.evidence.records.guard_file import FAILED, LEFT, LIFE, LIFE_PLACE
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.runtime.guard.operations import OperationLog
from tests.diagnose.job_state.guarded_files import GuardedRanks


def first(found: Diagnosis) -> tuple[str, tuple[int, ...] | None, int]:
    cause = found.causes[0]
    return cause.kind, cause.ranks, len(cause.waiting)


def test_the_chain_goes_through_groups_that_have_no_names(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0)
    job.collective([2], 1, ends=False)  # for 3, which never comes
    job.collective([0, 1], 1)
    job.collective([0, 1], 2, ends=False)  # for 2 and 3
    found = job.diagnosis()
    assert first(found) == ("never_arrived", (3,), 3)
    assert [str(each) for each in found.causes[0].chain] == [
        "rank 1 waits in all_reduce 1 of group 4 [1, 3] for rank 3",
        "rank 2 waits in all_reduce 1 of group 2 [2, 3] for rank 3",
        "rank 0 waits in all_reduce 1 of group 3 [0, 2] for rank 2",
    ]


@pytest.mark.parametrize(
    ("letter", "kind"), [("T", "stopped"), ("t", "stopped"), ("gone", "dead"), ("Z", "dead")]
)
def test_a_neighbour_tells_what_became_of_a_rank_that_was_in_the_collective(
    letter: str, kind: str, tmp_path: Path
) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0, ends=False)
    job.neighbours(1, {0: "S", 2: letter, 3: "S"})
    assert first(job.diagnosis()) == (kind, (2,), 3)


STACKS = """Thread 0x{:016x} (most recent call first):
  File "torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "train.py", line 9 in main
"""


@pytest.mark.parametrize("cut", [0, 3])
def test_stacks_that_are_cut_off_are_no_sign_that_a_rank_was_gone(cut: int, tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path, boot="another host's")
    job.collective(range(4), 0)
    job.collective([0, 1, 3], 0, ends=False)
    for rank, log in enumerate(job.logs):
        text = STACKS.format(0)
        text = text if rank != 2 else "\n".join(text.split("\n")[::2])
        log.path.with_suffix(".stacks").write_text(text.rstrip("\n") + "\n")
        if rank == cut:
            life_later(log, -1)
    whole = job.diagnosis()
    assert first(whole)[:2] == ("stuck_in_user_code", (2,))
    torn = job.logs[cut].path.with_suffix(".stacks")
    torn.write_text(torn.read_text()[:20])
    found = job.diagnosis()
    assert first(found)[:2] == ("stuck_in_user_code", (2,))
    assert [str(note) for note in found.notes] == [
        f"{torn.name} breaks off within a stack: where its rank stood last is not known"
    ]


def test_a_guard_s_file_that_is_cut_off_accuses_nobody(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0)
    job.collective(range(4), 0, ends=False)
    torn = job.logs[3].path
    torn.write_bytes(torn.read_bytes()[:5000])
    found = job.diagnosis()
    assert first(found) == ("left_nothing", None, 3)
    assert [str(note)[:50] for note in found.notes] == [
        "rank-00003.guard breaks off before what its rank d"
    ]


def test_a_rank_that_gave_no_sign_of_life_for_longer_than_it_would_leave_stacks_in_is_gone(
    tmp_path: Path,
) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0, ends=False)
    for log in job.logs[:3]:
        life_later(log, 30)
    assert first(job.diagnosis()) == ("dead", (3,), 3)


def life_later(log: OperationLog, seconds: float) -> None:
    """Moves a rank's last sign of life on, as if it had lived for longer."""
    raw = bytearray(log.path.read_bytes())
    alive, wall, moved = LIFE.unpack_from(raw, LIFE_PLACE)
    more = int(seconds * 1e9)
    LIFE.pack_into(raw, LIFE_PLACE, alive + more, wall + more, moved)
    log.path.write_bytes(raw)


def test_a_rank_that_waited_with_the_others_before_it_was_killed_is_no_root(
    tmp_path: Path,
) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0)
    job.collective([0, 1, 2], 0, ends=False)
    for log in job.logs:
        life_later(log, 30)  # the whole job is ended one rank after the other, and 1 sees it
    job.neighbours(1, {0: "gone", 2: "gone", 3: "S"})
    assert first(job.diagnosis()) == ("never_arrived", (3,), 3)


def test_ranks_that_failed_because_a_peer_went_are_no_roots(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0, ends=False)
    job.end([0, 1, 3], FAILED)
    job.neighbours(0, {1: "S", 2: "gone", 3: "S"})
    job.neighbours(3, {0: "gone", 1: "gone", 2: "gone"})
    assert first(job.diagnosis()) == ("dead", (2,), 3)


def test_a_rank_that_ended_in_order_before_the_others_had_fewer_steps(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    job.collective([0, 1, 2], 0, ends=False)
    job.end([3], LEFT)
    assert first(job.diagnosis()) == ("finished_early", (3,), 3)


def pipeline_steps(job: GuardedRanks, count: int) -> None:
    """Four stages of one rank, each of which passes on two microbatches a step."""
    for step in range(count):
        job.begin_step(step)
        for rank in range(4):
            for _ in range(2):
                if rank:
                    job.message("recv", rank, rank - 1)
                if rank < 3:
                    job.message("send", rank, rank + 1)
        job.collective(range(4), 0)


def test_a_send_to_another_rank_than_in_the_steps_before_is_the_root(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    pipeline_steps(job, 3)
    job.begin_step(3)
    job.message("send", 0, 1)
    job.message("recv", 1, 0)
    job.message("send", 1, 3, ends=False)
    job.message("send", 0, 1, ends=False)
    job.message("recv", 2, 1, ends=False)
    job.message("recv", 3, 2, ends=False)
    found = job.diagnosis()
    assert first(found) == ("wrong_peer", (1,), 3)
    assert "a send to rank 3 where its steps before had a send to rank 2" in str(
        found.causes[0].verdict
    )


def test_a_receive_that_was_left_out_is_told_by_the_steps_before(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    pipeline_steps(job, 3)
    job.begin_step(3)
    for rank in (0, 1, 2):
        if rank:
            job.message("recv", rank, rank - 1)
        job.message("send", rank, rank + 1)
    job.message("recv", 3, 2)
    job.message("send", 0, 1)
    job.message("recv", 1, 0)
    job.message("send", 1, 2, ends=False)
    job.message("send", 2, 3)  # it did not wait for its second microbatch
    job.message("recv", 3, 2)
    job.collective([0, 2, 3], 0, ends=False)
    assert first(job.diagnosis())[:2] == ("receive_left_out", (2,))


def test_the_last_operation_of_a_step_left_out_by_a_rank_alone_in_its_stage(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    pipeline_steps(job, 3)
    job.begin_step(3)
    for rank in range(4):
        for _ in range(2):
            if rank:
                job.message("recv", rank, rank - 1)
            if rank < 3:
                job.message("send", rank, rank + 1)
    job.collective([0, 1, 2], 0, ends=False)
    job.logs[3].begin_step(4)
    job.message("recv", 3, 2, ends=False)
    assert first(job.diagnosis()) == ("skipped_collective", (3,), 3)


def test_another_size_is_charged_to_who_brought_it(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    for _ in range(3):
        job.collective(range(4), 1)
    job.collective([0, 2, 3], 1, ends=False)
    job.collective([1], 1, ends=False, numel=6)
    assert first(job.diagnosis())[:2] == ("mismatch_size", (1,))


def test_ranks_that_left_nothing_are_reasoned_about(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path)
    job.collective([0, 1, 2], 0, ends=False)
    job.remove([3])
    found = job.diagnosis()
    assert first(found) == ("left_nothing", None, 3)
    assert next(str(each) for each in found.missing).startswith("no line from rank 3: collect")


def test_two_runs_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path / "a")
    job.collective([0, 1, 2], 0, ends=False)
    other = GuardedRanks(tmp_path / "b", run="other")
    other.collective([0], 0, ends=False)
    other.remove([1, 2, 3])
    found = diagnosed(gather([tmp_path]))
    assert first(found)[:2] == ("never_arrived", (3,))
    assert [str(note) for note in found.notes] == [
        "rank-00000.guard: left by a guard in another run (other) than the last, and left out "
        "with what lies beside"
    ]


@pytest.mark.parametrize("run", ["monday", "run"])
def test_what_an_earlier_run_of_more_ranks_left_is_not_read(run: str, tmp_path: Path) -> None:
    # torchrun gives runs the same name where it is given none: then the times tell.
    job = GuardedRanks(tmp_path)
    job.collective([0, 1, 3], 0, ends=False)
    GuardedRanks(tmp_path / "monday", run=run)
    for rank, to in ((2, 4), (3, 5)):
        guard = tmp_path / "monday" / f"rank-{rank:05d}.guard"
        data = bytearray(guard.read_bytes())
        data[LIFE_PLACE : LIFE_PLACE + LIFE.size] = LIFE.pack(5, WEEK_AGO_NS + 9, 5)
        begun = re.search(rb'"wall_ns": (\d+)', data)
        assert begun
        data[slice(*begun.span(1))] = str(WEEK_AGO_NS).encode()
        (tmp_path / f"rank-{to:05d}.guard").write_bytes(data)
        failed(tmp_path, to, "torch.OutOfMemoryError: CUDA out of memory.")
    shutil.rmtree(tmp_path / "monday")
    found = job.diagnosis()
    assert first(found)[:2] == ("never_arrived", (2,))
    assert len(found.causes) == 1
    assert f"in another run ({run}) than the last" in str(found.notes[0])


def test_of_a_job_that_was_started_anew_the_last_attempt_counts(tmp_path: Path) -> None:
    earlier = GuardedRanks(tmp_path / "a")
    earlier.collective([1, 2, 3], 0, ends=False)
    last = GuardedRanks(tmp_path / "b", attempt=1)
    last.collective([0, 1, 2], 0, ends=False)
    found = diagnosed(gather([tmp_path]))
    assert first(found)[:2] == ("never_arrived", (3,))
    assert "are of attempts before restart 1 of the job" in str(found.notes[0])


WEEK_AGO_NS = time.time_ns() - 7 * 86_400 * 10**9
IN_COLLECTIVE = '  File "/torch/distributed/distributed_c10d.py", line 3231, in all_reduce\n'


def failed(folder: Path, rank: int, error: str, inside: str = "") -> None:
    """Leaves the exception that ended a rank, ``inside`` what its own code called."""
    first = f"# 2026-01-01T00:00:00Z rank {rank}, step 3, wall_ns 1767225600000000000\n"
    frame = '  File "/train.py", line 9, in save\n'
    text = f"{first}Traceback (most recent call last):\n{frame}{inside}{error}\n"
    (folder / f"rank-{rank:05d}.failed").write_text(text)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("OSError: [Errno 28] No space left on device: '/ckpt/a.pt'", "disk_full"),
        ("RuntimeError: basic_ios::clear: iostream error", "write_failed"),
    ],
)
def test_the_rank_whose_disk_is_full_is_named_and_the_class_is_storage(
    error: str, kind: str, tmp_path: Path
) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0)
    job.collective([0, 1, 3], 0, ends=False)
    job.end([2], FAILED)
    failed(tmp_path, 2, error)
    cause = job.diagnosis().causes[0]
    assert (cause.cause_class, cause.kind, cause.ranks) == (CauseClass.STORAGE, kind, (2,))
    assert len(cause.waiting) == 3


def test_a_rank_that_a_signal_ended_while_others_lost_their_connection_is_dead(
    tmp_path: Path,
) -> None:
    job = GuardedRanks(tmp_path)
    job.collective(range(4), 0)
    job.collective([0, 1, 3], 0, ends=False)
    job.end([0, 1, 3], FAILED)
    for rank in (0, 1, 3):
        closed = "RuntimeError: Read error [::1]:4: Connection reset by peer"
        failed(tmp_path, rank, closed, IN_COLLECTIVE)
    stack = 'Current thread 0x0 (most recent call first):\n  File "/train.py", line 9 in load\n'
    (tmp_path / "rank-00002.stacks").write_text(stack)
    assert first(job.diagnosis()) == ("dead", (2,), 3)
    # Where they ran into their limit instead, it was still there, in code of its own.
    for rank in (0, 1, 3):
        late = "RuntimeError: Timed out waiting 20000ms for recv operation to complete"
        failed(tmp_path, rank, late, IN_COLLECTIVE)
    assert first(job.diagnosis()) == ("stuck_in_user_code", (2,), 3)
