"""Ranks that a report names as those who did not come: torch's checks, torchfrtrace, NCCL's RAS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.collectives.job_part import LEFT_PATH, part_of_job, stack_of
from serried.diagnose.causes.logs.collectives.waits import logged_waits
from serried.diagnose.causes.logs.ends.cures import ITS_LOG
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.whom import named
from serried.finding import Sentence, said

ORIGINAL = 3
"""Lines within which a barrier's failure tells the exception behind it."""
_STACKS_OF_BOTH = said("take the stacks of a rank of each side: py-spy dump --pid PID")


def absent_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields ranks that torch itself says did not come."""
    for kind, verdict in (
        (
            "not_joined",
            said("{who} did not join a collective that the others are in, by torch's own report"),
        ),
        (
            "said_absent",
            said("{who} did not come to where the others waited, by a line of the job's own"),
        ),
        (
            "ras_absent",
            said(
                "NCCL's RAS got no answer from {who}: dead, stopped or cut off (as its "
                "communicator counts)"
            ),
        ),
    ):
        signs = [sign for sign in told.of(kind) if not sign.facts.get("is_part")]
        ranks = sorted({rank for sign in signs for rank in _ranks(sign)})
        if ranks:
            cause = Cause(
                CauseClass.HANG,
                "never_arrived",
                tuple(ranks),
                Sentence(verdict.template, {"who": named(ranks)}),
                confidence=0.8,
                quotes=quotes(signs),
                cures=(stack_of(ranks),),
                collective=_awaited(told, signs[0]),
            )
            yield RankedCause(cause, Standing.CONNECTION, told.place(signs[0]))


def _awaited(told: LoggedSigns, sign: Sign) -> CollectiveFacts | None:
    """Returns the collective that timed out, or that of the report where no time-out is told.

    A report counts all calls of a process and tells no more than a number.
    """
    if sign.collective is None or sign.collective.op is not None:
        return sign.collective
    waits = logged_waits(told)
    return waits[0].facts if waits and waits[0].facts.op else sign.collective


def barrier_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields who did not come to a monitored barrier.

    Only its first rank counts who came. Every other rank waits for that one alone, so that it
    names it whoever was missing: a line of the first rank, where there is one, tells more.
    """
    counted, broken = told.of("absent"), told.of("barrier_broken")
    signs = counted or broken
    if not signs:
        return
    ranks = tuple(sorted({rank for sign in signs for rank in _ranks(sign)}))
    has_left = not counted and told.first("gloo_closed") is not None
    is_open = not (counted or has_left) and _has_others(told, broken, ranks)
    is_gone = any(_is_of(closed, sign) for closed in told.of("gloo_closed") for sign in counted)
    if has_left:
        verdict = said(
            "{who} ended while the others stood in a monitored barrier; its own log says for whom "
            "it waited there",
            who=named(ranks),
        )
    elif is_gone:
        verdict = said(
            "{who} closed its connection instead of coming to a monitored barrier: it had ended, "
            "and its own log says why",
            who=named(ranks),
        )
    elif is_open:
        verdict = said(
            "{first}, for which the others wait in a monitored barrier, did not let them go on: "
            "nothing tells whether it never came, or waited for another, which its own log names",
            first=named(ranks),
        )
    else:
        verdict = said("{who} did not come to a monitored barrier", who=named(ranks))
    kind, cause_class, cures = part_of_job(told, signs[0])
    if kind == "timeout_unknown":
        cures = (ITS_LOG,) if is_gone or has_left or is_open else (stack_of(ranks),)
    cause = Cause(
        cause_class,
        "never_arrived" if kind == "timeout_unknown" else kind,
        None if has_left or is_open else ranks,
        verdict,
        confidence=0.5 if has_left or is_open else 0.8,
        quotes=quotes([*signs, *broken]),
        cures=cures,
        collective=_barrier(told, signs[0]),
    )
    yield RankedCause(cause, Standing.CONNECTION, told.place(signs[0]))


def _has_others(told: LoggedSigns, broken: Sequence[Sign], first: tuple[int, ...]) -> bool:
    """Tells whether ranks are heard of beside those who waited for the first, and that one."""
    waited = {who for sign in broken for who in (sign.speaker.global_rank, sign.facts["waiter"])}
    return bool({sign.speaker.global_rank for sign in told.signs} - {None, *waited, *first})


def _is_of(closed: Sign, failed: Sign) -> bool:
    """Tells whether a closed connection is the original exception of a barrier's failure."""
    after = closed.quote.line - failed.quote.line
    return closed.quote.source == failed.quote.source and 0 <= after <= ORIGINAL


