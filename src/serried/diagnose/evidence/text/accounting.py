"""What Slurm's accounting says of a job: the rows of ``sacct``, and ``scontrol show job``.

    184225            llama-70b    TIMEOUT      0:0     2-00:00:17      a job
    184225.0             python  CANCELLED     0:15     2-00:00:20      a step of it, which follows
    JobId=184225 … JobState=FAILED Reason=NonZeroExitCode … ExitCode=1:0

Signs: ``cancelled`` (facts ``why``, ``user``), ``job_failed`` (code), ``task_exit`` (fact
``signal``), ``launch_failed``. Rows of memory and of lost nodes are read as other lines are.

>>> from serried.diagnose.evidence.log_line import log_line
>>> row = "184225            llama-70b    TIMEOUT      0:0     2-00:00:17"
>>> [sign] = accounting_signs(log_line(row, "sacct.txt", 3))
>>> sign.kind, sign.facts["why"]
('cancelled', 'TIME LIMIT')
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign

_STATE = r"(?P<state>TIMEOUT|DEADLINE|PREEMPTED|BOOT_FAIL|FAILED|CANCELLED(?: by (?P<user>\d+))?)"
_ROW = re.compile(rf"^\s*\d{{2,12}}(?:[_+]\d+)*(?P<step>\.\w+)?[\s|].*?[\s|]{_STATE}\+?(?=[\s|]|$)")
_CODE = re.compile(r"[\s|](\d{1,3}):(\d{1,3})(?=[\s|]|$)")
_SHOWN = re.compile(rf"\bJobState={_STATE}\b")
_REASONS = {"TIMEOUT": "TIME LIMIT", "DEADLINE": "DEADLINE", "PREEMPTED": "PREEMPTED"}
LAST_SIGNAL = 31
"""Signals beyond are Slurm's own numbers, such as 53 for an output that could not be opened."""


def accounting_signs(line: LogLine) -> Iterator[Sign]:
    """Yields how a job ended by a row of Slurm's accounting."""
    text = line.text
    found = _ROW.match(text) or _SHOWN.search(text)
    code = _CODE.search(text)
    is_row = bool(found and "step" in found.re.groupindex)
    if not found or (is_row and code is None):
        return
    state = found["state"]
    if is_row and found["step"] and not state.startswith("FAILED"):
        return
    if why := _REASONS.get(state):
        yield _sign(line, "cancelled", why=why)
    elif state.startswith("CANCELLED"):
        yield _sign(line, "cancelled", **({"user": int(found["user"])} if found["user"] else {}))
    elif state == "BOOT_FAIL":
        yield _sign(line, "launch_failed")
    else:
        number, signal = (int(code[1]), int(code[2])) if code else (0, 0)
        if 0 < signal <= LAST_SIGNAL:
            yield _sign(line, "task_exit", signal=signal)
        else:
            yield _sign(line, "job_failed", number or None)


def _sign(line: LogLine, kind: str, code: int | None = None, **facts: object) -> Sign:
    return Sign(
        kind, line.quote, line.speaker, line.time, code=code, text=line.text.strip(), facts=facts
    )
