"""Sizes that differ between ranks, as NCCL's sockets tell them."""

from __future__ import annotations

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs

ROW = (
    "host-1:2818:3233 [0] transport/net_socket.cc:200 NCCL WARN NET/Socket : message truncated : "
    "receiving 696320 bytes instead of 32768"
)


def test_a_message_of_another_size_is_a_mismatch_and_accuses_nobody() -> None:
    [(_, cause)] = standing_causes(list(text_signs([log_line(ROW, "job.log", 1)])))
    assert (cause.kind, cause.ranks) == ("mismatch_size", None)
    assert "696,320 bytes arrived where 32,768 were awaited" in str(cause.verdict)
