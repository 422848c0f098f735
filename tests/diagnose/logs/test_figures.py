"""Figures of a collective are read whole from lines that lost a part of theirs."""

from __future__ import annotations

from pathlib import Path

from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document
from tests.diagnose.logs.test_lines import first_cause

WORK = "SeqNum=77, OpType=ALLREDUCE, NumelIn=8, NumelOut=9, Timeout(ms)=600000) "
RAN = "ran for 600100 milliseconds before timing out."
HEAD = "[rank6]:[E624 ProcessGroupNCCL.cpp:1896] [PG ID 1 PG GUID 1{name} Rank 6] "


def test_a_collective_without_its_beginning_is_read(tmp_path: Path) -> None:
    cause = first_cause(tmp_path, WORK + RAN)
    assert cause is not None and cause.collective is not None
    found = cause.collective
    assert (found.op, found.seq, found.numel_in, found.numel_out) == ("ALLREDUCE", 77, 8, 9)
    assert found.timeout_ms == 600_000


def test_a_line_that_breaks_off_still_tells_its_group(tmp_path: Path) -> None:
    cut = "Process group watchdog thread terminated with exception: [Rank 6] Watchdog caught co"
    for name, group in (("", "PG 1"), ("(undefined)", "PG 1"), ("(tp)", "tp")):
        cause = first_cause(tmp_path, HEAD.format(name=name) + cut)
        assert cause is not None and cause.collective is not None
        assert cause.collective.group == group


def test_what_others_waited_in_is_told_of_any_root(tmp_path: Path) -> None:
    oom = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    wait = f"[rank1]:[E1 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught WorkNCCL({WORK}{RAN}"
    (tmp_path / "job.log").write_text(f"{oom}\n{wait}\n", encoding="utf-8")
    told = diagnosis_document(diagnosed(gather([tmp_path])))
    assert (told["class"], told["ranks"], told["collective"]["seq"]) == ("gpu_oom", [2], 77)
    assert told["findings"][0]["collective"] is None


def test_a_watchdog_tells_the_collective_that_gloo_does_not(tmp_path: Path) -> None:
    late = "RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation"
    wait = f"[rank1]:[E1 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught WorkNCCL({WORK}{RAN}"
    cause = first_cause(tmp_path, late, wait)
    assert cause is not None and cause.collective is not None
    assert (cause.collective.op, cause.collective.seq) == ("ALLREDUCE", 77)


def test_a_desync_report_tells_what_its_ranks_waited_in(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        " - [1] Timeout at collective: ALLREDUCE, #2\n"
        " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
        "   - [0] finished collective #1, but didn't join collective #2 (count from 1)\n",
        encoding="utf-8",
    )
    told = diagnosis_document(diagnosed(gather([tmp_path])))
    assert (told["ranks"], told["collective"]["op"], told["collective"]["seq"]) == (
        [0],
        "ALLREDUCE",
        2,
    )


def test_a_barrier_has_the_limit_that_gloo_tells(tmp_path: Path) -> None:
    broken = (
        "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while "
        "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
    )
    late = "[unbound_buffer.cc:129] Timed out waiting 600000ms for send operation to complete"
    cause = first_cause(tmp_path, broken, late)
    assert cause is not None and cause.collective is not None
    assert (cause.ranks, cause.collective.timeout_ms) == ((0,), 600_000)


def test_figures_that_a_damaged_line_lost_are_those_of_another_rank(tmp_path: Path) -> None:
    damaged = (
        "[rank2]:[E1 ProcessGroupNCCL.cpp:6] [Rank 2] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=77, OpType=ALLRE[451/1919]"
    )
    rest = "=8, NumelOut=9, Timeout(ms)=600000) " + RAN
    whole = f"[rank1]:[E1 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught WorkNCCL({WORK}{RAN}"
    cause = first_cause(tmp_path, damaged + rest, whole)
    assert cause is not None and cause.collective is not None
    assert (cause.kind, cause.ranks) == ("timeout_unknown", None)
    assert (cause.collective.op, cause.collective.numel_in) == ("ALLREDUCE", 8)


def test_a_line_that_breaks_off_before_its_collective_still_tells_the_group(tmp_path: Path) -> None:
    whole = f"[rank0]:[E1 ProcessGroupNCCL.cpp:6] [Rank 0] Watchdog caught WorkNCCL({WORK}{RAN}"
    cut = (
        "[rank0]:[E1 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group "
    )
    end = "watchdog thread terminated with exception: [Rank 0] Watchdog caught collective opera"
    cause = first_cause(tmp_path, whole, cut + end)
    assert cause is not None and cause.collective is not None
    assert (cause.collective.group, cause.collective.op) == ("default_pg", "ALLREDUCE")
