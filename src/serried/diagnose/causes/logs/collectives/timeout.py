"""Collectives that timed out: who is behind, who brought another call, or that nothing tells it.

same group, same number, another size or name   -> the few among many, where they are few
same group, a lower number                       -> who never came to the others' call
else                                             -> nobody; the rank that first speaks only waited
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.collectives.gloo_waits import gloo_candidates
from serried.diagnose.causes.logs.collectives.job_part import SAME_PATH, STACKS, part_of_job
from serried.diagnose.causes.logs.collectives.left_behind import left_behind
from serried.diagnose.causes.logs.collectives.limit import NEVER_MEET, RAISE
from serried.diagnose.causes.logs.collectives.waited import waiting_chain, waiting_verdict
from serried.diagnose.causes.logs.collectives.waits import UNEVEN, LoggedWait, logged_waits
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.whom import named
from serried.errors import listed
from serried.finding import Sentence, said

_WEAK = (
    SignMeaning(
        ("heartbeat",),
        CauseClass.HANG,
        "heartbeat",
        Standing.WAITS,
        (
            said(
                "the NCCL watchdog of {who} stood still for {seconds} s: a call to CUDA or "
                "NCCL did not return; why is not in the log"
            ),
            said(
                "the NCCL watchdog of {who} stood still: a call to CUDA or NCCL did not "
                "return; why is not in the log"
            ),
        ),
        (
            said("take the stacks of that rank, Python and native: py-spy dump --native --pid PID"),
            said("a longer heartbeat time-out (TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC) only hides it"),
        ),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("call_late",),
        CauseClass.HANG,
        "timeout_unknown",
        Standing.WAITS,
        (
            said(
                "a process waited until the limit for the answer of another one; why that one did "
                "not answer is not in the log"
            ),
        ),
        (STACKS, RAISE),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("waited_for",),
        CauseClass.HANG,
        "timeout_unknown",
        Standing.WAITS,
        (
            said(
                "{who} waited for rank {peer} until the limit; that one may itself have waited for "
                "another"
            ),
        ),
        (STACKS, RAISE),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("taken_down",),
        CauseClass.HANG,
        "timeout_unknown",
        Standing.NOTICED,
        (
            said(
                "an NCCL operation failed or timed out and its process was ended; which one is "
                "not in the log"
            ),
        ),
        (STACKS, RAISE),
        0.4,
        "unknown",
        is_bare=True,
    ),
)

_DUMP_SIGNAL = SignMeaning(
    ("dump_signal",),
    CauseClass.HANG,
    "timeout_unknown",
    Standing.NOTICED,
    (
        said(
            "rank {from_rank} saw a collective time out and asked the others for their "
            "records; who kept it waiting is not in the log"
        ),
        said(
            "a rank saw a collective time out and asked the others for their records; who kept it "
            "waiting is not in the log"
        ),
    ),
    (STACKS, RAISE),
    0.5,
    "unknown",
)
_SLOW = SignMeaning(
    ("slow_answer",),
    CauseClass.HANG,
    "timeout_unknown",
    Standing.WAITS,
    (
        said(
            "a process waits for the answer of its workers ({minutes} min); what they do is not "
            "in the log"
        ),
    ),
    (STACKS,),
    0.5,
    "unknown",
)


def timeout_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what the collectives that timed out tell."""
    waits = logged_waits(told)
    if waits:
        yield _mismatch(told, waits) or left_behind(told, waits) or _unknown(told, waits)
    else:  # beside a wait its chain tells who asked for records
        yield from candidates(told, (_DUMP_SIGNAL,))
    yield from gloo_candidates(told)
    yield from candidates(told, _WEAK)
    yield from _unanswered(told)


