"""Which causes are shown beside the first one: none that only says that something failed."""

from __future__ import annotations

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs

TAKEN_DOWN = (
    "[E ProcessGroupNCCL.cpp:461] To avoid data inconsistency, we are taking the entire process "
    "down."
)
FAILED = "[E ProcessGroupNCCL.cpp:456] Some NCCL operations have failed or timed out."
THROWN = "terminate called after throwing an instance of 'std::runtime_error'"
CAUGHT = (
    "  what():  [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=917, "
    "OpType=REDUCE, Timeout(ms)=1800000) ran for 1805745 milliseconds before timing out."
)
ENDED = "E1128 12:46:33.1 29 api.py:1002] failed (exitcode: -6) local_rank: 7 (pid: 31)"


def causes(*rows: str) -> list[Cause]:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return [cause for _, cause in standing_causes(list(text_signs(lines)))]


def test_lines_that_leave_out_what_failed_are_not_shown_beside_the_one_that_tells_it() -> None:
    assert [cause.kind for cause in causes(FAILED, TAKEN_DOWN, THROWN, CAUGHT)] == [
        "timeout_unknown"
    ]


def test_the_abort_by_its_own_watchdog_is_not_shown_beside_the_time_out() -> None:
    assert [cause.kind for cause in causes(CAUGHT, ENDED)] == ["timeout_unknown"]


def test_an_abort_alone_is_still_told() -> None:
    assert [cause.kind for cause in causes(ENDED)] == ["aborted"]


def test_that_an_operation_failed_is_told_where_no_line_says_which() -> None:
    [alone] = causes(FAILED, TAKEN_DOWN, THROWN)
    assert str(alone.verdict).startswith("an NCCL operation failed or timed out")
