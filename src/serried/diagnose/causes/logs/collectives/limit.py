"""Whether a longer time-out would have helped: what to do about the limit, for each cause.

failed     a rank that failed does not come, however long the others wait       no
differ     ranks in different calls never meet                                  no
busy       a rank saves or prepares data for longer than the limit              yes, for that part
start      ranks start far apart                                                perhaps
else       it depends on whether the missing rank is still at work              see RAISE
"""

from __future__ import annotations

from dataclasses import replace

from serried.diagnose.causes.logs.sequence import Order, sequence
from serried.diagnose.causes.logs.signs import LoggedSigns
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.finding import Sentence, said

RAISE = said(
    "raise the time-out only if the missing rank is still at work (building data, saving, "
    "compiling); where it is dead or on another path, the job just waits longer"
)
NEVER_MEET = said(
    "do not raise the time-out: ranks in different calls never meet, however long they wait"
)
_FAILED = said(
    "do not raise the time-out: the others waited for what failed here, and a longer limit only "
    "delays the end"
)
_START = said(
    "a longer timeout of init_process_group helps only where ranks start that far apart (images, "
    "data); one that never starts does not come"
)
_ENDS = frozenset(
    (
        CauseClass.EXCEPTION,
        CauseClass.HOST_OOM,
        CauseClass.HARDWARE,
        CauseClass.STORAGE,
        CauseClass.DATA,
        CauseClass.GPU_OOM,
        CauseClass.CUDA_ERROR,
        CauseClass.NODE_LOST,
        CauseClass.NUMERICS,
    )
)
"""Classes of what ends a rank; a stall of storage or data has waited itself, and is told apart."""
_STALLS = ("checkpoint_stall", "data_stall")
_LIMITS = ("timeout", "gloo_timeout", "dump_signal", "heartbeat", "taken_down", "nccl_id")


def raised_for(limit_ms: int | None) -> Sentence:
    """Returns the advice for work that takes longer than the limit.

    >>> print(raised_for(600_000))
    raise the time-out above what this takes (the limit was 600 s): timeout=... of \
init_process_group, or of a new_group for this call alone
    """
    if limit_ms is None:
        return said(
            "raise the time-out above what this takes: timeout=... of init_process_group, or of a "
            "new_group for this call alone"
        )
    return said(
        "raise the time-out above what this takes (the limit was {seconds:,.0f} s): timeout=... of "
        "init_process_group, or of a new_group for this call alone",
        seconds=limit_ms / 1000,
    )


def answered(told: LoggedSigns, cause: Cause) -> Cause:
    """Returns a cause with what came first and what to do about the limit, where one ran out."""
    if cause.kind == "init_rendezvous":
        return replace(cause, cures=(*cause.cures, _START))
    if told.first(*_LIMITS) is None or cause.cause_class not in _ENDS or cause.kind in _STALLS:
        return cause
    order, sentences = sequence(told, cause)
    advice = RAISE if order is Order.AFTER else _FAILED
    return replace(
        cause,
        chain=(*cause.chain, *sentences),
        cures=(*cause.cures, advice),
        confidence=min(cause.confidence, 0.6) if order is Order.AFTER else cause.confidence,
    )
