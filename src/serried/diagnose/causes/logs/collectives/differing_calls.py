"""Ranks in different calls: by torch's fingerprints of them, or by NCCL's own list of calls.

Rank 1 runs ALLREDUCE 9 (8) where rank 0 runs BARRIER 9     two sides: which left, little tells
ranks 0 to 6 ALLREDUCE (512), rank 7 ALLREDUCE (256)        few among many: the few
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from serried.diagnose.causes.logs.collectives.job_part import LEFT_PATH
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.whom import named
from serried.errors import listed
from serried.finding import said


def fingerprint_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields ranks whose calls differ by torch's own check of them."""
    alone = told.of("fingerprints")
    signs = [sign for sign in alone if len(_sides(sign)) > 1] or alone
    sides = {rank: facts for sign in signs for rank, facts in _sides(sign)}
    is_same = signs is alone and len({facts.op for facts in sides.values()}) < 2
    if len(sides) < 2 or is_same:
        yield from _one_side(told)
        return
    first = signs[0]
    (one, mine), (two, other) = list(sides.items())[:2]
    ops = list(dict.fromkeys(facts.op for facts in sides.values() if facts.op))
    culprits = _minority(sides) or _failed_side(told, (one, two))
    verdict = said(
        "{one} runs {mine} where {two} runs {other}: the ranks left the common path (numbers "
        "inside their group)",
        one=named((one,)),
        mine=_call(mine),
        two=named((two,)),
        other=_call(other),
    )
    cause = Cause(
        CauseClass.HANG,
        "mismatch_op" if len(ops) > 1 else "mismatch_size",
        culprits,
        verdict,
        confidence=0.85,
        quotes=quotes(signs),
        cures=(LEFT_PATH,),
        collective=replace(mine, op="|".join(ops)) if len(ops) > 1 else mine,
    )
    yield RankedCause(cause, Standing.EXHAUSTED, told.place(first))


def _one_side(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields a mismatch of which torch (before 2.0) prints one call only."""
    signs = told.of("fingerprints")
    if not signs:
        return
    rank, call = _sides(signs[0])[0]
    cause = Cause(
        CauseClass.HANG,
        "mismatch_op",
        None,
        said(
            "{who} ran {mine} where another rank ran another call, which this version of "
            "torch does not print",
            who=named((rank,)),
            mine=_call(call),
        ),
        confidence=0.7,
        quotes=quotes(signs),
        cures=(LEFT_PATH,),
        collective=call,
    )
    yield RankedCause(cause, Standing.EXHAUSTED, told.place(signs[0]))


def _sides(sign: Sign) -> tuple[tuple[int, CollectiveFacts], ...]:
    sides = sign.facts["sides"]
    return sides if isinstance(sides, tuple) else ()


def _call(facts: CollectiveFacts) -> str:
    number = f" {facts.seq}" if facts.seq is not None else ""
    size = f" ({facts.numel_in:,} {facts.dtype or ''}".rstrip() + ")" if facts.numel_in else ""
    return f"{facts.op}{number}{size}"


def call_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the first number at which NCCL lists different calls of one node's processes."""
    moments: dict[object, dict[int, Sign]] = {}
    for sign in told.of("nccl_call"):
        call, rank = sign.collective, told.rank(sign.speaker)
        if call is not None and rank is not None:
            moment = (sign.speaker.host, sign.facts["nranks"], call.seq)
            moments.setdefault(moment, {}).setdefault(rank, sign)
    for met in moments.values():
        calls = {rank: sign.collective for rank, sign in met.items() if sign.collective}
        if len({(call.op, call.numel_in) for call in calls.values()}) > 1 and len(calls) > 2:
            yield _odd_call(told, met, calls)
            return


def _odd_call(
    told: LoggedSigns, met: Mapping[int, Sign], calls: Mapping[int, CollectiveFacts]
) -> RankedCause:
    culprits = _minority(calls)
    ops = list(dict.fromkeys(call.op for call in calls.values() if call.op))
    first = next(iter(calls.values()))
    sides = listed(
        [
            said("{who} {call}", who=named((rank,)), call=_call(each))
            for rank, each in calls.items()
        ],
        last="and",
    )
    cause = Cause(
        CauseClass.HANG,
        "mismatch_op" if len(ops) > 1 else "mismatch_size",
        culprits,
        said("ranks brought different calls to number {seq}: {calls}", seq=first.seq, calls=sides),
        confidence=0.7,
        quotes=quotes(met.values()),
        cures=(LEFT_PATH,),
        collective=replace(first, op="|".join(ops)),
    )
    return RankedCause(cause, Standing.MISMATCH, told.place(next(iter(met.values()))))


def _minority(sides: Mapping[int, CollectiveFacts]) -> tuple[int, ...] | None:
    """Returns the few ranks whose call differs from that of many."""
    counts = Counter((facts.op, facts.seq, facts.numel_in) for facts in sides.values())
    if len(counts) != 2 or len(sides) < 3:
        return None
    (_, many), (rare, few) = counts.most_common()
    if few * 2 > many:
        return None
    return tuple(
        sorted(r for r, facts in sides.items() if (facts.op, facts.seq, facts.numel_in) == rare)
    )


def _failed_side(told: LoggedSigns, pair: tuple[int, int]) -> tuple[int, ...] | None:
    """Returns the side that then raised an exception of its own, where exactly one of both did."""
    mismatch = {sign.quote for sign in told.of("fingerprints")}
    raised = {
        told.rank(sign.speaker)
        for sign in told.of("exception", "traceback")
        if sign.quote not in mismatch
    }
    failed = [rank for rank in pair if rank in raised]
    return (failed[0],) if len(failed) == 1 else None
