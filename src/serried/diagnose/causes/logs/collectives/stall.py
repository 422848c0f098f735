"""Stalls as Horovod, JAX and Ascend report them: who is missing, where the report says it.

every call misses the same ranks    -> they never came
calls miss different ranks          -> the ranks are in different calls; nobody is accused
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.collectives.job_part import part_of_job
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named
from serried.finding import said

_STACKS = said("take the stacks of the ranks that are named (py-spy dump --pid PID)")
_SAME_ORDER = said(
    "let all ranks issue the same calls: look for a branch that depends on the rank or its batch"
)
_ITS_LOG = said("read that task's own log from its end: an earlier error stands there")

_LOST = SignMeaning(
    ("task_lost",),
    CauseClass.NODE_LOST,
    "node_lost",
    Standing.EXHAUSTED,
    (said("{who} gave no heartbeat any more: the process crashed, hung or lost its node"),),
    (_ITS_LOG,),
    0.7,
)
_SILENT = replace(
    _LOST,
    kinds=("silent",),
    cause_class=CauseClass.HANG,
    kind="never_arrived",
    standing=Standing.WAITS,
)
_AT_START = SignMeaning(
    ("task_absent",),
    CauseClass.STARTUP,
    "init_rendezvous",
    Standing.CONNECTION,
    (said("{who} did not come to the start within the limit"),),
    (_ITS_LOG,),
    0.8,
)
_ABSENT = replace(
    _AT_START,
    cause_class=CauseClass.HANG,
    kind="never_arrived",
    templates=(said("{who} did not come to a barrier that the others waited in"),),
)
_HCCL = SignMeaning(
    ("hccl",),
    CauseClass.HANG,
    "timeout_unknown",
    Standing.WAITS,
    (
        said(
            "a collective of HCCL timed out: {who} waited for rank {peer} of the group, "
            "which may wait itself"
        ),
        said(
            "a collective of HCCL timed out; which rank kept the others waiting is not in the log"
        ),
    ),
    (_STACKS,),
    0.5,
    "unknown",
)
_STARTS = ("connect", "init", "register", "start")
"""What the names of barriers at the start hold."""


def stall_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what the reports of stalled processes tell; one that is told to have ended is none."""
    if stalls := told.of("stall"):
        yield _stalled(told, stalls)
    if absent := told.of("task_absent"):
        barrier = str(absent[0].facts["barrier"]).lower()
        is_start = any(word in barrier for word in _STARTS)
        yield candidate(told, _AT_START if is_start else _ABSENT, absent)
    ended = told.ranks(told.of("exit", "task_exit"))
    if lost := [sign for sign in told.of("task_lost") if told.rank(sign.speaker) not in ended]:
        yield candidate(told, _LOST, lost)
    if silent := told.of("silent"):
        yield candidate(told, _SILENT, silent)
    if late := told.of("hccl"):
        found = candidate(told, _HCCL, late)
        kind, cause_class, cures = part_of_job(told, late[0])
        cause = replace(found.cause, kind=kind, cause_class=cause_class, cures=cures)
        yield replace(found, cause=cause)


def _stalled(told: LoggedSigns, stalls: list[Sign]) -> RankedCause:
    missing = {ranks for sign in stalls if isinstance(ranks := sign.facts.get("missing"), tuple)}
    ready = {ranks for sign in stalls if isinstance(ranks := sign.facts.get("ready"), tuple)}
    calls: dict[object, set[object]] = {}
    for sign in stalls:
        calls.setdefault(sign.facts.get("missing"), set()).add(sign.facts["name"])
    is_alike = len({frozenset(names) for names in calls.values()}) == 1
    culprits: tuple[int, ...] | None = None
    call = stalls[0].facts["name"]
    if missing and not ready and (len(missing) == 1 or is_alike):
        culprits = tuple(sorted({rank for ranks in missing for rank in ranks}))
        verdict = said(
            "{who} did not come to {call}, which the others wait in", who=named(culprits), call=call
        )
    elif len(missing) > 1 or len(ready) > 1:
        verdict = said(
            "ranks wait in different calls, each for the others: which side left the common path "
            "the log does not tell"
        )
    else:
        there = next(iter(ready))
        absent = sorted(set(range(max(there, default=0))) - set(there))
        verdict = said(
            "{there} waited in {call}; missing: {who}, and any rank with a higher number",
            there=named(there),
            call=call,
            who=named(absent),
        )
    is_mismatch = len(missing | ready) > 1 and culprits is None
    cause = Cause(
        CauseClass.HANG,
        "mismatch_op" if is_mismatch else "never_arrived",
        culprits,
        verdict,
        confidence=0.75 if culprits else 0.6,
        quotes=quotes(stalls),
        cures=(_SAME_ORDER, _STACKS) if is_mismatch else (_STACKS, _SAME_ORDER),
        collective=stalls[0].collective,
    )
    standing = Standing.MISMATCH if is_mismatch else Standing.CONNECTION
    return RankedCause(cause, standing, told.place(stalls[0]))
