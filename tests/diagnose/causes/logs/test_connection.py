"""A connection of NCCL's that failed: the peer's host is named where the line names it."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (
            "socketProgress: Call to recv from 10.0.0.53<49801> failed : Broken pipe",
            "NCCL's connection to 10.0.0.53 failed: Broken pipe",
        ),
        (
            "socketProgress: Connection closed by remote peer node-3.local<49801>",
            "NCCL's connection to node-3.local failed: Connection closed by remote peer",
        ),
        (
            "socketProgress: Call to recv failed : Connection reset by peer",
            "NCCL's connection between two ranks failed: Connection reset by peer",
        ),
    ],
)
def test_the_peer_of_a_connection_that_failed_is_named(line: str, verdict: str) -> None:
    row = f"host-1:100:200 [0] misc/socket.cc:58 NCCL WARN {line}"
    [(_, cause)] = standing_causes(list(text_signs([log_line(row, "job.log", 1)])))
    assert str(cause.verdict) == verdict
    assert cause.ranks is None
