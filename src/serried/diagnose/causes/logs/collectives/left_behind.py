"""Ranks that issued fewer calls of a group than those who wait in it: they never came.

    ranks 1, 2, 3   waited in number 79 until the limit     ┐ one group
    ranks 0, 4      enqueued 78 and completed 78            ┴─> ranks 0 and 4 never came to 79

A rank whose own call timed out at a lower number stands behind as well, where such ranks are few.
"""

from __future__ import annotations

from collections.abc import Sequence

from serried.diagnose.causes.logs.collectives.job_part import STACKS
from serried.diagnose.causes.logs.collectives.limit import RAISE
from serried.diagnose.causes.logs.collectives.waits import LoggedWait, meeting_of
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named
from serried.finding import Sentence, said


def left_behind(told: LoggedSigns, waits: Sequence[LoggedWait]) -> RankedCause | None:
    """Returns who issued fewer calls in a group than the others wait in, where groups are told."""
    for meeting in dict.fromkeys(wait.meeting for wait in waits if wait.meeting):
        met = [w for w in waits if w.meeting == meeting and w.facts.seq is not None]
        found = _waits_lower(told, met) or _idle(told, met, meeting)
        if found is not None:
            return found
    return None


def _waits_lower(told: LoggedSigns, met: Sequence[LoggedWait]) -> RankedCause | None:
    numbers = {w.facts.seq for w in met if w.facts.seq is not None}
    if len(numbers) < 2:
        return None
    low = min(numbers)
    ahead = [w for w in met if w.facts.seq != low]
    awaited = min(w.facts.seq or 0 for w in ahead)
    late = {
        w.rank
        for w in met
        if w.facts.seq == low and w.rank is not None and (w.facts.last_enqueued or 0) < awaited
    }
    others = {w.rank for w in ahead if w.rank is not None}
    if not late or late & others or len(late) >= len(others):
        return None
    verdict = said(
        "{who} never came to {op} {seq}: still in {low} while {others} went on and wait there",
        who=named(late),
        op=ahead[0].facts.op or "?",
        seq=ahead[0].facts.seq,
        low=low,
        others=named(others),
    )
    return _cause(told, late, verdict, ahead[0], [sign for wait in met for sign in wait.signs])


def _idle(told: LoggedSigns, met: Sequence[LoggedWait], meeting: str) -> RankedCause | None:
    """Returns who had finished all its calls of the group, and had not issued the awaited one."""
    numbers = [w.facts.seq for w in met if w.facts.seq is not None]
    waiting = {w.rank for w in met if w.rank is not None}
    if not numbers or not waiting:
        return None
    signs = {
        rank: sign
        for sign in told.of("status")
        if (rank := told.rank(sign.speaker)) is not None
        and rank not in waiting
        and meeting_of(sign, rank) == meeting
        and _is_done_before(sign, min(numbers))
    }
    if not signs or len(signs) > len(waiting):
        return None
    first = min(met, key=lambda wait: wait.facts.seq or 0)
    verdict = said(
        "{who} never came to {op} {seq}, with all calls before it finished: elsewhere while "
        "{others} waited there",
        who=named(signs),
        op=first.facts.op or "?",
        seq=first.facts.seq,
        others=named(waiting),
    )
    shown = [*signs.values(), *(sign for wait in met for sign in wait.signs)]
    return _cause(told, set(signs), verdict, first, shown)


def _is_done_before(sign: Sign, awaited: int) -> bool:
    facts = sign.collective
    if facts is None or facts.last_enqueued is None or facts.last_completed is None:
        return False
    return facts.last_enqueued < awaited and facts.last_completed == facts.last_enqueued


def _cause(
    told: LoggedSigns, late: set[int], verdict: Sentence, first: LoggedWait, signs: Sequence[Sign]
) -> RankedCause:
    cause = Cause(
        CauseClass.HANG,
        "never_arrived",
        tuple(sorted(late)),
        verdict,
        confidence=0.7,
        quotes=quotes(signs),
        cures=(STACKS, RAISE),
        collective=first.facts,
        groups=(first.facts.group,) if first.facts.group else (),
    )
    return RankedCause(cause, Standing.WAITS, min(told.place(sign) for sign in signs))