def _unanswered(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields that a process waits for its workers, unless they come to their next step later on.

    A start that compiles or loads for more than a minute prints such notes too.
    """
    slow, answers = told.of("slow_answer"), told.of("answered")
    if slow and not any(_is_later(answer, slow[-1]) for answer in answers):
        facts = {**slow[0].facts, "minutes": len(slow)}
        yield candidate(told, _SLOW, [replace(slow[0], facts=facts), *slow[1:]])


def _is_later(one: Sign, other: Sign) -> bool:
    return one.quote.source == other.quote.source and one.quote.line > other.quote.line


def _mismatch(told: LoggedSigns, waits: Sequence[LoggedWait]) -> RankedCause | None:
    """Returns the first number at which ranks of one group brought different calls."""
    for wait in waits:
        met = [other for other in waits if _meets(wait, other)]
        sides: list[list[LoggedWait]] = []
        for other in sorted(met, key=lambda each: each.shape.count(None)):
            alike = [side for side in sides if _are_alike(side[0], other)]
            if alike:
                alike[0].append(other)
            else:
                sides.append([other])
        if len(sides) > 1 and not _is_uneven(sides):
            return _told_mismatch(told, met, sides)
    return None


def _are_alike(one: LoggedWait, other: LoggedWait) -> bool:
    """Tells whether two calls may be the same: what a line does not tell is no difference."""
    pairs = zip(one.shape, other.shape, strict=True)
    return all(None in pair or pair[0] == pair[1] for pair in pairs)


def _meets(one: LoggedWait, other: LoggedWait) -> bool:
    if one.facts.seq is None or one.facts.seq != other.facts.seq:
        return False
    if one.rank is None or other.rank is None:
        return False
    return one.meeting is not None and one.meeting == other.meeting


def _is_uneven(sides: Sequence[Sequence[LoggedWait]]) -> bool:
    ops = {wait.facts.op for waits in sides for wait in waits if wait.facts.op}
    return len(ops) == 1 and any(name in UNEVEN for name in ops)


def _told_mismatch(
    told: LoggedSigns, met: Sequence[LoggedWait], sides: list[list[LoggedWait]]
) -> RankedCause:
    culprits = _odd_side(told, sides)
    first = met[0].facts
    ops = list(dict.fromkeys(wait.facts.op for wait in met if wait.facts.op))
    kind = "mismatch_op" if len(ops) > 1 else "mismatch_size"
    calls = listed([_side(side) for side in sides], last="and")
    if culprits:
        verdict = said(
            "{who} left the path of the others: at number {seq} the calls differ, {calls}",
            who=named(culprits),
            seq=first.seq,
            calls=calls,
        )
        chain: tuple[Sentence, ...] = ()
    else:
        verdict = said("same number {seq}, different calls: {calls}", seq=first.seq, calls=calls)
        chain = (said("which side left the common path the log does not tell"),)
    cause = Cause(
        CauseClass.HANG,
        kind,
        culprits,
        verdict,
        confidence=0.75 if culprits else 0.6,
        chain=chain,
        quotes=quotes(sign for wait in met for sign in wait.signs),
        cures=(SAME_PATH, NEVER_MEET),
        collective=replace(first, op="|".join(ops)) if len(ops) > 1 else first,
        groups=(first.group,) if first.group else (),
    )
    return RankedCause(cause, Standing.MISMATCH, told.place(met[0].signs[0]))


def _side(side: Sequence[LoggedWait]) -> Sentence:
    facts = side[0].facts
    who = named(wait.rank for wait in side if wait.rank is not None)
    if facts.numel_in is None:
        return said("{who} {op}", who=who, op=facts.op or "?")
    return said("{who} {op} ({numel:,})", who=who, op=facts.op or "?", numel=facts.numel_in)


def _odd_side(told: LoggedSigns, sides: list[list[LoggedWait]]) -> tuple[int, ...] | None:
    """Returns the side that left the common path, where something tells it.

    Few among many did; of two, one that brings a single element, as a barrier or a metric does,
    where the other reduces gradients, has gone on to another part of the program.
    """
    rising = sorted(sides, key=len)
    ranks = [_ranks(side) for side in rising]
    said_so = {sign.facts.get("rank") for sign in told.of("validating")}
    for side in ranks:
        if len(side) == 1 and side[0] in said_so:
            return side
    if len(rising) == 2 and len(rising[0]) * 2 < len(rising[1]):
        return ranks[0]
    if len(rising) == 2:
        small = [side for side in rising if side[0].facts.numel_in == 1]
        if len(small) == 1 and len(small[0]) == 1:
            return _ranks(small[0])
    return None


def _ranks(side: Sequence[LoggedWait]) -> tuple[int, ...]:
    return tuple(sorted({wait.rank for wait in side if wait.rank is not None}))


def _unknown(told: LoggedSigns, waits: Sequence[LoggedWait]) -> RankedCause:
    # Of a call that lost its name and its number nothing can be asked; others tell more.
    named = sorted(waits, key=lambda wait: wait.facts.op is None and wait.facts.seq is None)
    waits = [_with_open_number(wait) for wait in named]
    first = waits[0]
    kind, cause_class, cures = part_of_job(told, first.signs[0])
    cause = Cause(
        cause_class,
        kind,
        None,
        waiting_verdict(waits, kind),
        confidence=0.5,
        chain=tuple(waiting_chain(told, waits)),
        quotes=quotes(sign for wait in waits for sign in wait.signs),
        cures=cures,
        collective=_whole(waits),
        groups=(first.facts.group,) if first.facts.group else (),
    )
    return RankedCause(cause, Standing.WAITS, told.place(first.signs[0]))


def _whole(waits: Sequence[LoggedWait]) -> CollectiveFacts:
    """Returns the first wait's collective, with what a damaged line lost and others' lines tell."""
    first = waits[0].facts
    same = [wait.facts for wait in waits[1:] if wait.facts.seq == first.seq is not None]
    plain = [replace(facts, ran_ms=None, last_enqueued=None, last_completed=None) for facts in same]
    return first.filled(plain)


def _with_open_number(wait: LoggedWait) -> LoggedWait:
    """Returns a wait of which only counters are told with the number that they leave open.

    Counters of one moment on several ranks do not tell who is behind: each lags a little.
    """
    facts = wait.facts
    issued, done = facts.last_enqueued, facts.last_completed
    if facts.seq is not None or issued is None or done is None or issued <= done:
        return wait
    # -1 says that none is done, of calls that torch counts from 1 on.
    return replace(wait, facts=replace(facts, seq=max(done + 1, min(issued, 1))))
