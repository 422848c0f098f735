"""Collectives that timed out: who is behind, who brought another call, or that nothing tells it.

same group, same number, another size or name   -> the few among many, where they are few
same group, a lower number                       -> who never came to the others' call
else                                             -> nobody; the rank that first speaks only waited
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.limit import NEVER_MEET, RAISE, raised_for
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.causes.logs.waits import LoggedWait, logged_waits
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.whom import named
from serried.errors import listed
from serried.finding import Sentence, said

UNEVEN = ("ALLTOALL", "GATHER", "SCATTER", "SEND", "RECV", "COALESCED", "ALLTOALL_BASE", "P2P")
"""Calls whose ranks may bring different sizes."""
LATE_MS, LATE_SHARE = 60_000, 1.1
"""From what on a report counts as late: the watchdog itself was held up."""
NEAR_LINES = 400
"""Lines within which what a job said of its work belongs to a time-out after it."""

_STACKS = said(
    "while it hangs, take the stacks of every rank: py-spy dump --pid PID on each node; the rank "
    "whose stack is elsewhere is the one the others wait for"
)
_SAME_PATH = said(
    "look for a branch that depends on the rank or its data before this call: a loss, a metric "
    "or a "
    "batch that some ranks skip; run with TORCH_DISTRIBUTED_DEBUG=DETAIL to see both calls"
)
_SAVE_ALL = said(
    "let every rank take part in the gather before the save, write in the background, or give the "
    "group a longer timeout for the save alone"
)
_BUILD_FIRST = said(
    "build the data set once before the job (or cache it), and give init_process_group a timeout "
    "that covers what rank 0 prepares"
)

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
        ("dump_signal",),
        CauseClass.HANG,
        "timeout_unknown",
        Standing.NOTICED,
        (
            said(
                "a rank saw a collective time out and asked the others for their records; who "
                "kept it "
                "waiting is not in the log"
            ),
        ),
        (_STACKS, RAISE),
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
        (_STACKS, RAISE),
        0.4,
        "unknown",
    ),
)


def timeout_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what the collectives that timed out tell."""
    waits = logged_waits(told)
    if waits:
        yield _mismatch(told, waits) or _behind(told, waits) or _unknown(told, waits)
    yield from _gloo(told)
    yield from candidates(told, _WEAK)


def _mismatch(told: LoggedSigns, waits: Sequence[LoggedWait]) -> RankedCause | None:
    """Returns the first number at which ranks of one group brought different calls."""
    for wait in waits:
        met = [other for other in waits if _meets(wait, other)]
        sides: dict[object, list[LoggedWait]] = {}
        for other in met:
            sides.setdefault(other.shape, []).append(other)
        if len(sides) > 1 and not _is_uneven(sides):
            return _told_mismatch(told, met, list(sides.values()))
    return None


def _meets(one: LoggedWait, other: LoggedWait) -> bool:
    if one.facts.seq is None or one.facts.seq != other.facts.seq:
        return False
    if one.rank is None or other.rank is None:
        return False
    return one.meeting is not None and one.meeting == other.meeting


def _is_uneven(sides: dict[object, list[LoggedWait]]) -> bool:
    ops = {wait.facts.op or "" for waits in sides.values() for wait in waits}
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
        cures=(_SAME_PATH, NEVER_MEET),
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


