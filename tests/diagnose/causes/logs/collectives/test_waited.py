"""How a wait is put into words: which ranks brought which size, and what is queued behind it."""

from __future__ import annotations

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs

OLD = (
    "[E ProcessGroupNCCL.cpp:467] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=88, OpType=_ALLGATHER_BASE, NumelIn={numel}, NumelOut={out}, "
    "Timeout(ms)=1800000) ran for 1800366 milliseconds before timing out."
)
COUNTERS = (
    "[rank1]:[E411 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG GUID 0(default_pg) Rank 1] Timeout at "
    "NCCL work: 40, last enqueued NCCL work: {enqueued}, last completed NCCL work: 39."
)


def first_cause(*rows: str) -> Cause:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return next(cause for _, cause in standing_causes(list(text_signs(lines))))


def test_all_ranks_of_a_size_are_told_beside_it() -> None:
    sizes = {6: 4096, 1: 4096, 2: 4096, 0: 512}
    cause = first_cause(*(OLD.format(rank=r, numel=n, out=8 * n) for r, n in sizes.items()))
    assert "ranks 1, 2 and 6 with 4,096 elements, rank 0 with 512 elements" in str(cause.verdict)
    assert cause.ranks is None


def test_a_single_call_behind_a_wait_is_told_as_one() -> None:
    said = {
        n: " ".join(map(str, first_cause(COUNTERS.format(enqueued=40 + n)).chain))
        for n in (0, 1, 3)
    }
    assert "queued" not in said[0]
    assert "one more call is queued" in said[1]
    assert "3 more calls are queued" in said[3]


GROUPED = (
    "[rank{rank}]:[E821 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={seq}, OpType=BROADCAST, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600009 milliseconds before timing out."
)
STATUS = (
    "[rank{rank}]:[E821 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  "
    "failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: "
    "{issued}, last completed work: {done}"
)


def at(rank: int, seq: int, issued: int) -> list[str]:
    status = STATUS.format(rank=rank, seq=seq, issued=issued, done=seq - 1)
    return [GROUPED.format(rank=rank, seq=seq), status]


def test_ranks_that_issued_as_many_calls_are_not_said_to_have_left_one_another() -> None:
    cause = first_cause(*at(0, 30, 64), *at(1, 30, 64), *at(2, 30, 64), *at(3, 29, 64))
    assert (cause.kind, cause.ranks) == ("timeout_unknown", None)
    assert "the first that did not end is BROADCAST 29" in str(cause.verdict)


def test_a_rank_that_issued_fewer_calls_than_the_others_wait_in_is_still_named() -> None:
    cause = first_cause(*at(0, 30, 64), *at(1, 30, 64), *at(2, 30, 64), *at(3, 29, 29))
    assert (cause.kind, cause.ranks) == ("never_arrived", (3,))


def test_different_calls_at_one_number_are_told_and_not_taken_for_one() -> None:
    old = (
        "[E ProcessGroupNCCL.cpp:828] [Rank {}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=79, OpType={}, Timeout(ms)=1800000) ran for 1804926 milliseconds before "
        "timing out."
    )
    cause = first_cause(old.format(1, "ALLGATHER"), old.format(0, "BROADCAST"))
    assert "rank 1 in ALLGATHER, rank 0 in BROADCAST" in str(cause.verdict)
    assert cause.ranks is None


def test_an_evaluation_right_before_a_time_out_is_told() -> None:
    wait = COUNTERS.format(enqueued=40)
    for rows, is_told in ((["Evaluating bbox..."], True), (["step 9"] * 20, False)):
        chain = " ".join(map(str, first_cause("Evaluating bbox...", *rows, wait).chain))
        assert ("of an evaluation (Evaluating bbox...)" in chain) == is_told


def test_a_group_is_read_from_a_line_that_breaks_off_after_it() -> None:
    cut = STATUS.partition("by watchdog")[0].format(rank=6)
    cause = first_cause(GROUPED.format(rank=6, seq=2), cut)
    assert cause.collective is not None
    assert cause.collective.group == "default_pg"
