"""Sizes that differ between ranks, models that do, and torch's barriers before each call."""

from __future__ import annotations

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs

ROW = (
    "host-1:2818:3233 [0] transport/net_socket.cc:200 NCCL WARN NET/Socket : message truncated : "
    "receiving 696320 bytes instead of 32768"
)


def kinds(*rows: str) -> list[str]:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return [cause.kind for _, cause in standing_causes(list(text_signs(lines)))]


def test_a_message_of_another_size_is_a_mismatch_and_accuses_nobody() -> None:
    [(_, cause)] = standing_causes(list(text_signs([log_line(ROW, "job.log", 1)])))
    assert (cause.kind, cause.ranks) == ("mismatch_size", None)
    assert "696,320 bytes arrived where 32,768 were awaited" in str(cause.verdict)


def test_models_that_were_compared_with_an_unfinished_broadcast_are_not_said_to_differ() -> None:
    late = (
        "  what():  [Rank 1] Watchdog caught collective operation timeout: WorkNCCL("
        "OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800484 milliseconds before timing out."
    )
    differ = (
        "RuntimeError: replicas[0][0] in this process with sizes [200, 128] appears not to match "
        "sizes of the same param in process 0."
    )
    assert kinds(late, differ) == ["timeout_unknown"]
    assert kinds(differ) == ["models_differ"]


def test_a_failed_barrier_before_a_call_is_a_hang_also_where_its_line_breaks_off() -> None:
    cut = (
        "RuntimeError: ProcessGroupWrapper: Monitored Barrier encountered error running collective"
    )
    named = "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 60000 ms"
    assert kinds(cut) == ["timeout_unknown"]
    assert kinds(cut, named) == ["never_arrived"]
