"""What torch's NCCL watchdog and monitor print: collectives that timed out, counters, dumps.

Signs: ``timeout`` (a collective with its figures), ``broken_call`` (one that an error of NCCL
ended), ``status`` (the counters of a group on one rank), ``dump_signal`` (fact ``from_rank``: who
saw a time-out first), ``heartbeat`` (fact ``seconds``: the watchdog itself stood still),
``taken_down`` (it ends the process), ``group_told`` (only the group that timed out stands in it).

Sizes are printed from torch 2.1 on, the group beside the counters from 2.2 on, and the global rank
in front from 2.3 on; ``[Rank 4]`` counts inside the group
(torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, 1.8 to 2.12).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = (
...     "[rank4]:[E1206 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective operation "
...     "timeout: WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE, NumelIn=544997376, "
...     "NumelOut=68124672, Timeout(ms)=600000) ran for 600099 milliseconds before timing out."
... )
>>> [sign] = timeouts(log_line(raw, "job.log", 1))
>>> sign.speaker.rank, sign.collective.op, sign.collective.seq
(4, '_REDUCE_SCATTER_BASE', 7753)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs, whole_number

_CAUGHT = "Watchdog caught collective operation timeout"
_CUT = re.compile(r"\.cpp:\d+\] \[.*?Rank \d+\] Watchdog(?: c[\w ]{0,40}:?)?\s*$")
"""A line that breaks off before it names the collective."""
_BARE = re.compile(rf"{_CAUGHT}: *ran for")
"""What is left of such a line where somebody took the collective out."""
_WORK = re.compile(r"Work(?:[A-Z][A-Za-z]{1,15})?(?:\(| (?=(?:SeqNum|OpType)=))")
"""A collective as a backend prints it: ``WorkNCCL(``, ``WorkHCCL(``, ``WorkXCCL(``."""
_HEADLESS = re.compile(
    r"\W*(?:(?:SeqNum=\d+, ?)?OpType=\w+,|"
    r"(?:\d+, ?)?(?:Numel(?:In|Out)=\d+, ?){0,2}Timeout\(ms\)=\d+\) (?:ran for|timed out in))"
)
"""A collective whose line lost its beginning, perhaps within its figures."""
_ALONE = re.compile(
    r"\W*Work[A-Z][A-Za-z]{1,15}[( ] *(?:(?:\.{3}|…),? *)?(?:SeqNum=[\d ]+, ?)?OpType=\w+,|"
    r"\W*(?:SeqNum=\d+, ?)?OpType=\w+, ?Numel(?:In|Out)="
)
"""A collective that somebody wrote down without the words around it, or a part of it."""
_RAN = re.compile(r"ran for (\d+) ?m(?:s\b|illi|i?l{0,2}$)|timed out in blocking wait")
_GROUP_RANK = re.compile(r"(?:PG *(?:ID *)?(\d{1,9})\b[^\]]*?)?[Rr]ank *(\d+)\]")
_GLOBAL_RANK = re.compile(r"\[rank(\d+)\]:")
_OP = re.compile(r"OpType ?[=:] ?(\w+)(?=[,)\s])")
_NAMES = {
    "seq": "SeqN(?:um(?:ber)?)?",
    "numel_in": "NumelIn",
    "numel_out": "NumelOut",
    "timeout_ms": r"Timeout(?:\(ms\)|_?ms)?",
}
_NUMBERS = {
    key: re.compile(
        rf"{name}(?: ?[=:] ?)(?:(\d{{1,3}}(?:,\d{{3}})+|\d(?:[\d ]*\d)?)(?=[,)])|(\d+)(?=\s|$))"
    )
    for key, name in _NAMES.items()
}
"""Figures of a collective; a terminal may have broken a line within a number.

Somebody who writes a line down may put spaces, a colon, or separators of thousands in it.
"""
_SHAPE = re.compile(r"TensorShape=\[([\d, ]*)\]")
_COUNTERS = re.compile(
    r"(?:[Ww]ork(?: *sequence *id)?: *(?P<seq>-?\d+)\b.{0,24}?)?"
    r"[Ll]ast *enqueued(?: *NCCL)? *work: *(?P<enqueued>-?\d+)"
    r"(?:, *last *started(?: *NCCL)? *work: *-?\d+(?: *\([^)]*\))?)?"
    r"(?:, *last *completed(?: *NCCL)?(?: *work)?: *(?P<completed>-?\d+))?"
)
_HIT = re.compile(
    r"(?:Exception hit in NCCL work|(?:detected by watchdog at|Timeout at NCCL) work"
    r"(?: sequence id)?): *(?P<seq>\d+)(?P<enqueued>(?!))?(?P<completed>(?!))?"
)
"""What torch 2.4 prints in place of counters, and what a line tells that lost its counters."""
_RAISED = re.compile(r"\braised the following async exception\b")
_PG = re.compile(
    r"\[PG *(?:ID *)?(?P<id>\w+?)(?: *PG *GUID *(?P<guid>[^\s()]+?))? *(?:\((?P<name>[^)]*)\))?"
    r" *Rank *(?P<rank>\d+)\]"
)
"""A group: its number in the process, its identifier over all processes, its name if it has one."""
_LOOSE_PG = re.compile(r"\bPG (?:ID )?(\d{1,9})\b")
"""A group beside counters that somebody wrote down without its brackets."""
_WRITTEN_PG = re.compile(
    r"\b(?:(?P<name>\w+_(?:GROUP|group)|default_pg) [Rr]ank \d+:|PG GUID \w+ ?\((?P<named>\w+)\))"
)
"""A group's name that somebody wrote before a message in place of its brackets."""
_UNNAMED = "undefined"
"""What torch prints in place of a name that nobody gave."""
_PATTERNS = (
    Pattern(
        "dump_signal",
        r"dump signal due to a collective timeout from\s+(?:rank (?P<from_rank>\d+)|this local)",
    ),
    Pattern("dump_signal", r"Observed flight recorder dump signal from another rank"),
    Pattern(
        "group_told",
        r"Work timeout is detected by watchdog|First PG on this rank to signal dumping|"
        r"\[PG [^\]]*\] +(?:Exception \(either|failure detected)",
    ),
    Pattern("heartbeat", r"watchdog got stuck for (?P<seconds>\d+) seconds"),
    Pattern("heartbeat", r"Heartbeat monitor timed out! Process will be terminated"),
    Pattern("taken_down", r"Failed to retrieve (?:TORCH_)?NCCL_DESYNC_DEBUG report"),
    Pattern("taken_down", r"Some NCCL operations have failed or timed out"),
    Pattern("taken_down", r"Stack trace of the failed collective"),
    Pattern("taken_down", r"we are taking the entire process down"),
    Pattern("taken_down", r"entire process is terminated"),
    Pattern(
        "call_late",
        r"threads to join the rendezvous|RPC call to \w+ timed out|"
        r"other ranks that (?:didn't|did not) (?:finish|come|join)|"
        r"GetTimeoutError: |NCCL operation timed out|training (?:process )?hang detected",
    ),
    Pattern("slow_answer", r"No available shared memory broadcast block found"),
    Pattern(  # what vLLM's workers print as they come to their next step
        "answered",
        r"torch\.compile takes|Available KV cache memory|GPU KV cache size|Loading weights took|"
        r"Graph capturing finished|init engine .* took|Application startup complete",
    ),
    Pattern("taken_down", r"NCCL communicator was aborted|[Ww]atchdog timeout\b"),
    Pattern("taken_down", r"WorkNCCL::checkTimeout|raised from (?:checkTimeout|ncclCommWatchdog)"),
    Pattern("taken_down", r"due to collective timeout or exception"),
)


def timeouts(line: LogLine) -> Iterator[Sign]:
    """Yields the signs of a line of the watchdog; several where processes share the line."""
    text = line.text
    is_alone = _ALONE.match(text) is not None
    if ("Work" in text or _HEADLESS.match(text)) and (
        is_alone or "ran for" in text or "timed out in" in text or _CAUGHT in text
    ):
        yield from _given_up(line)
    elif cut := _CUT.search(text) or _BARE.search(text):
        ran = _RAN.search(text)
        facts = CollectiveFacts(
            ran_ms=whole_number(ran[1]) if ran else None, group=group_name(text)
        )
        yield Sign("timeout", line.quote, _speaker(line, text[: cut.end()]), line.time, facts)
    if counters := _COUNTERS.search(text) or _HIT.search(text):
        loose = _LOOSE_PG.search(text)
        facts = CollectiveFacts(
            seq=whole_number(counters["seq"]),
            group=group_name(text) or (f"PG {loose[1]}" if loose else None),
            last_enqueued=whole_number(counters["enqueued"]),
            last_completed=whole_number(counters["completed"]),
        )
        group = _PG.search(text)
        yield Sign(
            "status",
            line.quote,
            _speaker(line, text),
            line.time,
            facts,
            facts={
                "guid": group["guid"] if group else None,
                "group_rank": int(group["rank"][:9]) if group else None,
            },
        )
    if _RAISED.search(text) and (work := _WORK.search(text)):
        before = text[: work.start()]
        facts = _facts(text[work.start() :], before, ran_ms=None)
        yield Sign("broken_call", line.quote, _speaker(line, before), line.time, facts)
    for sign in first_signs(_PATTERNS, line):
        if sign.kind == "heartbeat" and "ran for" in text:
            return
        named = group_name(text)
        of_group = CollectiveFacts(group=named) if named else None
        yield replace(sign, speaker=_speaker(line, text), collective=of_group)


def group_name(text: str) -> str | None:
    """Returns the process group that a line is of: its name where it has one, or its number.

    >>> group_name("[PG ID 0 PG GUID 0(default_pg) Rank 2] ..."), group_name("[PG 1 Rank 0] ...")
    ('default_pg', 'PG 1')
    """
    found = _PG.search(text)
    if not found:
        written = _WRITTEN_PG.search(text)
        return (written["name"] or written["named"]) if written else None
    is_named = found["name"] and found["name"] != _UNNAMED
    return found["name"] if is_named else f"PG {found['id']}"


def _given_up(line: LogLine) -> Iterator[Sign]:
    begins = [found.start() for found in _WORK.finditer(line.text)]
    if not begins and _HEADLESS.match(line.text):
        begins = [0]
    if not begins:  # it breaks off before the collective
        if _CAUGHT in line.text:
            facts = CollectiveFacts(group=group_name(line.text))
            yield Sign("timeout", line.quote, _speaker(line, line.text), line.time, facts)
        return
    for start, end in zip(begins, [*begins[1:], len(line.text)], strict=True):
        work, before = line.text[start:end], line.text[:start]
        ran = _RAN.search(work)
        if not ran and _CAUGHT not in before and not _ALONE.match(line.text):
            continue
        facts = _facts(work, before, ran_ms=whole_number(ran[1]) if ran else None)
        if len(begins) == 1 and facts.group is None:
            facts = replace(facts, group=group_name(work))
        # What lost its beginning lost its rank too; the process's next message may share the line.
        named = work if not before and line.speaker.rank is None else before
        yield Sign("timeout", line.quote, _speaker(line, named), line.time, collective=facts)


def _facts(work: str, before: str, *, ran_ms: int | None) -> CollectiveFacts:
    op = _OP.search(work)
    shape = _SHAPE.search(work)
    return CollectiveFacts(
        op[1] if op else None,
        seq=_number("seq", work),
        numel_in=numel(shape[1]) if shape else _number("numel_in", work),
        numel_out=_number("numel_out", work),
        timeout_ms=_number("timeout_ms", work),
        ran_ms=ran_ms,
        group=group_name(before),
    )


def numel(shape: str) -> int | None:
    """Returns the elements of a shape as it is printed between brackets.

    >>> numel("4, 1024"), numel("")
    (4096, None)
    """
    sizes = [int(size) for size in re.findall(r"\d{1,18}", shape)]
    return prod(sizes) if sizes else None


def _number(name: str, text: str) -> int | None:
    found = _NUMBERS[name].search(text)
    return whole_number(re.sub(r"[ ,]", "", found[1] or found[2])) if found else None


def _speaker(line: LogLine, before: str) -> Speaker:
    """Returns whose message it is: the last number in front of it, a global one before another."""
    if named := _GLOBAL_RANK.findall(before):
        return replace(line.speaker, rank=int(named[-1]), numbering=Numbering.GLOBAL)
    is_global = line.speaker.rank is not None and line.speaker.numbering is Numbering.GLOBAL
    named = _GROUP_RANK.findall(before)
    if is_global or not named:
        return line.speaker
    group, rank = named[-1]
    within = Numbering.SUBGROUP if int(group or 0) else Numbering.GROUP
    return replace(line.speaker, rank=int(rank), numbering=within)
