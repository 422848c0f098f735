"""Ranks that disagree by what a check said: fingerprints, desync, barriers, RAS, schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.whom import named
from serried.errors import listed
from serried.finding import Sentence, said

_STACK_OF = said("take the stack of that rank (py-spy dump --pid PID): it is elsewhere")
_BRANCH = said(
    "look for a branch that depends on the rank or its batch: parameters that only some ranks "
    "use, a "
    "batch without images, a last batch that is shorter"
)
_ORDER = said(
    "break the circle: let one side receive first, or issue both at once (batch_isend_irecv), and "
    "validate the schedule with serried schedule"
)
Action = tuple[int, str, int]
_MEANINGS = (
    SignMeaning(
        ("mismatched",),
        CauseClass.HANG,
        "mismatch_op",
        Standing.MISMATCH,
        (
            said(
                "NCCL or MPI found ranks in different calls; the rank that it prints is near, not "
                "necessarily the one at fault"
            ),
        ),
        (
            said(
                "list every call: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL, one file for each rank "
                "(NCCL_DEBUG_FILE=nccl.%h.%p.log), and give these files to serried diagnose"
            ),
        ),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("fingerprints_cut",),
        CauseClass.HANG,
        "mismatch_op",
        Standing.WAITS,
        (said("torch found ranks in different collectives; the line that names them was cut off"),),
        (_BRANCH,),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("straggler",),
        CauseClass.STRAGGLER,
        "straggler",
        Standing.NOTICED,
        (said("the job's own report calls {who} slower than the others"),),
        (
            said(
                "see whether the GPU's clock, the loader or the link is slow: serried diagnose "
                "on the recorded traces says which, and what it costs"
            ),
        ),
        0.7,
    ),
)


def disagreement_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what checks say of ranks that did not do the same."""
    yield from candidates(told, _MEANINGS)
    yield from _fingerprints(told)
    yield from _named(told)
    yield from _analysed(told)
    yield from _calls(told)
    yield from _ras(told)
    yield from _circle(told)


def _fingerprints(told: LoggedSigns) -> Iterator[RankedCause]:
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
        "inside "
        "their group)",
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
        cures=(_BRANCH,),
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
        cures=(_BRANCH,),
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


def _calls(told: LoggedSigns) -> Iterator[RankedCause]:
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
        cures=(_BRANCH,),
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


