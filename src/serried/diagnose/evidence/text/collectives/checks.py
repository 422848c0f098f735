"""What torch's own checks print: fingerprints that differ, desync reports, monitored barriers.

Signs: ``fingerprints`` (fact ``sides``: tuples of a rank inside the group and its collective),
``fingerprints_cut`` (the line breaks off), ``not_joined`` (fact ``ranks``: who did not join, by
torch's desync report), ``absent`` (fact ``ranks``: who did not pass a monitored barrier),
``barrier_broken`` (facts ``ranks``: its first rank, for which all others wait there, ``waiter``),
``barrier_of_call`` (a collective before which torch's debugging mode put such a barrier),
``unused`` (parameters without a gradient), ``truncated`` (facts ``arrived``, ``expected``: bytes
that NCCL's socket brought where another number was awaited), ``said_absent`` (fact ``ranks``: who
did not come, in a program's own words), ``waited_for`` (fact ``peer``: for whom a process waited
until its limit),
``analysed_culprit`` and ``analysed_missing`` (fact ``ranks``: whom torchfrtrace names).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = (
...     "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, "
...     "TensorShape=[8], TensorDtypes=Float), but Rank 0 is running collective: "
...     "CollectiveFingerPrint(SequenceNumber=9, OpType=BARRIER)"
... )
>>> [sign] = check_signs(log_line(raw, "x", 1))
>>> [(rank, facts.op) for rank, facts in sign.facts["sides"]]
[(1, 'ALLREDUCE'), (0, 'BARRIER')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.text.collectives.watchdog import numel
from serried.diagnose.evidence.text.pattern import Pattern, first_signs, whole_number

_FINGERPRINT = (
    r"CollectiveFingerPrint\((?:SequenceNumber= ?(?P<seq>\d+),? *)?"
    r"OpType=(?P<op>[A-Z_a-z]+?)(?=[,)]|Tensor)"
    r"(?:, *TensorShape=\[(?P<shape>[\d, ]*)\])?(?:.{0,40}?TensorDtypes=(?P<dtype>\w+))?"
)
_CALL = re.compile(_FINGERPRINT)
_SIDE = re.compile(
    rf"[Rr]ank +(?P<rank>\d+) +is +running(?: +inconsistent)? +collective: *{_FINGERPRINT}"
)
_PADDED = re.compile(r"Detected mismatch between collectives\b.* {5}")
_PADDING = re.compile(r" {5}")
"""What a terminal's broken lines leave where they were copied into one."""
_ABSENT = re.compile(
    r"[Rr]anks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier(?: in (?P<ms>\d+) ?ms)?"
)
_BARRIER = "monitoredBarrier"
_BARRIER_LATE = re.compile(r"timed out in monitoredBarrier after (?P<ms>\d+) ?ms")
"""The first rank's own limit, after which it cannot tell who did not come."""
_BEFORE_CALL = re.compile(r"Monitored Barrier encountered error running collective\b:? ?")
"""A barrier that torch's debugging mode puts before each call, whose fingerprint follows."""
_BROKEN = re.compile(
    r"(?:Rank (?P<waiter>\d+) \w+ )?"
    r"reached monitoredBarrier, but received errors while waiting for send/recv from rank "
    r"(?P<first>\d+)"
)
_DESYNC = re.compile(
    r"\[(?P<ranks>\d+(?:, ?\d+)*)\] (?P<what>[^\[]*?didn't (?:join|finish) [^\[]*)"
)
_DESYNC_SEQ = re.compile(r"didn't (?:join|finish) collective #(\d+)")
_DESYNC_AT = re.compile(r"\[\d+\] Timeout at collective: (?P<op>\w+), #(?P<seq>\d+)")
_LAGGING = re.compile(r"ranks? \[(?P<ranks>\d+(?:, ?\d+)*)\] (?:is|are) the lagging ranks?")
_LAG_BEGINS = "lagging/dead/mismatched ranks"
_SAID_ABSENT = re.compile(
    r"^(?!.*\b(?:INFO|DEBUG)\b).*\b[rR]anks? \[?(?P<ranks>\d+(?:(?:, ?| and |, and )\d+)*)\]? "
    r"(?:(?:has|have|had|did|does|do|was|were|is|are)(?:n't| not| never)|never)(?: yet| even)? "
    r"(?:join|reach|arriv|check(?:ed)? in|respond|enter|c[ao]me|participat)|"
    r"[tT]ime(?:d )?out waiting for ranks \[?(?P<awaited>\d+(?:, ?\d+)+)\]? to "
    r"(?:join|arrive|check in|reach)|"
    r"^(?!.*Stalled|\s*The missing ranks?:)(?:.*[^\[])?"
    r"\b(?:[mM]issing|[aA]bsent|[uU]nresponsive)[ _]ranks?[:= ]{1,3}\[?"
    r"(?P<listed>\d+(?:, ?\d+)*)(?![}\d])"
)
"""How programs say in their own words who did not come."""
_WAITED_FOR = Pattern(
    "waited_for",
    r"^(?=.*(?:[tT]imed out|TimeoutError|[tT]imeout (?:while |when )?waiting))"
    r"(?!.*onitoredBarrier).*[wW]ait(?:ing|ed) (?:for|on) (?:a |the )?(?:\w+ (?:from|of) )?"
    r"(?:global )?rank (?P<peer>\d+)\b",
)
_UNUSED = Pattern(
    "unused", r"did not receive grad for rank (?P<rank>\d+): (?P<parameters>[A-Za-z_].*)"
)
_STRAGGLER = Pattern(
    "straggler",
    r"(?<![Nn]o )(?:STRAGGLER|[Ss]traggler)s?\b(?! [Rr]eport).{0,80}?"
    r"(?:RANK=|[Rr]ank[s:]* \[?r?)(?P<rank>\d+)",
)
_SLOW = Pattern(
    "straggler",
    r"[Rr]ank (?P<rank>\d+) (?:is|was) (?:a |the )?(?:straggler|slow)|"
    r"[Ss]low (?:node|rank|worker|host|GPU)s? (?:was |were )?(?:detected|found)",
)
_MODELS = (  # 0 is what stands where the gather of the counts brought nothing
    Pattern(
        "gather_empty", r"DDP expects same model across all ranks, .* has inconsistent 0 params"
    ),
    Pattern("models_differ", r"DDP expects same model across all ranks"),
    Pattern(
        "models_differ", r"appears not to match (?:sizes|strides) of the same param in process"
    ),
)
_MISMATCHED = Pattern(
    "mismatched",
    r"Mismatched collective detected|caused by a collective mismatch|MPI_ERR_TRUNCATE|"
    r"collective mismatch error",
)
_TRUNCATED = Pattern(
    "truncated",
    r"NET/\w+ ?: [Mm]essage truncated ?: receiv\w+ (?P<arrived>\d+) bytes instead of "
    r"(?P<expected>\d+)",
)
_CULPRIT = re.compile(r"Culprit rank (\d+); Error type: (\w+)")
_NOT_JOINED = re.compile(r"(?<!\w)missing ranks: \{(?P<ranks>[\d, ]+)\}")
_ANALYSED = (
    Pattern("analysed", r"(?<![\w.] )\bcollective: [a-z]\w*:(?P<op>[a-z]\w*)"),
    Pattern("analysed", r"\bgroup info: \w+:(?P<group>[\w.\-]+)"),
    Pattern("analysed", r"(?:sequence number:|ranks joining collective) (?P<seq>\d+)"),
)
_PATTERNS = (
    _UNUSED,
    Pattern("unused", r"Expected to have finished reduction in the prior iteration"),
    Pattern(
        "unused",
        r"Parameter indices which did not receive grad for rank (?P<rank>\d+)"
        r"(?:: (?P<indices>\d+(?: \d+)*))?",
    ),
)
_ALL = (*_PATTERNS, *_ANALYSED, _STRAGGLER, _SLOW, *_MODELS, _MISMATCHED, _TRUNCATED, _WAITED_FOR)