def _behind(told: LoggedSigns, waits: Sequence[LoggedWait]) -> RankedCause | None:
    """Returns who issued fewer calls in a group than the others wait in, where groups are told."""
    for meeting in dict.fromkeys(wait.meeting for wait in waits if wait.meeting):
        met = [w for w in waits if w.meeting == meeting and w.facts.seq is not None]
        counted: Counter[int] = Counter(w.facts.seq for w in met if w.facts.seq is not None)
        if len(counted) < 2:
            continue
        low = min(counted)
        late = sorted({w.rank for w in met if w.facts.seq == low and w.rank is not None})
        others = sorted({w.rank for w in met if w.facts.seq != low and w.rank is not None})
        if not late or not others or set(late) & set(others) or len(late) * 2 > len(others) + 1:
            continue
        first = next(w for w in met if w.facts.seq != low)
        verdict = said(
            "{who} never came to {op} {seq}: still in {low} while {others} went on and wait there",
            who=named(late),
            op=first.facts.op or "?",
            seq=first.facts.seq,
            low=low,
            others=named(others),
        )
        cause = Cause(
            CauseClass.HANG,
            "never_arrived",
            tuple(late),
            verdict,
            confidence=0.7,
            quotes=quotes(sign for wait in met for sign in wait.signs),
            cures=(_STACKS, RAISE),
            collective=first.facts,
            groups=(first.facts.group,) if first.facts.group else (),
        )
        return RankedCause(cause, Standing.WAITS, told.place(met[0].signs[0]))
    return None


def _unknown(told: LoggedSigns, waits: Sequence[LoggedWait]) -> RankedCause:
    first = waits[0]
    kind, cause_class, cures = _part_of_job(told, first.signs[0])
    cause = Cause(
        cause_class,
        kind,
        None,
        _waiting_verdict(waits, kind),
        confidence=0.5,
        chain=tuple(_chain(told, waits)),
        quotes=quotes(sign for wait in waits for sign in wait.signs),
        cures=cures,
        collective=first.facts,
        groups=(first.facts.group,) if first.facts.group else (),
    )
    return RankedCause(cause, Standing.WAITS, told.place(first.signs[0]))


_VERDICTS = {
    "teardown": said(
        "the training itself had ended; {who} then waited in {call}, a last barrier that another "
        "rank skips or reaches late"
    ),
    "checkpoint_stall": said(
        "{who} waited in {call} while a checkpoint was being saved: the rank that saves is at "
        "work, "
        "or only some ranks take part; nobody is shown dead"
    ),
    "data_stall": said(
        "{who} waited in {call} while data were being prepared: the rank that prepares them is at "
        "work longer than the limit; nobody is shown dead"
    ),
}


def _waiting_verdict(waits: Sequence[LoggedWait], kind: str) -> Sentence:
    ranks = [wait.rank for wait in waits if wait.rank is not None]
    facts = waits[0].facts
    who = named(ranks) if ranks else said("a rank that the log does not name")
    numbers = {wait.facts.seq for wait in waits}
    if kind in _VERDICTS:
        return Sentence(_VERDICTS[kind].template, {"who": who, "call": _what(facts)})
    if len(numbers) > 1 and not any(wait.facts.group for wait in waits):
        return said(
            "{who} timed out in several collectives ({numbers}), but this version of torch prints "
            "no group: which of them belong together cannot be told",
            who=who,
            numbers=", ".join(f"{wait.facts.op or '?'} {wait.facts.seq}" for wait in waits[:8]),
        )
    if not ranks:
        return said(
            "{call} timed out; the line carries no rank, so nothing more can be said",
            call=_what(facts),
        )
    return said(
        "{who} waited in {call} until the limit; no rank's absence or error is in the log",
        who=who,
        call=_what(facts),
    )


def _what(facts: CollectiveFacts) -> Sentence:
    """Returns a collective in words: its name, its number, its sizes, its group."""
    name = facts.op or "?"
    call = (
        said("{op} {seq}", op=name, seq=facts.seq)
        if facts.seq is not None
        else said("{op}", op=name)
    )
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


