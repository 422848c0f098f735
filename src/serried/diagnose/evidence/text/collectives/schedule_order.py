"""Lists of pipeline actions that somebody printed for each rank, such as ``1SendF0, 1RecvF1``.

A sign ``actions`` holds what a rank still has to do, in its order: fact ``actions``, tuples of
stage, action and microbatch. torch's schedules write the actions so (torch/distributed/pipelining
/schedules.py), in capitals with an underscore or not.

>>> from serried.diagnose.evidence.log_line import log_line
>>> [sign] = order_signs(log_line("rank 1:  [... 1SendF0, 1RecvF1, 1F1]", "x", 1))
>>> sign.speaker.rank, sign.facts["actions"]
(1, ((1, 'send_f', 0), (1, 'recv_f', 1), (1, 'f', 1)))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering
from serried.diagnose.evidence.sign import Sign

_ACTION = re.compile(r"\b(\d{1,6})_?(SEND_?F|SEND_?B|RECV_?F|RECV_?B|F|B|W|I)_?(\d{1,6})\b", re.I)
_MESSAGE = re.compile(r"\d(?:SEND|RECV)_?[FB]\d", re.I)


def order_signs(line: LogLine) -> Iterator[Sign]:
    """Yields the actions of a line that holds sends and receives and tells its rank."""
    if line.speaker.rank is None or not _MESSAGE.search(line.text):
        return
    actions = tuple(
        (int(stage), _name(action), int(microbatch))
        for stage, action, microbatch in _ACTION.findall(line.text)
    )
    speaker = replace(line.speaker, numbering=Numbering.STAGE)
    yield Sign("actions", line.quote, speaker, line.time, facts={"actions": actions})


def _name(action: str) -> str:
    plain = action.lower().replace("_", "")
    return f"{plain[:4]}_{plain[4]}" if len(plain) > 1 else plain