def check_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what a check of torch's says in a line."""
    text = _PADDING.sub("", line.text) if _PADDED.search(line.text) else line.text
    if wrapped := _BEFORE_CALL.search(text):
        call = _CALL.match(text, wrapped.end())
        facts_of_call = _fingerprint(call) if call else None
        yield Sign("barrier_of_call", line.quote, line.speaker, line.time, facts_of_call)
    if sides := tuple(_side(found) for found in _SIDE.finditer(text)):
        yield Sign(
            "fingerprints",
            line.quote,
            line.speaker,
            line.time,
            collective=sides[0][1],
            facts={"sides": sides},
        )
    elif "Detected mism" in text:
        yield Sign("fingerprints_cut", line.quote, line.speaker, line.time)
    yield from _barrier_signs(line, text)
    yield from _analysis_signs(line, text)
    yield from first_signs(_ALL, line)


def _barrier_signs(line: LogLine, text: str) -> Iterator[Sign]:
    """Yields what a monitored barrier says: who did not come, or that it was late or broken."""
    if absent := _ABSENT.search(text):
        facts: dict[str, object] = {"ranks": _ranks(absent["ranks"])}
        limit = CollectiveFacts(_BARRIER, timeout_ms=whole_number(absent["ms"]))
        yield Sign("absent", line.quote, line.speaker, line.time, limit, facts=facts)
    if late := _BARRIER_LATE.search(text):
        limit = CollectiveFacts(_BARRIER, timeout_ms=whole_number(late["ms"]))
        yield Sign("timeout", line.quote, line.speaker, line.time, limit)
    if broken := _BROKEN.search(text):
        facts = {"ranks": _ranks(broken["first"]), "waiter": whole_number(broken["waiter"])}
        limit = CollectiveFacts(_BARRIER)
        yield Sign("barrier_broken", line.quote, line.speaker, line.time, limit, facts=facts)


