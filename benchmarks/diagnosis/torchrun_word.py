"""What torchrun itself says of the root: the first process that it saw end, and what of.

>>> word = torchrun_word("Root Cause (first observed failure):\\n  rank  : 6 (local_rank: 6)\\n")
>>> word["ranks"], word["class"]
([6], 'exception')
"""

from __future__ import annotations

import re
from typing import Any

_ROOT = re.compile(
    r"Root Cause \(first observed failure\):.*?rank\s*:\s*(\d+) \(local_rank: \d+\)"
    r"(?:.*?exitcode\s*:\s*(-?\d+))?",
    re.DOTALL,
)
_FAILED = re.compile(r"failed \(exitcode: (-?\d+)\).*?local_rank: (\d+)")


def torchrun_word(text: str) -> dict[str, Any]:
    """Returns torchrun's word as an answer; it knows a process's end and nothing of hangs."""
    found = _ROOT.search(text)
    if found:
        return {"class": _class(found[2]), "ranks": [int(found[1])], "collective": None}
    failed = _FAILED.search(text)
    if failed:
        return {"class": _class(failed[1]), "ranks": [int(failed[2])], "collective": None}
    return {"class": "no_fault", "ranks": None, "collective": None}


def _class(code: str | None) -> str:
    return "host_oom" if code == "-9" else "exception"
