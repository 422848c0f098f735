"""How ranks ended: who ended of itself, and who was aborted because it had waited too long."""

from __future__ import annotations

import pytest

from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.quote import Quote, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.reader import text_signs
from serried.diagnose.job_state.endings import Endings, endings_of

TIMED_OUT = (
    "[rank0]:[E1128 01:33:15.892 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=12000) ran for 12048 milliseconds before timing out."
)
LOST_A_PEER = (
    "[rank0]:[E1128 01:34:58.691 ProcessGroupNCCL.cpp:612] [Rank 0] Collective "
    "WorkNCCL(SeqNum=9, OpType=SEND, NumelIn=8, NumelOut=8, Timeout(ms)=12000) raised the "
    "following async exception: NCCL error: remote process exited or there was a network error, "
    "NCCL version 2.28.9"
)
SAID_NOTHING = "[rank0]: step 2"


def endings(said: str, code: int) -> Endings:
    report = [
        "Failures:",
        "[1]:",
        "  time      : 2026-11-28_01:34:16",
        "  host      : localhost",
        "  rank      : 0 (local_rank: 0)",
        f"  exitcode  : {code} (pid: 584)",
    ]
    lines = enumerate([said, *report], 1)
    return endings_of(list(text_signs(log_line(text, "console.log", n) for n, text in lines)))


@pytest.mark.parametrize("said", [TIMED_OUT, LOST_A_PEER])
def test_a_rank_that_torch_aborts_after_it_waited_has_not_ended_of_itself(said: str) -> None:
    assert endings(said, -6).dead == {}


@pytest.mark.parametrize(("said", "code"), [(SAID_NOTHING, -6), (TIMED_OUT, -11)])
def test_a_rank_that_crashed_has_ended_of_itself(said: str, code: int) -> None:
    assert set(endings(said, code).dead) == {0}


def test_a_rank_that_was_stopped_from_the_keyboard_has_not_ended_of_itself() -> None:
    rows = ["Traceback (most recent call last):", '  File "train.py", line 9, in read_batch']
    for name, dead in (("KeyboardInterrupt", set()), ("ValueError: bad label", {1})):
        lines = enumerate([*rows, name], 1)
        signs = text_signs(log_line(f"[rank1]: {text}", "rank_1.log", n) for n, text in lines)
        assert set(endings_of(list(signs)).dead) == dead


def test_ranks_that_only_their_own_logs_or_the_launcher_show_are_of_the_job() -> None:
    assert endings(SAID_NOTHING, -15).known == {0}
    own = Sign("own_log", Quote("rank_3.log", 7, ""), Speaker(3))
    assert endings_of([own]).known == {3}
