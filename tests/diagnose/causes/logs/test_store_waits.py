"""Who waited at the store, and for what: another rank, or the one that prepares the data."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs

LATE = (
    "[rank2]:[W302 08:13:41.025 socket.cpp:487] [c10d] waitForInput: socket SocketImpl(fd=69, "
    "addr=[localhost]:43146, remote={remote}) timed out after 600000ms"
)
TOKENIZING = "Tokenizing Prompts (num_proc=64):  92%|#########2| 328986/359152 [29:58<12:05]"


def first_cause(*rows: str) -> Cause:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return next(cause for _, cause in standing_causes(list(text_signs(lines))))


@pytest.mark.parametrize("remote", ["[localhost]:29500", "localhost:29500"])
def test_a_store_that_was_reached_is_named_with_the_wait(remote: str) -> None:
    cause = first_cause(LATE.format(remote=remote))
    assert (cause.cause_class, cause.ranks) == (CauseClass.STARTUP, None)
    assert str(cause.verdict).startswith("rank 2 reached the store at localhost:29500 and waited")
    assert "600 s" in str(cause.verdict)


def test_a_wait_at_the_store_while_data_are_prepared_is_one_for_the_data() -> None:
    cause = first_cause(TOKENIZING, LATE.format(remote="[localhost]:29500"))
    assert (cause.cause_class, cause.kind) == (CauseClass.DATA, "data_stall")
    assert "while data were being prepared" in str(cause.verdict)
    assert "the limit was 600 s" in str(cause.cures[-1])


def test_the_key_that_nobody_set_is_named() -> None:
    cause = first_cause(
        "[rank0]: torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /a/pg:7/0/1"
    )
    assert str(cause.verdict).startswith("rank 0 waited at the store for the key /a/pg:7/0/1,")


def test_a_wait_for_an_id_is_one_of_the_start_also_where_its_line_breaks_off() -> None:
    cut = "[rank3]: torch.distributed.DistBackendError: [3] is setting up NCCL communicator and {}"
    cause = first_cause(cut.format("retrieving ncclUniqueId fr"))
    assert (cause.cause_class, cause.ranks) == (CauseClass.STARTUP, None)
    assert str(cause.verdict).startswith("rank 3 waited for the NCCL id")
