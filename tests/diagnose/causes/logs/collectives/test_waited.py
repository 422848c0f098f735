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
