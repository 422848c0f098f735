"""Rules of logs that are easily broken: whose number it is, what only follows, who is behind."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import serried
from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.quote import Numbering
from serried.diagnose.evidence.text.reader import text_signs
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.sentences import say

TIMEOUT = (
    "[rank{rank}]:[E1206 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, "
    "Timeout(ms)=600000) ran for 600061 milliseconds before timing out."
)
STATUS = (
    "[rank{rank}]:[E1206 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
    "Exception (either an error or timeout) detected by watchdog at work: {seq}, last enqueued "
    "NCCL work: {seq}, last completed NCCL work: {done}."
)


def first_cause(*rows: str) -> Cause:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return next(cause for _, cause in standing_causes(list(text_signs(lines))))


def waiting(rank: int, seq: int, op: str = "ALLREDUCE", numel: int = 64) -> list[str]:
    return [
        TIMEOUT.format(rank=rank, seq=seq, op=op, numel=numel),
        STATUS.format(rank=rank, seq=seq, done=seq - 1),
    ]


def test_the_rank_that_stayed_behind_is_named() -> None:
    cause = first_cause(
        *(row for r, s in ((0, 8), (1, 8), (2, 7), (3, 8)) for row in waiting(r, s))
    )
    assert (cause.kind, cause.ranks) == ("never_arrived", (2,))


def test_a_rank_that_ended_because_a_peer_had_ended_is_not_named_by_its_exit_code() -> None:
    closed = "[rank2]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer"
    ended = "E1128 12:46:33.1 29 api.py:1002] failed (exitcode: 1) local_rank: {} (pid: 31)"
    first = ("Root Cause (first observed failure):", "  rank      : {} (local_rank: {})")
    for rank, ranks in ((2, None), (1, (1,))):
        rows = [closed, ended.format(rank), first[0], first[1].format(rank, rank)]
        assert first_cause(*rows, "  exitcode  : 1 (pid: 31)").ranks == ranks


def test_a_launchers_traceback_tells_that_the_first_to_end_had_lost_a_peer() -> None:
    summary = [
        "Root Cause (first observed failure):",
        "  rank      : 0 (local_rank: 0)",
        "  exitcode  : 1 (pid: 31)",
        "  traceback : Traceback (most recent call last):",
        '    File "train.py", line 12, in main',
        "      dist.barrier()",
    ]
    lost = (
        "  RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:80"
    )
    assert first_cause(*summary, lost).ranks is None
    assert first_cause(*summary, "  ValueError: no such batch").ranks == (0,)


def test_few_among_many_brought_another_call() -> None:
    rows = [row for r in (0, 1, 3) for row in waiting(r, 8)]
    cause = first_cause(*rows, *waiting(2, 8, "ALLGATHER"))
    assert (cause.kind, cause.ranks) == ("mismatch_op", (2,))
    assert cause.collective is not None
    assert cause.collective.op == "ALLREDUCE|ALLGATHER"


def test_of_two_sizes_neither_is_accused() -> None:
    cause = first_cause(*waiting(0, 8, numel=500), *waiting(1, 8, numel=400))
    assert (cause.kind, cause.ranks) == ("mismatch_size", None)


def test_groups_without_an_identity_are_not_compared() -> None:
    rows = [row.replace("PG ID 0 PG GUID 0(default_pg)", "PG 3") for row in waiting(0, 8)]
    others = [row.replace("PG ID 0 PG GUID 0(default_pg)", "PG 3") for row in waiting(5, 7)]
    others[1] = others[1].replace("PG 3 Rank 5", "PG 3 Rank 1")
    assert first_cause(*rows, *others).ranks is None


@pytest.mark.parametrize(
    ("row", "kind", "ranks"),
    [
        (
            "ERROR:torch: failed (exitcode: -9) local_rank: 3 (pid: 7) of binary: p",
            "rank_killed",
            (3,),
        ),
        ("[1,2]<stdout>: ValueError: x", "exception", (2,)),
        ("srun: error: n1: task 3: Killed", "rank_killed", (3,)),
        ("srun: error: n1: tasks 1-2,5: Out Of Memory", "host_oom_sigkill", (1, 2, 5)),
        ("srun: error: n1: tasks 1-2: Exited with exit code 1", "exit_code", None),
        ("srun: error: n1: tasks 3: Exited with exit code 1", "exit_code", (3,)),
        ("[rank2]: RuntimeError: CUDA Error: out of memory at x.cpp:62", "gpu_oom", (2,)),
        ("CUDA error: 2", "gpu_oom", None),
        (" 6%|# | 3/9 [04:47<1:10:53, 13.82it/s]Killed", "host_oom_sigkill", None),
        ("x.cpp: NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)", "hw_init", None),
        (
            "mpirun noticed that process rank 7 with PID 9 on node n exited on signal 6",
            "aborted",
            None,
        ),
        ("Stalled ops: allreduce.0 [missing ranks: 1, 3]", "never_arrived", (1, 3)),
        ("salloc: error: Node failure on worker-1", "node_lost", None),
        ("slurmstepd: error: execve(): /tmp/x: No such file or directory", "launch_failed", None),
        ("[9] _job_complete: JobId=7 WTERMSIG 9", "rank_killed", None),
        ("NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out", "hw_gsp", None),
        ("RuntimeError: Application timeout caused pair closure", "timeout_unknown", None),
        ("[rank1]: RuntimeError: Detected mismatch betw", "mismatch_op", None),
        (
            "[rank0]: RuntimeError: [enforce fail at inline_container.cc:7] P",
            "file_system",
            None,
        ),
        ("a [missing ranks: 1], b [missing ranks: 0]", "mismatch_op", None),
        ("a [ready ranks: 3], b [ready ranks: 0, 1, 2]", "mismatch_op", None),
        ("allreduce.0 [ready ranks: 5, 1, 2]", "never_arrived", None),
        ("x: Task /job:w/replica:0/task:37 heartbeat timeout.", "node_lost", (37,)),
        ("[rank: 1] Child process with PID 5 terminated with code -9.", "rank_killed", (1,)),
        (
            "mpirun noticed that process rank 4 with PID 9 on node n1 exited on signal 11 (x).",
            "segfault",
            (4,),
        ),
        ("[rank2]: OSError: [Errno 12] Cannot allocate memory", "host_oom", (2,)),
        ("(Worker pid=5, ip=10.0.0.7) ValueError: x", "exception", None),
        ("Exception: process 3 terminated with signal SIGSEGV", "segfault", (3,)),
        ("[n1:5] Signal: Segmentation fault (11)", "segfault", None),
        ("['p', '--local_rank=7'] exits with return code = 1", None, None),
    ],
)
def test_a_rank_is_read_from_whoever_prints_it(
    row: str, kind: str | None, ranks: tuple[int, ...] | None
) -> None:
    if kind is None:
        row = f"[ERROR] [launch.py:321:sigkill_handler] {row}"
    cause = first_cause(row)
    assert cause.ranks == ranks
    assert kind is None or cause.kind == kind


def test_a_spawned_process_is_named_by_the_line_above_its_traceback() -> None:
    spawned = "-- Process 2 terminated with the following error:"
    begins, why = "Traceback (most recent call last):", "ValueError: bad label"
    assert first_cause(spawned, begins, '  File "a.py", line 3, in f', why).ranks == (2,)
    assert first_cause(spawned, begins, "RuntimeError: CUDA out of memory.").ranks == (2,)
    assert first_cause(spawned, begins, "EOFError", "", "step 3", why).ranks is None


def test_tasks_that_a_barrier_missed_are_named_by_whether_it_was_the_start() -> None:
    task = "/job:jax_worker/replica:0/task:6"
    start = first_cause("Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed out:", task)
    later = first_cause("Barrier timed out. Barrier_id: sync0. Timed out task names:", task)
    assert (start.kind, start.ranks) == ("init_rendezvous", (6,))
    assert (later.kind, later.ranks) == ("never_arrived", (6,))


def test_an_abort_beside_the_watchdogs_words_is_a_hang_that_names_nobody() -> None:
    cause = first_cause(
        "[rank4]:[E603 P.cpp:5] Observed flight recorder dump signal from another rank",
        "E0603 04:19:17 4 api.py:874] failed (exitcode: -6) local_rank: 1 (pid: 107) of x",
    )
    assert (cause.kind, cause.ranks) == ("timeout_unknown", None)


def test_of_several_ranks_that_exited_none_is_named() -> None:
    rows = ["Failures:", "  rank : 1 (local_rank: 1)", "  exitcode : 1 (pid: 7)"]
    root = ["Root Cause (first observed failure):", "  rank : 0 (local_rank: 0)"]
    assert first_cause(*rows, *root, "  exitcode : 1 (pid: 6)").ranks is None
    assert first_cause(*root, "  exitcode : 1 (pid: 6)").ranks == (0,)


def test_who_ended_first_beside_a_hang_of_nobody_is_no_culprit(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "[rank1]:[E1 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=6000) "
        "ran for 6100 milliseconds before timing out.\n"
        "E1002 api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 77) of binary: python\n",
        encoding="utf-8",
    )
    causes = diagnosed(gather([tmp_path])).causes
    assert [(cause.kind, cause.ranks) for cause in causes] == [
        ("timeout_unknown", None),
        ("exit_code", None),
    ]


def test_a_stalled_rank_of_horovods_is_named_and_two_in_other_calls_are_not() -> None:
    stalled = ("Stalled ranks:", "6: [allreduce.0, allreduce.1 ...]")
    assert first_cause(*stalled).ranks == (6,)
    assert first_cause(*stalled, "2: [broadcast.4 ...]").ranks is None


def test_what_follows_is_never_the_root() -> None:
    cause = first_cause(
        "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer "
        "[10.0.0.3]:28048",
        "[rank1]: ValueError: bad label",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    )
    assert (cause.kind, cause.ranks) == ("exception", (1,))


def test_an_xid_that_follows_another_gives_way_to_it() -> None:
    cause = first_cause(
        "NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 00000001",
        "NVRM: Xid (PCI:0000:dc:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    )
    assert str(cause.verdict).startswith("GPU 0000:dc:00 reports Xid 79")


def test_the_meaning_of_an_xid_is_said_in_chinese_too() -> None:
    cause = first_cause("NVRM: Xid (PCI:0000:dc:00): 79, pid=1, GPU has fallen off the bus.")
    assert say(cause.verdict, "zh") == "GPU 0000:dc:00 报告 Xid 79：GPU 掉卡（从总线上消失）"


def test_a_sentence_that_names_ranks_holds_of_one_and_of_several() -> None:
    of_one = re.compile(
        r"\{who\} (?:is|was|has|does|waits|runs)\b|\{who\} [^:;,]*\b(?:its|their)\b"
    )
    words = (Path(serried.__file__).parent / "diagnose" / "causes" / "logs").glob("*.py")
    trees = [ast.parse(path.read_text("utf-8")) for path in words]
    texts = [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert any("{who}" in text for text in texts)
    assert [text for text in texts if of_one.search(text)] == []


@pytest.mark.parametrize(
    ("named", "numbering"),
    [
        ("Rank 3", Numbering.GROUP),
        ("PG 0 (default_pg) Rank 3", Numbering.GROUP),
        ("PG ID 0 PG GUID 0(default_pg) Rank 3", Numbering.GROUP),
        ("PG 2 Rank 3", Numbering.SUBGROUP),
        ("PG ID 2 PG GUID 5(tp_1) Rank 3", Numbering.SUBGROUP),
    ],
)
def test_a_group_rank_is_not_a_global_one(named: str, numbering: Numbering) -> None:
    line = log_line(f"[E ProcessGroupNCCL.cpp:9] [{named}] x", "a", 1)
    assert (line.speaker.rank, line.speaker.numbering) == (3, numbering)
    assert line.speaker.global_rank is None


@pytest.mark.parametrize(("group", "ranks"), [("0 PG GUID 0", (1,)), ("2 PG GUID 5", None)])
def test_a_rank_of_a_group_that_is_not_the_default_one_is_no_culprit(
    group: str, ranks: tuple[int, ...] | None
) -> None:
    ended = "Process group watchdog thread terminated with exception: CUDA error: an illegal"
    row = f"  what():  [PG ID {group} Rank 1] {ended} memory access was encountered"
    assert first_cause(row).ranks == ranks


@pytest.mark.parametrize(
    ("raised", "ranks"),
    [
        ("shape mismatch", (2,)),
        ("TP rank 2 is loaded, but there are other ranks that are not", None),
    ],
)
def test_a_traceback_in_one_record_is_whose_the_record_is(
    raised: str, ranks: tuple[int, ...] | None
) -> None:
    prefix = "[2025-05-26 07:48:17 DP1 TP2]"
    rows = (
        f"{prefix} Scheduler hit an exception: Traceback (most recent call last):",
        '  File "a.py", line 3, in run',
        f"RuntimeError: {raised}",
    )
    assert first_cause(*rows).ranks == ranks


def test_a_healthy_log_of_many_lines_says_nothing(tmp_path: Path) -> None:
    row = " iteration {n}/ 9000 | learning rate: 2.9E-04 | grad norm: 0.4 | nan iterations:   0 |\n"
    (tmp_path / "job.log").write_text("".join(row.format(n=n) for n in range(3000)))
    assert not gather([tmp_path]).signs


SILENT = (
    "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while "
    "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
)


def test_in_a_monitored_barrier_whom_its_first_rank_missed_is_named() -> None:
    missed = "[rank0]: RuntimeError: Rank 2 failed to pass monitoredBarrier in 30000 ms"
    for rows in ((missed, f"[rank1]: {SILENT}"), (f"[rank1]: {SILENT}", missed)):
        assert first_cause(*rows).ranks == (2,)


def test_in_a_monitored_barrier_the_first_rank_is_named_only_where_it_did_not_come() -> None:
    late = "[gloo/transport/tcp/unbound_buffer.cc:133] Timed out waiting 1800000ms for send"
    left = "[gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:5"
    assert first_cause(SILENT, " Original exception:", late).ranks == (0,)
    gone = first_cause(SILENT, " Original exception:", left)
    assert (gone.kind, gone.ranks) == ("never_arrived", None)


def test_a_monitored_barriers_first_rank_is_not_named_where_another_may_be_missing() -> None:
    """All limits run out at once, and who counts may be the last to say so."""
    waited = [f"[rank{rank}]: {SILENT.replace('Rank 1', f'Rank {rank}')}" for rank in (1, 2)]
    assert first_cause(*waited).ranks == (0,)
    other = "[rank3]: RuntimeError: Connection reset by peer"
    silent = first_cause(*waited, other)
    assert (silent.kind, silent.ranks) == ("never_arrived", None)
    assert str(silent.verdict).startswith("rank 0, for which the others wait")


def test_a_start_is_stuck_once_its_ranks_wait_long_or_are_too_many_or_nothing_follows() -> None:
    row = (
        "Waiting in store based barrier to initialize process group for rank: {rank}, key: "
        "store_based_barrier_key:1 (world_size=4, worker_count={joined}, timeout=0:30:00)"
    )
    once = [row.format(rank=rank, joined=2) for rank in (0, 1)]
    passed = "Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 nodes."
    assert first_cause(*once * 4).kind == "init_rendezvous"
    assert first_cause(row.format(rank=0, joined=5)).kind == "init_rendezvous"
    last = first_cause(*once)
    assert (last.kind, last.ranks) == ("init_rendezvous", None)
    assert str(last.verdict) == "2 ranks came to a start of 4: ranks 0 and 1 still waited there"
    for rows in ([*once, "epoch 1"], [*once * 4, passed]):
        lines = (log_line(text, "job.log", number) for number, text in enumerate(rows, 1))
        assert not list(standing_causes(list(text_signs(lines))))


@pytest.mark.parametrize(
    ("size", "joined", "key", "speakers", "ranks"),
    [
        (2, 1, "1", (0,), (1,)),
        (4, 2, "1", (0, 3), (1, 2)),
        (4, 2, "1", (0,), None),  # who else came is in no line
        (2, 1, "32", (0,), None),  # a later group, whose ranks have numbers of their own
        (2, 1, "1", (2,), None),
        (2, 4, "1", (0,), None),
    ],
)
def test_who_did_not_come_to_a_start_is_named_where_all_who_came_say_so(
    size: int, joined: int, key: str, speakers: tuple[int, ...], ranks: tuple[int, ...] | None
) -> None:
    cause = first_cause(
        *(
            f"RuntimeError: Timed out initializing process group in store based barrier on rank: "
            f"{rank}, for key: store_based_barrier_key:{key} (world_size={size}, "
            f"worker_count={joined}, timeout=0:30:00)"
            for rank in speakers
        )
    )
    assert (cause.kind, cause.ranks) == ("init_rendezvous", ranks)


def test_counters_alone_tell_the_number_that_is_open_and_no_rank_behind() -> None:
    row = (
        "[rank{rank}]:[E1206 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank "
        "{rank}] Received a dump signal due to a collective timeout from  rank 1 and we will try "
        "our best to dump the debug info. Last enqueued NCCL work: {last}, last completed NCCL "
        "work: {done}."
    )
    cause = first_cause(*(row.format(rank=r, last=9, done=7 + r % 2) for r in range(3)))
    assert cause.ranks is None
    assert cause.collective is not None
    assert (cause.collective.seq, cause.collective.group) == (8, "default_pg")
    first = first_cause(row.format(rank=0, last=1, done=-1)).collective
    assert first is not None and first.seq == 1


def test_a_message_is_read_that_was_broken_between_its_words() -> None:
    cause = first_cause(
        "[E329 19:15:11.775879730 ProcessGroupNCCL.cpp:565] [Rank 0] Watchdog",
        "caught collective operation timeout: WorkNCCL(SeqNum=2,",
        "OpType=ALLREDUCE, NumelIn=10, NumelOut=10, Timeout(ms)=10000) ran for",
        "10028 milliseconds before timing out.",
    )
    assert cause.collective is not None
    assert (cause.collective.op, cause.collective.seq) == ("ALLREDUCE", 2)
    assert cause.collective.ran_ms == 10028


def test_each_rank_that_a_bus_error_ended_is_named_and_no_rank_that_was_stopped() -> None:
    head = ["Failures:", "[1]:", "  rank      : {other} (local_rank: {other})"]
    rows = [*head, "  exitcode  : {code} (pid: 7)", "Root Cause (first observed failure):", "[0]:"]
    rows += ["  rank      : 0 (local_rank: 0)", "  exitcode  : -7 (pid: 6)"]
    assert first_cause(*(row.format(other=3, code=-7) for row in rows)).ranks == (0, 3)
    assert first_cause(*(row.format(other=3, code=-15) for row in rows)).ranks == (0,)


def test_a_start_anew_in_the_middle_of_a_log_is_said(tmp_path: Path) -> None:
    rows = [
        "[rank6]: ValueError: bad label",
        "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 2/3 "
        "attempts left; will restart worker group",
        "step 1",
        *waiting(1, 4),
    ]
    (tmp_path / "job.log").write_text("\n".join(rows) + "\n")
    found = gather([tmp_path])
    assert [str(note).split(":")[0] for note in found.notes] == [
        "job.log holds 2 starts of the job, the last from line 2 on"
    ]
    assert next(iter(standing_causes(found.signs)))[1].ranks == (6,)


@pytest.mark.parametrize(
    ("rows", "kind", "ranks"),
    [
        (["  rank      : 3 (local_rank: 3)", "  exitcode  : 1 (pid: 6"], "exit_code", (3,)),
        (["  rank      : 3 (local_rank: 3)", "  exi"], "exit_code", (3,)),
        (["rank3 (local rank: 3)exitcode: -9 (pid: 77)error file: <N/A>"], "rank_killed", (3,)),
    ],
)
def test_a_table_of_failures_is_read_where_it_breaks_off_or_its_lines_were_joined(
    rows: list[str], kind: str, ranks: tuple[int, ...]
) -> None:
    cause = first_cause("Root Cause (first observed failure):", "[0]:", *rows)
    assert (cause.kind, cause.ranks) == (kind, ranks)


def test_the_row_that_a_table_breaks_off_in_ended_as_all_others_did() -> None:
    rows = ["Failures:", "[1]:", "  rank      : 1 (local_rank: 1)", "  exitcode  : -7 (pid: 7)"]
    cut = ["Root Cause (first observed failure):", "[0]:", "  rank      : 0 (local_rank: 0)"]
    assert first_cause(*rows, *cut).ranks == (0, 1)


def test_a_rank_of_a_node_that_was_lost_is_named() -> None:
    ended = "prterun has exited due to process rank 2 with PID 9 on node cn{node} exiting"
    lost = [
        "PRTE has lost communication with a remote daemon.",
        "  HNP daemon   : [prterun-cn4-7@0,0] on node cn4",
        "  Remote daemon: [prterun-cn4-7@0,1] on node cn32",
    ]
    of_it, of_another = (first_cause(*lost, ended.format(node=node)) for node in (32, 4))
    assert (of_it.kind, of_it.ranks) == ("node_lost", (2,))
    assert (of_another.kind, of_another.ranks) == ("node_lost", None)


def test_the_rank_whose_mpi_error_ends_the_job_comes_before_what_crashes_then() -> None:
    cause = first_cause(
        "[n8:20] *** reported by process [1518370817,28]",
        "[n8:20] *** MPI_ERR_INTERN: internal error",
        "[n7:88] Signal: Segmentation fault (11)",
    )
    assert (cause.kind, cause.ranks) == ("mpi_error", (28,))


def test_a_worker_of_rays_that_its_own_watchdog_ended_did_not_die_for_memory() -> None:
    died = "A worker died: Worker PID: {pid} Worker exit type: SYSTEM_ERROR Worker exit detail: x"
    timeout = "(RayWorker pid=7) " + TIMEOUT.format(rank=0, seq=1, op="ALLREDUCE", numel=1)
    assert first_cause(died.format(pid=7), timeout).kind == "timeout_unknown"
    assert first_cause(died.format(pid=8), timeout).kind == "worker_died"


def test_a_failed_connection_is_no_fault_once_results_came_after_it() -> None:
    failed = "x:1:2 [0] NCCL WARN Call to ibv_create_cq failed"
    result = "# Avg bus bandwidth    : 4.1"
    assert first_cause(result, failed).cause_class is CauseClass.NETWORK
    lines = [log_line(row, "job.log", number) for number, row in enumerate((failed, result), 1)]
    assert not list(standing_causes(list(text_signs(lines))))


def test_a_server_outside_is_the_matter_of_a_rank_where_one_alone_missed_it() -> None:
    missed = "[rank{rank}]: urllib3.exceptions.ReadTimeoutError: Read timed out."
    assert first_cause(missed.format(rank=4)).ranks == (4,)
    assert first_cause(missed.format(rank=4), missed.format(rank=5)).ranks is None


def test_a_launcher_that_lost_the_rendezvous_is_no_failed_start() -> None:
    cause = first_cause(
        "WARNING:dynamic_rendezvous:The node 'b_1_0' has failed to send a keep-alive heartbeat to "
        "the rendezvous 'x' due to an error of type RendezvousConnectionError."
    )
    assert (cause.kind, cause.ranks) == ("agent_lost", None)


def test_a_heartbeat_that_ceased_is_no_lost_node_where_the_task_is_told_to_have_crashed() -> None:
    crashed = "srun: error: cn-1: task {task}: Segmentation fault"
    lost = "UNAVAILABLE: Task /job:jax_worker/replica:0/task:21 heartbeat timeout."
    cause = first_cause(crashed.format(task=21), crashed.format(task=22), lost)
    assert (cause.kind, cause.ranks) == ("segfault", (21, 22))
    assert first_cause(crashed.format(task=4), lost).ranks == (21,)


def test_a_traceback_that_a_rank_repeats_is_that_of_the_rank_it_names() -> None:
    heading = "[rank3]: Traceback (most recent call last):"
    rows = ['[rank3]:   File "a.py", line 4, in step', "[rank3]: RuntimeError: Missing key"]
    assert first_cause(heading + " (RANK 2)", *rows).ranks == (2,)
    assert first_cause(heading, *rows).ranks == (3,)


def test_a_collective_that_no_line_names_is_called_so() -> None:
    unset = 2**64 - 1
    cause = first_cause(STATUS.format(rank=3, seq=unset, done=unset))
    assert "a collective that the log does not name" in str(cause.verdict)


def test_a_launchers_stop_of_the_other_ranks_is_no_root() -> None:
    cause = first_cause(
        "  rank      : 0 (local_rank: 0)",
        "  exitcode  : -15 (pid: 1133)  (SIGTERM)",
        "  rank      : 2 (local_rank: 2)",
        "  exitcode  : -11 (pid: 1135)  (SIGSEGV)",
    )
    assert (cause.kind, cause.ranks) == ("segfault", (2,))


def test_a_desync_report_beside_a_time_out_keeps_the_timed_out_collective() -> None:
    report = "[7] finished collective #192, but didn't join collective #193 (count from 1)"
    cause = first_cause(*waiting(0, 251, numel=6), report)
    assert (cause.kind, cause.ranks) == ("never_arrived", (7,))
    assert cause.collective is not None
    assert (cause.collective.op, cause.collective.seq) == ("ALLREDUCE", 251)
    assert (cause.collective.numel_in, cause.collective.group) == (6, "default_pg")


def test_several_ranks_that_others_gave_up_waiting_for_never_came() -> None:
    cause = first_cause("ERROR [Rank 0] Timeout waiting for ranks [2,3] to join. Aborting.")
    assert (cause.kind, cause.ranks) == ("never_arrived", (2, 3))
    waits = list(text_signs([log_line("INFO waiting for ranks [2,3] to join", "job.log", 1)]))
    assert [sign.kind for sign in waits if sign.kind == "said_absent"] == []


LOST = (
    "[rank0]:[E1101 ProcessGroupNCCL.cpp:2057] [PG ID 0 PG GUID 0(default_pg) Rank 0] Process "
    "group watchdog thread terminated with exception: NCCL error: remote process exited or there "
    "was a network error, NCCL version 2.26.2"
)


@pytest.mark.parametrize(
    ("before", "end", "kind", "ranks"),
    [
        (waiting(0, 8)[0], "RuntimeError: CUDA error: unspecified launch failure", None, None),
        (waiting(0, 8)[0], "[host:1 :0:98] Caught signal 11 (Segmentation fault)", None, None),
        (
            waiting(0, 8)[0],
            "E1101 api.py:874] failed (exitcode: -11) local_rank: 2 (pid: 101)",
            None,
            None,
        ),
        (
            LOST,
            "E1101 api.py:874] failed (exitcode: -11) local_rank: 2 (pid: 101)",
            "segfault",
            (2,),
        ),
        (
            LOST,
            "E1101 api.py:874] failed (exitcode: -9) local_rank: 2 (pid: 101)",
            "rank_killed",
            (2,),
        ),
        (LOST, "[rank2]: CUDA error: an illegal memory access", "cuda_error", (2,)),
        (
            LOST,
            "E1101 api.py:874] failed (exitcode: -11) local_rank: 0 (pid: 101)",
            "network",
            None,
        ),
    ],
)
def test_an_end_after_a_time_out_follows_and_one_after_a_lost_peer_may_be_that_peers(
    before: str, end: str, kind: str | None, ranks: tuple[int, ...] | None
) -> None:
    cause = first_cause(before, end)
    assert cause.kind == (kind or "timeout_unknown")
    assert cause.ranks == ranks


def test_a_step_that_slurm_ends_since_a_task_failed_is_stopped_by_nobody() -> None:
    ended = "slurmstepd: error: *** STEP 348.0 ON n1 CANCELLED AT 2022-08-22T09:51:30 ***"
    failed = "srun: error: n1: task 4: Exited with exit code 16"
    assert (first_cause(ended, failed).kind, first_cause(ended, failed).ranks) == (
        "exit_code",
        (4,),
    )
    assert first_cause(ended.replace("STEP 348.0", "JOB 348"), failed).kind == "cancelled"


def test_a_group_on_a_line_of_its_own_is_that_of_the_collective_above() -> None:
    cause = first_cause(
        "WorkNCCL(SeqNum=183, OpType=ALLREDUCE, NumelIn=6, NumelOut=6, Timeout(ms)=600000)",
        "ran for 600096 milliseconds before timing out.",
        "[PG ID 14 PG GUID 118(EXPERT_MODEL_PARALLEL_GROUP) Rank 3]",
    )
    assert cause.collective is not None
    assert cause.collective.group == "EXPERT_MODEL_PARALLEL_GROUP"


def test_an_end_that_mpi_tells_over_two_lines_is_read() -> None:
    cause = first_cause(
        "> mpirun noticed that process rank 6 with PID 26386 on node n155",
        "> exited on signal 11 (Segmentation fault).",
    )
    assert (cause.kind, cause.ranks) == ("segfault", (6,))


def test_a_number_that_is_not_read_is_no_other_number() -> None:
    cut = "[rank0]:[E1206 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation"
    cause = first_cause(*waiting(1, 1), f"{cut} timeout: WorkNCCL(")
    assert str(cause.verdict).startswith("ranks 0 and 1 waited in ALLREDUCE 1 (64 elements) until")


def test_sizes_that_differ_in_what_may_be_one_group_are_told_and_nobody_is_named() -> None:
    rows = [TIMEOUT.format(rank=r, seq=8, op="ALLREDUCE", numel=n) for r, n in ((1, 64), (0, 9))]
    cause = first_cause(*rows)
    assert cause.ranks is None
    assert "rank 1 with 64 elements, rank 0 with 9 elements" in str(cause.verdict)


def test_who_was_told_to_record_and_had_nothing_to_wait_for_does_not_wait() -> None:
    row = (
        "[rank{rank}]:[E1206 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank "
        "{rank}] Received a dump signal due to a collective timeout from  rank 7 and we will try "
        "our best to dump the debug info. Last enqueued NCCL work: 9, last completed NCCL work: 9."
    )
    cause = first_cause(*(row.format(rank=rank) for rank in (4, 5)))
    assert str(cause.verdict).startswith("rank 7 saw a collective time out")
    assert cause.ranks is None
    assert cause.collective is not None and cause.collective.group == "default_pg"


def test_an_error_that_a_failed_barrier_raises_follows_from_who_did_not_come() -> None:
    barrier = "RuntimeError: [Rank 0]: Ranks 9, 12 failed to pass monitoredBarrier in 600000 ms"
    after = "ValueError: rank 0 could load the model, but there are others that did not"
    cause = first_cause(barrier, "Traceback (most recent call last):", after)
    assert (cause.kind, cause.ranks) == ("never_arrived", (9, 12))


def test_a_message_that_begins_within_its_figures_is_of_the_process_that_speaks_next() -> None:
    figures = "NumelOut=64, Timeout(ms)=600000) ran for 600061 milliseconds before timing out."
    cause = first_cause(f"64, {figures} (Worker pid=7, ip=10.0.0.9) {waiting(5, 8)[1]}")
    facts = cause.collective
    assert facts is not None
    assert (facts.seq, facts.numel_out, facts.timeout_ms, facts.ran_ms) == (8, 64, 600000, 600061)
    assert str(cause.verdict).startswith("rank 5 waited in collective 8")


def test_a_report_of_ras_without_its_heading_tells_who_is_behind() -> None:
    rows = [
        "  1 rank has launched up to operation 640",
        "  Rank 12 -- GPU 4 managed by process 323032 on node 10.0.0.124",
        "  31 ranks have launched up to operation 641",
    ]
    cause = first_cause(*rows)
    assert (cause.kind, cause.ranks) == ("ras_mismatch", (12,))
    line = log_line(rows[0], "job.log", 1)
    assert not list(standing_causes(list(text_signs([line]))))


def test_a_wait_whose_unit_is_cut_has_lasted_as_long_as_it_says() -> None:
    facts = first_cause(waiting(1, 8)[0].partition("lliseconds")[0]).collective
    assert facts is not None and facts.ran_ms == 600061


def test_a_rank_that_only_the_launcher_names_is_named_in_the_verdict_too() -> None:
    cause = first_cause(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 3 "
        "(pid: 77) of binary: python",
    )
    assert cause.ranks == (3,)
    assert str(cause.verdict).startswith("local rank 3 ran out of GPU memory")


def test_a_barrier_that_a_peer_closed_sends_to_that_peers_log() -> None:
    failed = "RuntimeError: Rank 1 failed to pass monitoredBarrier in 2500 ms"
    closed = (
        " Original exception: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:8"
    )
    gone, late = first_cause(failed, closed), first_cause(failed)
    assert gone.ranks == late.ranks == (1,)
    assert "read that rank's own log" in str(gone.cures[0])
    assert "take the stack of that rank" in str(late.cures[0])


def test_a_child_that_cannot_read_what_its_parent_wrote_follows_from_the_parents_end() -> None:
    orphan = [
        "Traceback (most recent call last):",
        '  File "/lib/python3.8/multiprocessing/spawn.py", line 126, in _main',
        "    self = reduction.pickle.load(from_parent)",
        "_pickle.UnpicklingError: pickle data was truncated",
    ]
    killed = "Exception: process 2 terminated with signal SIGKILL"
    assert first_cause(killed, *orphan).kind == "rank_killed"
    loaded = '  File "/lib/python3.8/site-packages/torch/serialization.py", line 20, in load'
    assert first_cause(killed, orphan[0], loaded, orphan[-1]).kind == "checkpoint_torn"


@pytest.mark.parametrize(
    "raised",
    [
        "AttributeError: Can't get attribute 'train' on <module '__main__' (built-in)>",
        "ModuleNotFoundError: No module named 'my_data'",
    ],
)
def test_a_child_that_does_not_know_what_it_is_to_run_has_an_error_of_its_own(raised: str) -> None:
    """So do functions that were written in a notebook end, if they are spawned."""
    cause = first_cause(
        "Traceback (most recent call last):",
        '  File "/lib/python3.10/multiprocessing/spawn.py", line 126, in _main',
        "    self = reduction.pickle.load(from_parent)",
        raised,
    )
    assert cause.kind == "exception"
    assert raised.partition(":")[0] in str(cause.verdict)


def test_another_programs_return_code_accuses_no_rank_that_prints_it() -> None:
    told = "[rank0]: the upload exited with return code = 1, and is tried again"
    assert not [sign for sign in text_signs([log_line(told, "job.log", 1)]) if sign.kind == "exit"]


@pytest.mark.parametrize(
    "said",
    [
        "Model output contains information about the classes",
        "the output is inferred from the inputs",
        "loss is informative here",
        "outputs are NaN-safe by design",
    ],
)
def test_words_that_begin_as_nan_or_inf_do_are_no_number_gone_wrong(said: str) -> None:
    assert not [sign for sign in text_signs([log_line(said, "job.log", 1)]) if sign.kind == "nan"]


@pytest.mark.parametrize("said", ["outputs are nan.", "loss is infinite", "gradients has NaNs in"])
def test_numbers_that_are_none_are_read_in_whatever_form_they_are_told(said: str) -> None:
    [sign] = text_signs([log_line(said, "job.log", 1)])
    assert sign.kind == "nan"


def test_a_code_that_ends_a_sentence_is_read_though_the_same_sentence_came_with_zero() -> None:
    cause = first_cause("the container ended, Exit code: 0.", "the container ended, Exit code: 1.")
    assert cause.kind == "exit_code"


def test_an_exit_code_is_read_whose_spaces_and_rank_somebody_left_out() -> None:
    cause = first_cause("torch.distributed.elastic.multiprocessing.api:failed(exitcode:-9)")
    assert (cause.kind, cause.ranks) == ("rank_killed", None)


def test_a_rank_whose_own_sizes_gloo_refuses_is_named_and_not_sent_to_its_log_again() -> None:
    """Its peers lose the connection to it then, and say so."""
    refused = (
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/job/moe.py", line 17, in dispatch',
        "[rank1]: RuntimeError: [enforce fail at /b/gloo/gloo/alltoallv.cc:138] "
        "inLengthPerRank[myRank] == outLengthPerRank[myRank]. ",
        "[rank0]: RuntimeError: [/b/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
        "[127.0.0.1]:7575. This is typically caused by a remote worker crashing.",
    )
    first = first_cause(*refused)
    assert (first.kind, first.ranks) == ("exception", (1,))
    assert "input_split_sizes" in str(first.cures[0])