def _chain(told: LoggedSigns, waits: Sequence[LoggedWait]) -> Iterator[Sentence]:
    facts = waits[0].facts
    late = [w for w in waits if _late_ms(w.facts) > 0]
    if late:
        yield said(
            "it was reported {seconds:,} s after the limit, so the watchdog itself was held up",
            seconds=_late_ms(late[0].facts) // 1000,
        )
    if (
        facts.last_enqueued is not None
        and facts.seq is not None
        and facts.last_enqueued > facts.seq
    ):
        yield said(
            "{number} more calls are queued behind it: its Python ran on, so the wait is on the "
            "GPU "
            "or with another rank",
            number=facts.last_enqueued - facts.seq,
        )
    if facts.seq in (0, 1) or facts.last_completed in (-1, 0):
        yield said(
            "it is the first call of its group: think of the network between the GPUs, of a rank "
            "that "
            "never started, or of work that one rank does before it"
        )
    if facts.numel_in == 1 and (facts.numel_out or 1) == 1:
        yield said(
            "one element is a barrier or a scalar that all ranks agree on: ask what the other "
            "ranks do "
            "at that point (save, evaluate, build data)"
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


def _late_ms(facts: CollectiveFacts) -> int:
    if facts.timeout_ms is None or facts.ran_ms is None:
        return 0
    late = facts.ran_ms - facts.timeout_ms
    return late if late > LATE_MS and facts.ran_ms > facts.timeout_ms * LATE_SHARE else 0


def _part_of_job(told: LoggedSigns, first: Sign) -> tuple[str, CauseClass, tuple[Sentence, ...]]:
    """Returns in which part of a job a time-out fell, by what the log says shortly before it."""
    near = [
        sign
        for sign in told.of("finished", "saving", "building_data")
        if sign.quote.source == first.quote.source
        and first.quote.line - NEAR_LINES < sign.quote.line
    ]
    kinds = [sign.kind for sign in near]
    limit_ms = first.collective.timeout_ms if first.collective else None
    if "finished" in kinds:
        return (
            "teardown",
            CauseClass.HANG,
            (
                said(
                    "the results are saved; let every rank reach the last barrier, or call "
                    "destroy_process_group on all"
                ),
                _STACKS,
            ),
        )
    if kinds and kinds[-1] == "saving":
        return "checkpoint_stall", CauseClass.STORAGE, (_SAVE_ALL, raised_for(limit_ms))
    if kinds and kinds[-1] == "building_data":
        return "data_stall", CauseClass.DATA, (_BUILD_FIRST, raised_for(limit_ms))
    return "timeout_unknown", CauseClass.HANG, (_STACKS, _SAME_PATH, RAISE)


def _gloo(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what gloo's time-outs and unequal buffers tell; they hold no ranks."""
    if sizes := told.of("gloo_size"):
        arrived, expected = sizes[0].facts["arrived"], sizes[0].facts["expected"]
        facts = CollectiveFacts(
            numel_in=arrived if isinstance(arrived, int) else None,
            numel_out=expected if isinstance(expected, int) else None,
        )
        verdict = said(
            "two ranks are in different collectives: {arrived:,} bytes arrived where {expected:,} "
            "were expected; the rank that aborts is only the one with the smaller buffer",
            arrived=arrived,
            expected=expected,
        )
        cause = Cause(
            CauseClass.HANG,
            "mismatch_size",
            None,
            verdict,
            0.85,
            (),
            quotes(sizes),
            (_SAME_PATH, NEVER_MEET),
            collective=facts,
        )
        yield RankedCause(cause, Standing.MISMATCH, told.place(sizes[0]))
    if late := told.of("gloo_timeout"):
        limit = late[0].facts.get("ms")
        ms = limit if isinstance(limit, int) else 0
        ranks = told.ranks(late)
        who = named(ranks) if ranks else said("a rank that the log does not name")
        verdict = said(
            "{who} waited {seconds:,} s in a gloo {way}: a peer did not come; the message names "
            "neither peer nor operation",
            who=who,
            seconds=ms // 1000,
            way=late[0].facts.get("way"),
        )
        if not ms:
            verdict = said(
                "{who} waited in gloo until the limit: a peer did not come; the message names "
                "neither peer nor operation",
                who=who,
            )
        kind, cause_class, cures = _part_of_job(told, late[0])
        cause = Cause(
            cause_class,
            kind,
            None,
            verdict,
            0.5,
            (),
            quotes(late),
            cures,
            collective=CollectiveFacts(timeout_ms=ms or None),
        )
        yield RankedCause(cause, Standing.WAITS, told.place(late[0]))