def _barrier(told: LoggedSigns, sign: Sign) -> CollectiveFacts | None:
    """Returns the barrier with its limit, which gloo's own line may be the one to tell.

    Of a barrier that stands before a call, that call is what the ranks were to meet in.
    """
    facts = sign.collective
    limits = [late.facts.get("ms") for late in told.of("gloo_timeout")]
    limit = next((ms for ms in limits if isinstance(ms, int)), None)
    if facts is not None and facts.timeout_ms is None:
        facts = replace(facts, timeout_ms=limit)
    calls = [each.collective for each in told.of("barrier_of_call") if each.collective]
    return replace(calls[0], timeout_ms=facts.timeout_ms) if calls and facts else facts


def analysed_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields whom torchfrtrace named in what it printed."""
    signs = told.of("analysed_culprit", "analysed_missing")
    if not signs:
        return
    facts = {name: value for sign in told.of("analysed") for name, value in sign.facts.items()}
    op, seq, group = facts.get("op"), facts.get("seq"), facts.get("group")
    collective = CollectiveFacts(
        op if isinstance(op, str) else None,
        seq=seq if isinstance(seq, int) else None,
        group=group if isinstance(group, str) else None,
    )
    ranks = _ranks(signs[0])
    is_missing = signs[0].kind == "analysed_missing"
    verdict = (
        said("{who} did not join a collective of the others, by torchfrtrace", who=named(ranks))
        if is_missing
        else said("{who} brought another call than the others, by torchfrtrace", who=named(ranks))
    )
    cause = Cause(
        CauseClass.HANG,
        "never_arrived" if is_missing else "mismatch_size",
        ranks,
        verdict,
        confidence=0.7,
        quotes=quotes(signs),
        cures=(stack_of(ranks),) if is_missing else (LEFT_PATH,),
        collective=collective,
    )
    yield RankedCause(cause, Standing.CONNECTION, told.place(signs[0]))


def _ranks(sign: Sign) -> tuple[int, ...]:
    ranks = sign.facts["ranks"]
    return ranks if isinstance(ranks, tuple) else ()


def ras_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what NCCL's RAS says of ranks that are behind, ahead, or do not answer."""
    if signs := told.of("ras_counts"):
        yield _counts(told, signs[-1], signs)
    if states := told.of("ras_status"):
        cause = Cause(
            CauseClass.HANG,
            "ras_mismatch",
            None,
            said(
                "NCCL's RAS finds ranks of one communicator in different states, some starting or "
                "ending it: if a second report says the same, they are stuck there"
            ),
            confidence=0.5,
            quotes=quotes(states),
            collective=states[0].collective,
            cures=(_STACKS_OF_BOTH,),
        )
        yield RankedCause(cause, Standing.WAITS, told.place(states[0]))
    if missing := told.of("ras_missing"):
        parts = [sign for sign in told.of("ras_absent") if sign.facts["is_part"]]
        cause = Cause(
            CauseClass.HANG,
            "ras_missing",
            None,
            said(
                "NCCL's RAS gets no answer from some processes: they are dead, stopped or cut off"
            ),
            confidence=0.7,
            quotes=quotes([*missing, *parts]),
            collective=parts[0].collective if parts else None,
            cures=(
                said("look at those processes on their nodes: whether they live, and their logs"),
            ),
        )
        yield RankedCause(cause, Standing.WAITS, told.place(missing[0]))


def _counts(told: LoggedSigns, sign: Sign, signs: list[Sign]) -> RankedCause:
    counts, entries = sign.facts["counts"], sign.facts["listed"]
    assert isinstance(counts, tuple) and isinstance(entries, tuple)
    many = max(counts)
    few = [each for each in counts if each != many] or [min(counts)]
    number = sum(ranks for ranks, _ in few)
    facts = sign.collective or CollectiveFacts()
    ranks = () if sign.facts["is_part"] else tuple(sorted(entries))
    is_behind = number * 2 < many[0] and all(count < many[1] for _, count in few)
    who = named(ranks) if ranks else said("{number} ranks", number=number)
    values = {
        "op": facts.op or said("collectives"),
        "count": max(count for _, count in few),
        "many": many[0],
        "most": many[1],
    }
    verdict = said(
        "{who} launched {op} up to {count} only, where the other {many} ranks are at {most}: "
        "behind them"
        if is_behind
        else "{who} launched {op} up to {count}, where the other {many} ranks are at {most}: "
        "ahead on another path, or waiting for the others, so look at what the others do",
        who=who,
        **values,
    )
    cause = Cause(
        CauseClass.HANG,
        "ras_mismatch",
        ranks if is_behind and ranks else None,
        verdict,
        confidence=0.7,
        quotes=quotes(signs[-8:]),
        cures=(stack_of(few) if is_behind else _STACKS_OF_BOTH,),
        collective=facts,
        groups=(facts.group,) if facts.group else (),
    )
    return RankedCause(cause, Standing.WAITS, told.place(sign))
