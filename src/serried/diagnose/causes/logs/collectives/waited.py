"""Collectives that timed out, in words: who waited, in what, and what the counters add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serried.diagnose.causes.logs.collectives.waits import UNEVEN, LoggedWait
from serried.diagnose.causes.logs.signs import LoggedSigns
from serried.diagnose.evidence.sign import CollectiveFacts
from serried.diagnose.whom import named
from serried.errors import Listed, listed
from serried.finding import Sentence, said

NEAR_LINES = 12
"""Lines before a time-out within which a job says what it was at."""
LONGEST_WORDS = 40
LATE_MS, LATE_SHARE = 60_000, 1.1
"""From what on a report counts as late: the watchdog itself was held up."""

_VERDICTS = {
    "teardown": said(
        "the training itself had ended; {who} then waited in {call}, a last call (a barrier, or "
        "the gather of a save) that another rank skips or reaches late"
    ),
    "checkpoint_stall": said(
        "{who} waited in {call} while a checkpoint was being saved: the rank that saves is at "
        "work, or only some ranks take part; nobody is shown dead"
    ),
    "data_stall": said(
        "{who} waited in {call} while data were being prepared: the rank that prepares them is at "
        "work longer than the limit; nobody is shown dead"
    ),
}


def waiting_verdict(waits: Sequence[LoggedWait], kind: str) -> Sentence:
    """Returns who waited in what, in the words of the part of the job in which it was."""
    ranks = [wait.rank for wait in waits if wait.rank is not None]
    facts = waits[0].facts
    who = named(ranks) if ranks else said("a rank that the log does not name")
    numbered = [wait for wait in waits if wait.facts.seq is not None]
    numbers = {wait.facts.seq for wait in numbered}
    if kind in _VERDICTS:
        return Sentence(_VERDICTS[kind].template, {"who": who, "call": _what(facts)})
    if len(numbers) > 1 and not any(wait.facts.group for wait in waits):
        return said(
            "{who} timed out in several collectives ({numbers}), but this version of torch prints "
            "no group: which of them belong together cannot be told",
            who=who,
            numbers=_numbers(numbered),
        )
    if _are_apart(waits) and _issued_alike(waits):
        return said(
            "{who} waited at different numbers of one group ({numbers}), but all had issued the "
            "same number of calls, so none shows that it skipped one; the first that did not end "
            "is {first}",
            who=who,
            numbers=_numbers(numbered),
            first=_call(min(numbered, key=lambda wait: wait.facts.seq or 0).facts),
        )
    if _are_apart(waits):
        return said(
            "{who} waited at different numbers of one group ({numbers}): their calls no longer "
            "match, and which side left the common path the log does not tell",
            who=who,
            numbers=_numbers(numbered),
        )
    calls = _calls_differ(waits)
    if calls:
        return said(
            "{who} waited at the same number {seq} in different calls: {calls}; in one group they "
            "do not match, and whether it is one the log does not tell",
            who=who,
            seq=facts.seq,
            calls=listed([_brought(op, ranks) for op, ranks in calls.items()], limit=4),
        )
    if not ranks:
        return said(
            "{call} timed out; the line carries no rank, so nothing more can be said",
            call=_what(facts),
        )
    differ = _sizes_differ(waits)
    if differ and facts.op not in UNEVEN:
        return said(
            "{who} waited in {call} until the limit, with different sizes: {sizes}; in one group "
            "they do not match, and whether it is one the log does not tell",
            who=who,
            call=_call(facts),
            sizes=listed([_sized(numel, ranks) for numel, ranks in differ.items()], limit=4),
        )
    return said(
        "{who} waited in {call} until the limit; no rank's absence or error is in the log",
        who=who,
        call=_call(facts) if differ else _what(facts),
    )


def _calls_differ(waits: Sequence[LoggedWait]) -> dict[str, list[int]]:
    """Returns the ranks of each call, where they wait in several at one number."""
    named_calls: dict[str, list[int]] = {}
    for wait in waits:
        is_same = wait.facts.seq is not None and wait.facts.seq == waits[0].facts.seq
        if is_same and wait.rank is not None and wait.facts.op is not None:
            named_calls.setdefault(wait.facts.op, []).append(wait.rank)
    return named_calls if len(named_calls) > 1 else {}


def _brought(op: str, ranks: Sequence[int]) -> Sentence:
    return said("{who} in {op}", who=named(ranks), op=op)


def _sizes_differ(waits: Sequence[LoggedWait]) -> dict[int, list[int]]:
    """Returns the ranks of each size, where they wait with several at the same number."""
    first = waits[0].facts
    sized: dict[int, list[int]] = {}
    for wait in waits:
        is_same = (wait.facts.op, wait.facts.seq) == (first.op, first.seq)
        if is_same and wait.rank is not None and wait.facts.numel_in is not None:
            sized.setdefault(wait.facts.numel_in, []).append(wait.rank)
    return sized if len(sized) > 1 else {}


def _sized(numel: int, ranks: Sequence[int]) -> Sentence:
    if numel == 1:
        return said("{who} with 1 element", who=named(ranks))
    return said("{who} with {numel:,} elements", who=named(ranks), numel=numel)


def _numbers(waits: Sequence[LoggedWait]) -> Listed:
    """Returns the collectives of some waits by name and number, each once."""
    return listed(dict.fromkeys(f"{w.facts.op or '?'} {w.facts.seq}" for w in waits), limit=8)


def _are_apart(waits: Sequence[LoggedWait]) -> bool:
    """Tells whether ranks of one group wait at different numbers of it; one unread is no other."""
    meetings = {wait.meeting for wait in waits}
    numbers = {wait.rank: wait.facts.seq for wait in waits if wait.facts.seq is not None}
    return len(meetings) == 1 and None not in meetings and len(set(numbers.values())) > 1


def _issued_alike(waits: Sequence[LoggedWait]) -> bool:
    """Tells whether the counters of all ranks tell the same number of calls that were issued."""
    issued = {wait.facts.last_enqueued for wait in waits}
    return len(issued) == 1 and None not in issued


def _call(facts: CollectiveFacts) -> Sentence:
    """Returns a collective by its name and number, as far as the log tells them."""
    if facts.op is not None and facts.seq is not None:
        return said("{op} {seq}", op=facts.op, seq=facts.seq)
    if facts.op is not None:
        return said("{op}", op=facts.op)
    if facts.seq is not None:
        return said("collective {seq}", seq=facts.seq)
    return said("a collective that the log does not name")


def _what(facts: CollectiveFacts) -> Sentence:
    """Returns a collective in words: its name, its number, its sizes, its group."""
    call = _call(facts)
    if facts.numel_in is None:
        return call
    if facts.numel_out is None or facts.numel_out == facts.numel_in:
        if facts.numel_in == 1:
            return said("{call} (1 element)", call=call)
        return said("{call} ({numel:,} elements)", call=call, numel=facts.numel_in)
    return said(
        "{call} ({numel_in:,} -> {numel_out:,} elements)",
        call=call,
        numel_in=facts.numel_in,
        numel_out=facts.numel_out,
    )


def waiting_chain(told: LoggedSigns, waits: Sequence[LoggedWait]) -> Iterator[Sentence]:
    """Yields what the counters and figures of a wait add to the verdict."""
    facts = waits[0].facts
    late = [w for w in waits if _late_ms(w.facts) > 0]
    if late:
        yield said(
            "it was reported {seconds:,} s after the limit, so the watchdog itself was held up",
            seconds=_late_ms(late[0].facts) // 1000,
        )
    queued = (facts.last_enqueued or 0) - (facts.seq or 0)
    if facts.seq is not None and queued == 1:
        yield said(
            "one more call is queued behind it: its Python ran on, so the wait is on the GPU or "
            "with another rank"
        )
    if facts.seq is not None and queued > 1:
        yield said(
            "{number} more calls are queued behind it: its Python ran on, so the wait is on the "
            "GPU or with another rank",
            number=queued,
        )
    if facts.seq in (0, 1) or facts.last_completed in (-1, 0):
        yield said(
            "it is the first call of its group: think of the network between the GPUs, of a rank "
            "that never started, or of work that one rank does before it"
        )
    if facts.numel_in == 1 and (facts.numel_out or 1) == 1:
        yield said(
            "one element is a barrier or a scalar that all ranks agree on: ask what the other "
            "ranks do at that point (save, evaluate, build data)"
        )
    if (said_before := _evaluating(told, waits)) is not None:
        yield said(
            "the lines before it are of an evaluation ({text}): where only some ranks evaluate, or "
            "one takes longer, the others wait for it",
            text=said_before,
        )
    signals = {
        rank
        for sign in told.of("dump_signal")
        if isinstance(rank := sign.facts.get("from_rank"), int)
    }
    if signals:
        yield said(
            "{who} saw a time-out first, which does not make it the cause", who=named(signals)
        )


def _evaluating(told: LoggedSigns, waits: Sequence[LoggedWait]) -> str | None:
    """Returns what a job said of an evaluation right before a time-out, None where it did not."""
    first = waits[0].signs[0].quote
    near = [
        sign
        for sign in told.of("validating")
        if sign.quote.source == first.source and 0 <= first.line - sign.quote.line <= NEAR_LINES
    ]
    return near[-1].text[:LONGEST_WORDS] if near else None


def _late_ms(facts: CollectiveFacts) -> int:
    if facts.timeout_ms is None or facts.ran_ms is None:
        return 0
    late = facts.ran_ms - facts.timeout_ms
    return late if late > LATE_MS and facts.ran_ms > facts.timeout_ms * LATE_SHARE else 0
