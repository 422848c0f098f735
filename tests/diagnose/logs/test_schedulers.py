"""What Slurm, Kubernetes and Ray say of a job: who is named, what only follows, what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

DESCRIBED = """\
Name:             llama-worker-3
Namespace:        training
Node:             gpu-17/10.42.3.17
Status:           Failed
Containers:
  pytorch:
    State:          Terminated
      Reason:       {reason}
      Exit Code:    {code}
      Finished:     Tue, 04 Mar 2025 11:40:19 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
    Ready:          False
Events:
  Warning  BackOff  2m (x8 over 4m)  kubelet  Back-off restarting failed container
"""
SWEPT = """\
srun: error: node003: task 17: Exited with exit code 1
srun: Terminating job step 184223.0
slurmstepd: error: *** STEP 184223.0 ON node001 CANCELLED AT 2025-03-04T11:40:19 ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: error: node001: tasks 0-7: Killed
srun: error: node002: tasks 8-15: Terminated
"""
ACCOUNTED = """\
JobID           JobName      State ExitCode        Elapsed
------------ ---------- ---------- -------- --------------
184225        llama-70b {state:>10}    {code} 2-00:00:17
184225.batch      batch  CANCELLED     0:15     2-00:00:18
184225.0         python  CANCELLED     0:15     2-00:00:20
"""


def told(tmp_path: Path, text: str) -> Diagnosis:
    path = tmp_path / "said.txt"
    path.write_text(text, "utf-8")
    return diagnosed(gather([path]))


def test_a_described_pod_is_named_and_its_earlier_start_is_not_told(tmp_path: Path) -> None:
    found = told(tmp_path, DESCRIBED.format(reason="OOMKilled", code=137))
    assert len(found.causes) == 1
    assert "on llama-worker-3" in str(found.causes[0].verdict)
    assert found.causes[0].cause_class.value == "host_oom"


@pytest.mark.parametrize(
    ("code", "kind"), [(139, "segfault"), (143, "sigterm"), (137, "rank_kill")]
)
def test_an_exit_code_of_a_pod_is_a_signal(tmp_path: Path, code: int, kind: str) -> None:
    [cause] = told(tmp_path, DESCRIBED.format(reason="Error", code=code)).causes
    assert cause.kind.startswith(kind)
    assert cause.cures


def test_an_exit_code_is_read_from_yaml_too(tmp_path: Path) -> None:
    [cause] = told(tmp_path, "    state:\n      terminated:\n        exitCode: 139\n").causes
    assert cause.kind == "segfault"


def test_a_pod_that_a_table_lists_is_named(tmp_path: Path) -> None:
    table = "NAME  READY  STATUS  RESTARTS  AGE\nllama-worker-1   0/1   {status}   0   3h\n"
    oom = told(tmp_path, table.format(status="OOMKilled")).causes[0]
    assert "llama-worker-1" in str(oom.verdict)
    failed = told(tmp_path, table.format(status="Error")).causes[0]
    assert (failed.kind, failed.ranks) == ("exit_code", None)
    assert told(tmp_path, table.format(status="Running")).causes == ()


def test_an_evicted_pod_ended_for_what_its_node_was_low_on(tmp_path: Path) -> None:
    row = "14m  Warning  Evicted  pod/worker-2  The node was low on resource: ephemeral-storage.\n"
    [cause] = told(tmp_path, row).causes
    assert cause.cause_class.value == "storage"
    assert "worker-2: the node was low on ephemeral-storage" in str(cause.verdict)


def test_a_node_that_is_not_ready_is_named(tmp_path: Path) -> None:
    row = "6m  Normal  NodeNotReady  node/gpu-17  Node gpu-17 status is now: NodeNotReady\n"
    assert str(told(tmp_path, row).causes[0].verdict) == "node gpu-17 was lost"


def test_tasks_that_slurm_kills_as_it_clears_up_are_innocent(tmp_path: Path) -> None:
    found = told(tmp_path, SWEPT)
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("exit_code", (17,))]


def test_tasks_that_are_killed_before_a_step_is_cancelled_are_named(tmp_path: Path) -> None:
    rows = SWEPT.splitlines()
    found = told(tmp_path, "\n".join(["srun: error: node003: task 17: Killed", *rows[1:]]))
    assert (found.causes[0].kind, found.causes[0].ranks) == ("rank_killed", (17,))


def test_the_task_of_which_slurm_says_that_memory_ran_out_is_named(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        "slurmstepd: error: Detected 3 oom_kill events in StepId=184224.0.\n"
        "srun: error: node002: task 9: Out Of Memory\n",
    )
    assert len(found.causes) == 1
    assert "task 9 on node002" in str(found.causes[0].verdict)


@pytest.mark.parametrize(
    ("state", "code", "kind", "words"),
    [
        ("TIMEOUT", "0:0", "cancelled", "its time limit ran out"),
        ("PREEMPTED", "0:15", "cancelled", "another job took its place"),
        ("CANCELLED by 104", "0:0", "cancelled", "user 104 cancelled the job"),
        ("FAILED", "1:0", "exit_code", "failed with code 1"),
        ("FAILED", "0:11", "segfault", "segmentation fault"),
        ("NODE_FAIL", "1:0", "node_lost", "a node was lost"),
        ("OUT_OF_ME+", "0:125", "host_oom_sigkill", "memory"),
    ],
)
def test_slurms_accounting_tells_how_a_job_ended(
    tmp_path: Path, state: str, code: str, kind: str, words: str
) -> None:
    found = told(tmp_path, ACCOUNTED.format(state=state, code=code))
    assert found.causes[0].kind == kind
    assert words in str(found.causes[0].verdict)
    assert found.causes[0].cures
    assert {quote.line for quote in found.causes[0].quotes} == {3}


def test_a_job_that_slurm_calls_completed_has_no_fault(tmp_path: Path) -> None:
    rows = "184225  llama-70b  COMPLETED  0:0  01:00:17\n184225.0  python  COMPLETED  0:0  01:00\n"
    assert told(tmp_path, rows).causes == ()


def test_what_slurm_shows_of_a_job_is_read(tmp_path: Path) -> None:
    row = "   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)\n"
    assert "time limit" in str(told(tmp_path, row).causes[0].verdict)


def test_the_process_that_ray_lost_is_named(tmp_path: Path) -> None:
    row = (
        "(raylet, ip=10.0.0.7) A worker died or was killed while executing a task by an unexpected "
        "system error. Worker IP address: 10.0.0.7 Worker port: 10123 Worker PID: 91234 Worker "
        "exit type: SYSTEM_ERROR\n"
    )
    assert str(told(tmp_path, row).causes[0].verdict).startswith("process 91234 on 10.0.0.7")


def test_the_rank_of_a_summary_is_named_rather_than_its_number_on_the_node(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        "E0304 api.py:869] failed (exitcode: -11) local_rank: 3 (pid: 4004) of binary: python\n"
        "Root Cause (first observed failure):\n[0]:\n  host      : gpu-17\n"
        "  rank      : 11 (local_rank: 3)\n  exitcode  : -11 (pid: 4004)\n",
    )
    assert str(found.causes[0].verdict).startswith("rank 11 on gpu-17 crashed")


def test_tasks_that_slurm_kills_after_another_ended_by_itself_are_not_accused(
    tmp_path: Path,
) -> None:
    own = "srun: error: node1: tasks 0-1: Exited with exit code 14\n"
    rest = "srun: error: node2: tasks 4-7: Killed\n"
    after, before = told(tmp_path, own + rest).causes[0], told(tmp_path, rest + own).causes[0]
    assert after.kind == "exit_code"
    assert (before.kind, before.ranks) == ("rank_killed", (4, 5, 6, 7))


def test_in_a_list_of_exit_codes_the_killed_rank_is_named_and_no_first(tmp_path: Path) -> None:
    """Whoever wrote the list put the ranks in their order, not in that of their ends."""
    codes = [1, 0, 137, 1]
    rows = "".join(f"rank {rank} exit code {code}\n" for rank, code in enumerate(codes))
    assert told(tmp_path, rows).causes[0].ranks == (2,)
    found = told(tmp_path, rows.replace("137", "2"))
    assert [cause.ranks for cause in found.causes] == [None]
    assert told(tmp_path, "rank 0: exit code 0\nrank 1: exit code 0\n").causes == ()


def test_an_abort_of_mpi_stands_before_the_signal_that_stops_the_rest(tmp_path: Path) -> None:
    rows = "n1: rank 27419 died from signal 6\nn2: rank 48107 died from signal 15\n"
    found = told(tmp_path, rows).causes[0]
    assert (found.kind, found.ranks) == ("aborted", None)
    thrown = "  what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n"
    rows = "terminate called after throwing an instance of 'thrust::bad_alloc'\n" + thrown
    assert told(tmp_path, rows + "n1: rank 3 died from signal 6\n").causes[0].ranks == (3,)


def test_a_code_that_holds_a_signal_as_a_byte_is_that_signal(tmp_path: Path) -> None:
    row = "pdsh@host-0: 10.0.0.9: ssh exited with exit code 250\n"
    assert told(tmp_path, row).causes[0].kind == "aborted"
