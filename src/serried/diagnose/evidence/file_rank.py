"""The rank that a file is of, by its name: ``rank_3.log``, ``fr_trace_3``, ``nccl_trace_rank_3``.

>>> file_rank("logs/rank_12.stderr.log"), file_rank("fr/fr_trace_7"), file_rank("host4_rank_3")
(12, 7, 3)
>>> file_rank("console.log") is None
True
"""

from __future__ import annotations

import re

_RANK = re.compile(r"(?<![a-z])rank[-_. ]?(\d{1,7})(?!\d)", re.IGNORECASE)
_TRACE = re.compile(r"(?:trace|dump|recorder|stack|pyspy|py-spy|gdb|pstack)[-_.]?(\d{1,7})(?!\d)")
_LAST = re.compile(r"(\d{1,7})(?:\.\w{1,8})?$")


def file_rank(path: str, *, is_of_one_rank: bool = False) -> int | None:
    """Returns the rank that a path names, the file before its folders; None where it names none.

    With ``is_of_one_rank`` a bare number at the end of the name counts, as in ``comm_lib_3``.
    """
    *folders, name = path.replace("\\", "/").split("/")
    if found := _RANK.search(name) or _TRACE.search(name):
        return int(found[1])
    if is_of_one_rank and (found := _LAST.search(name)):
        return int(found[1])
    for folder in reversed(folders):
        if found := re.fullmatch(r"rank[-_.]?(\d{1,7})", folder, re.IGNORECASE):
            return int(found[1])
    return None
