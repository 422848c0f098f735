"""The calls that NCCL lists with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL, rank by rank.

    host-1:45012:45012 [2] NCCL INFO AllGather: opCount 28c ... count 15360 ... [nranks=4]
                        └── GPU of the process             └── hexadecimal

A sign ``nccl_call`` holds the call as its collective (``seq`` is the opCount) and facts ``nranks``
and ``name``, by which the calls of one moment are compared.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = ("host-1:45:45 [2] NCCL INFO AllGather: opCount 28c sendbuff 0x7f recvbuff 0x7e "
...        "count 15360 datatype 0 op 0 root 0 comm 0x55 [nranks=4] stream 0x5")
>>> [sign] = call_signs(log_line(raw, "x", 1))
>>> sign.speaker.gpu, sign.collective.op, sign.collective.seq
(2, 'AllGather', 652)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.text.pattern import whole_number

_CALL = re.compile(
    r"(?P<host>[\w.\-]+):\d+:\d+ \[(?P<gpu>\d+)\] NCCL INFO (?P<op>\w+): "
    r"opCount (?P<count>[0-9a-f]{1,15}) .*?count (?P<numel>\d+) .*?\[nranks=(?P<nranks>\d+)\]"
)


def call_signs(line: LogLine) -> Iterator[Sign]:
    """Yields the call that a line lists."""
    if "opCount" not in line.text or not (found := _CALL.search(line.text)):
        return
    speaker = line.speaker
    if speaker.rank is None:
        speaker = replace(speaker, rank=int(found["gpu"]), numbering=Numbering.LOCAL)
    facts = CollectiveFacts(
        found["op"], seq=int(found["count"], 16), numel_in=whole_number(found["numel"])
    )
    yield Sign(
        "nccl_call",
        line.quote,
        replace(speaker, host=found["host"], gpu=int(found["gpu"])),
        line.time,
        facts,
        facts={"nranks": int(found["nranks"])},
    )