def _analysis_signs(line: LogLine, text: str) -> Iterator[Sign]:
    """Yields what torch's analysis of ranks out of step says, and who it says is behind."""
    if _LAG_BEGINS in text or "didn't join collective" in text or "didn't finish coll" in text:
        yield from _desync(line)
    if at := _DESYNC_AT.search(text):
        awaited = CollectiveFacts(at["op"], seq=whole_number(at["seq"]))
        yield Sign("timeout", line.quote, line.speaker, line.time, awaited)
    if lagging := _LAGGING.search(text):
        facts: dict[str, object] = {"ranks": _ranks(lagging["ranks"])}
        yield Sign("not_joined", line.quote, line.speaker, line.time, facts=facts)
    if missing := _SAID_ABSENT.search(text):
        facts = {"ranks": _ranks(missing["ranks"] or missing["awaited"] or missing["listed"])}
        yield Sign("said_absent", line.quote, line.speaker, line.time, facts=facts)
    if culprits := _CULPRIT.findall(text):
        facts = {"ranks": tuple(int(rank) for rank, _ in culprits), "error": culprits[0][1]}
        yield Sign("analysed_culprit", line.quote, line.speaker, line.time, facts=facts)
    elif missing := _NOT_JOINED.search(text):
        facts = {"ranks": _ranks(missing["ranks"])}
        yield Sign("analysed_missing", line.quote, line.speaker, line.time, facts=facts)


def _desync(line: LogLine) -> Iterator[Sign]:
    for found in _DESYNC.finditer(line.text):
        number = _DESYNC_SEQ.search(found["what"])
        facts = CollectiveFacts(seq=whole_number(number[1]) if number else None)
        did_join = "joined but didn't finish" in found["what"]
        yield Sign(
            "joined" if did_join else "not_joined",
            line.quote,
            line.speaker,
            line.time,
            facts,
            facts={"ranks": _ranks(found["ranks"])},
        )


def _side(found: re.Match[str]) -> tuple[int, CollectiveFacts]:
    return int(found["rank"]), _fingerprint(found)


def _fingerprint(found: re.Match[str]) -> CollectiveFacts:
    size = numel(found["shape"] or "")
    return CollectiveFacts(
        found["op"], seq=whole_number(found["seq"]), numel_in=size, dtype=found["dtype"]
    )


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text))