def _named(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields ranks that torch itself says did not come."""
    for kind, verdict in (
        (
            "not_joined",
            said("{who} did not join a collective that the others are in, by torch's own report"),
        ),
        ("absent", said("{who} did not come to a monitored barrier")),
        (
            "ras_absent",
            said(
                "NCCL's RAS got no answer from {who}: dead, stopped or cut off (as its "
                "communicator counts)"
            ),
        ),
    ):
        signs = told.of(kind)
        ranks = sorted({rank for sign in signs for rank in _ranks(sign)})
        if ranks:
            cause = Cause(
                CauseClass.HANG,
                "never_arrived",
                tuple(ranks),
                Sentence(verdict.template, {"who": named(ranks)}),
                confidence=0.8,
                quotes=quotes(signs),
                cures=(_STACK_OF,),
                collective=signs[0].collective,
            )
            yield RankedCause(cause, Standing.CONNECTION, told.place(signs[0]))


def _analysed(told: LoggedSigns) -> Iterator[RankedCause]:
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
        cures=(_STACK_OF,) if is_missing else (_BRANCH,),
        collective=collective,
    )
    yield RankedCause(cause, Standing.CONNECTION, told.place(signs[0]))


def _ranks(sign: Sign) -> tuple[int, ...]:
    ranks = sign.facts["ranks"]
    return ranks if isinstance(ranks, tuple) else ()


def _ras(told: LoggedSigns) -> Iterator[RankedCause]:
    if signs := told.of("ras_counts"):
        yield _counts(told, signs[-1], signs)
    if missing := told.of("ras_missing"):
        cause = Cause(
            CauseClass.HANG,
            "ras_missing",
            None,
            said(
                "NCCL's RAS gets no answer from some processes: they are dead, stopped or cut off"
            ),
            confidence=0.7,
            quotes=quotes(missing),
            cures=(
                said("look at those processes on their nodes: whether they live, and their logs"),
            ),
        )
        yield RankedCause(cause, Standing.WAITS, told.place(missing[0]))


def _counts(told: LoggedSigns, sign: Sign, signs: list[Sign]) -> RankedCause:
    counts, entries = sign.facts["counts"], sign.facts["listed"]
    assert isinstance(counts, tuple) and isinstance(entries, tuple)
    many = max(counts)
    few = min(counts)
    facts = sign.collective or CollectiveFacts()
    ranks = tuple(sorted(rank for rank, *_ in entries))
    is_behind = len(counts) == 2 and few[1] < many[1] and few[0] * 2 < many[0]
    who = named(ranks) if ranks else said("{number} ranks", number=few[0])
    values = {"op": facts.op, "count": few[1], "many": many[0], "most": many[1]}
    verdict = said(
        "{who} launched {op} up to {count} only, where the other {many} ranks are at {most}: "
        "behind them"
        if is_behind
        else "{who} launched {op} up to {count}, where the other {many} ranks are at {most}: they "
        "ran ahead on another path or wait for the others, so look at what the others do",
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
        cures=(_STACK_OF if is_behind else said("take the stacks of a rank of each side"),),
        collective=facts,
        groups=(facts.group,) if facts.group else (),
    )
    return RankedCause(cause, Standing.WAITS, told.place(sign))


def _circle(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields ranks that each wait in a send or receive whose partner is in another one."""
    signs = {
        sign.speaker.rank: sign for sign in told.of("actions") if sign.speaker.rank is not None
    }
    plans = {rank: _actions(sign) for rank, sign in signs.items()}
    stuck = _stuck(plans)
    if len(stuck) < 2:
        return
    verdict = said(
        "the order of sends and receives is a deadlock: {calls}; each waits for what the other "
        "would "
        "do next",
        calls=listed(
            [
                said("rank {rank} waits in {action}", rank=rank, action=_word(action))
                for rank, action in stuck.items()
            ],
            last="and",
        ),
    )
    cause = Cause(
        CauseClass.HANG,
        "pp_deadlock",
        tuple(sorted(stuck)),
        verdict,
        confidence=0.9,
        quotes=quotes(signs.values()),
        cures=(_ORDER,),
    )
    yield RankedCause(cause, Standing.MISMATCH, told.place(next(iter(signs.values()))))


def _actions(sign: Sign) -> list[Action]:
    actions = sign.facts["actions"]
    return list(actions) if isinstance(actions, tuple) else []


def _stuck(plans: Mapping[int, list[Action]]) -> dict[int, Action]:
    """Returns the action in which each rank of a deadlock stays; messages wait for one another."""
    homes = {stage: rank for rank, actions in plans.items() for stage, _, _ in actions}
    at = dict.fromkeys(plans, 0)
    moved = True
    while moved:
        moved = False
        for rank, actions in plans.items():
            if at[rank] == len(actions):
                continue
            partner = _partner(actions[at[rank]], homes)
            if partner is None:
                at[rank], moved = at[rank] + 1, True
                continue
            other, wanted = partner
            if at[other] < len(plans[other]) and plans[other][at[other]] == wanted:
                at[rank], at[other], moved = at[rank] + 1, at[other] + 1, True
    return {rank: plans[rank][place] for rank, place in at.items() if place < len(plans[rank])}


def _partner(action: Action, homes: Mapping[int, int]) -> tuple[int, Action] | None:
    """Returns whose action must meet this one, and which; None for what needs nobody known."""
    stage, name, microbatch = action
    if "_" not in name:
        return None
    way, kind = name.split("_")
    step = 1 if (way == "send") == (kind == "f") else -1
    if stage + step not in homes:
        return None
    other = "recv" if way == "send" else "send"
    return homes[stage + step], (stage + step, f"{other}_{kind}", microbatch)


def _word(action: Action) -> str:
    stage, name, microbatch = action
    way, _, kind = name.partition("_")
    return f"{stage}{way.capitalize()}{kind.upper()}{microbatch}"
