"""The rank that a line names in words of its own program, without a launcher's prefix.

    2024-01-01 10:00:00 [Rank 3] bad label        a tag in front of or within the line
    CUDA out of memory on rank 3                  prose: the one rank that a trouble is told of
    rank 3 waits for rank 0                       two ranks: nobody
    received no answer from rank 3                a rank that is only spoken of: nobody

>>> told_rank("Rank 3 ran out of memory")
(3, <Numbering.GLOBAL: 'global'>)
>>> told_rank("RuntimeError: timed out while waiting for rank 3") is None
True
"""

from __future__ import annotations

import re

from serried.diagnose.evidence.quote import Numbering

LONGEST_HEAD = 160
"""Letters of a line in which it says whose it is."""
LONGEST_SENTENCE = 600
_TAGGED = re.compile(
    r"[\[(|] ?(?:global[_ ])?[rR](?:ank|ANK)[ :=#]{0,2}(\d{1,7}) ?[\])|,]|"
    r"^(?:global[_ ])?[rR](?:ank|ANK)[ :=]{1,2}(\d{1,7})[:| ] ?(?=\S*(?:Error|Exception|ERROR))|"
    r" - (?:global )?[rR]ank:? ?(\d{1,7}) - |\brank(\d{1,7})\[\d+\]\[|"
    r"(?:Error|Exception|[eE]xception|[eE]rror|[fF]ail\w*) (?:on|in|from|at) (?:global )?rank "
    r"(\d{1,7})\b|(?:Error|Exception): [rR]ank (\d{1,7})[:,] |"
    r"\([\w.]+ pid=\d+(?:, ip=[\d.]+)?, (?:global_)?rank=(\d{1,7})\)|"
    r"\[[\w.\-]+\.py:\d+\] \((\d{1,5})/\d{1,5}\) "
)
"""How programs name the rank in lines of their own."""
_OF_GROUP = re.compile(r"Watchdog|Work\w*\(|ProcessGroup|\[PG |onitoredBarrier|NCCL (?:WARN|INFO)")
"""Lines in which such a number counts inside a group, or is not the speaker's."""
_GPU = re.compile(r"^\s*\[(?:GPU|gpu|cuda)[ :]?(\d{1,3})\]")
"""A tag of the GPU, by which programs of one node count their ranks."""
_TROUBLE = re.compile(
    r"Error|Exception|ERROR|\b[eE]rror\b|exception|\bOOM\b|[oO]ut[ -]of[ -](?:\w+ )?memory|"
    r"[fF]ailed|FAILED|[cC]rashed|[kK]illed|\b(?:NaN|nan|NAN)\b|CUDA|[dD]ied\b"
)
_HINTS = (
    "rror",
    "xcept",
    "ERR",
    "OOM",
    "emory",
    "ail",
    "AIL",
    "rash",
    "ill",
    "NaN",
    "nan",
    "NAN",
    "CUDA",
    "ied",
)
"""Letters that each word of trouble holds: looked for first, for that costs a tenth."""
_RANKS = re.compile(
    r"(?<![\w\-])(?P<local>[lL]ocal[_ -]?)?(?:[rR]ank|RANK)[ _:=#]{0,2}(?P<rank>\d{1,7})\b"
)
_SPOKEN_OF = re.compile(
    r"(?:\b(?:from|to|by|for|with|than|peer|root|src|dst|source|target|between|only|not on|except|"
    r"[iI]nvalid|neighbou?r|remote|other|next|previous|prev|and|or|wait\w*|expect\w*|missing|NIC|"
    r"LoRA|lora|matrix|tensor|[TPDEC]P|[tpdec]p|parallel|pipeline|stage) ?[=(\[]?|, ?)$"
)
"""What stands before a rank that a line speaks of, and that is not the one in trouble."""
_NO_RANK = re.compile(
    r"[wW]ait(?:ed|ing|s)? (?:for|on)|\bpeer\b|\bworld[_ ]size\b|out of range|"
    r"not in (?:the )?group|"
    r"\b[lL]o[rR][aA]\b|Root Cause|exitcode|[nN]o response|time[ds]? ?out|not (?:part|found)"
)
"""Words of a line in which a rank may be any: who is waited for, how a job is laid out."""


def told_rank(text: str) -> tuple[int, Numbering] | None:
    """Returns the rank that a line names as its own, None where it names none or several."""
    head = text[:LONGEST_HEAD]
    if (found := _GPU.match(head)) is not None:
        return int(found[1]), Numbering.LOCAL
    if "ank" not in text and "RANK" not in head:
        return None
    if _OF_GROUP.search(text):
        return None
    tag = _TAGGED.search(head)
    if tag is not None:
        return int(next(each for each in tag.groups() if each)), Numbering.GLOBAL
    return _in_prose(text[:LONGEST_SENTENCE])


def _in_prose(text: str) -> tuple[int, Numbering] | None:
    is_trouble = any(hint in text for hint in _HINTS) and _TROUBLE.search(text)
    if not is_trouble or _NO_RANK.search(text):
        return None
    found = list(_RANKS.finditer(text))
    whole = [each for each in found if not each["local"]]
    named = whole or found
    if len({each["rank"] for each in named}) != 1:
        return None
    if any(_is_spoken_of(text, each) for each in named):
        return None
    return int(named[0]["rank"]), Numbering.GLOBAL if whole else Numbering.LOCAL


def _is_spoken_of(text: str, found: re.Match[str]) -> bool:
    before = text[max(0, found.start() - 24) : found.start()]
    return _SPOKEN_OF.search(before.removesuffix("global ").removesuffix("Global ")) is not None
