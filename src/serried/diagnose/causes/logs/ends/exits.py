"""Exit codes and signals of processes, and what stopped a job from outside.

An exit code alone says little: 1 is an exception that another line tells, -6 as a rule the
watchdog's own end. A process that is killed by signal 9 without a word was as a rule killed by
the kernel, for want of memory; who sent it only the kernel log says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.ends.cures import ASK_SCHEDULER, JOBS_OUTPUT, REQUEUE
from serried.diagnose.causes.logs.ends.meanings import (
    ABORTED,
    BUS,
    FAILED,
    HANGUP,
    INTERRUPTED,
    KILLED,
    KILLED_LOADING,
    OWN_FAULTS,
    SEGFAULT,
    SEVERAL_FAILED,
    STOPPED,
    STOPPED_LATER,
    TERMINATED,
)
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import said

_SIGNALS = {
    "SIGKILL": -9,
    "SIGSEGV": -11,
    "SIGABRT": -6,
    "SIGBUS": -7,
    "SIGTERM": -15,
    "SIGHUP": -1,
    "SIGINT": -2,
    "SIGFPE": -8,
    "SIGILL": -4,
    "SIGUSR1": -10,
    "SIGUSR2": -12,
}

ALL_CODES = 256
"""Exit codes that a byte holds."""
FIRST_OF_SIGNALS = 128
"""An exit code from here on stands for a signal."""
_CANCELLED = SignMeaning(
    ("cancelled",),
    CauseClass.EXTERNAL_STOP,
    "cancelled",
    Standing.ROOT,
    (said("the scheduler stopped the job: {why}"), said("the scheduler stopped the job")),
    (REQUEUE,),
    0.85,
    "nobody",
)
_CANCELLED_UNTOLD = replace(
    _CANCELLED,
    standing=Standing.NOTICED,
    templates=(
        said("user {user} cancelled the job: ask why, for they may have seen it hang or fail"),
        said("the scheduler stopped the job"),
    ),
    cures=(ASK_SCHEDULER,),
    confidence=0.4,
)
_STEP_ENDED = replace(_CANCELLED_UNTOLD, standing=Standing.FOLLOWS)
_TASK_FAILED = SignMeaning(
    ("cancelled",),
    CauseClass.EXCEPTION,
    "exit_code",
    Standing.FOLLOWS,
    (
        said(
            "Slurm ended a step because a task of it had failed; which one, and why, stands in "
            "the output of the tasks"
        ),
    ),
    (JOBS_OUTPUT,),
    0.4,
    "unknown",
)
_STEP = re.compile(r"\bSTEP \d|StepId=|Job step aborted")
_WHY = {
    "time limit": said("its time limit ran out"),
    "walltime": said("its time limit ran out"),
    "wall clock": said("its time limit ran out"),
    "wallclock": said("its time limit ran out"),
    "timed-out": said("its time limit ran out"),
    "deadline": said("its deadline had passed"),
    "preempted": said("another job took its place (preemption)"),
    "preemption": said("another job took its place (preemption)"),
    "suspended": said("it was suspended"),
}


_CUT_OFF = ("gloo_closed", "reset", "gloo_timeout", "nccl_remote")
"""What a rank says that was caught in a wait: who ended first, or never came, is another one."""


def exit_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what processes ended by, as far as their codes tell."""
    by_meaning: dict[int, tuple[SignMeaning, list[Sign]]] = {}
    for sign in _ends(told):
        meaning = _of_exit(told, sign)
        if sign.kind == "other_failure" and meaning not in OWN_FAULTS:
            continue  # whoever ended later was as a rule ended by the launcher
        by_meaning.setdefault(id(meaning), (meaning, []))[1].append(sign)
    for meaning, signs in by_meaning.values():
        if meaning is KILLED and (loading := _loading(told, signs[0])):
            yield candidate(told, KILLED_LOADING, [*signs, loading])
        else:
            shown = signs if meaning in (KILLED, SEGFAULT, BUS) else signs[:1]
            is_several = meaning is FAILED and len(_failed(told)) > 1
            if meaning is FAILED and not is_several and _was_cut_off(told, signs[0]):
                continue  # it ended because a peer had ended, as its own lines say
            yield candidate(told, SEVERAL_FAILED if is_several else meaning, shown)


def _ends(told: LoggedSigns) -> list[Sign]:
    """Returns the ends that were no good ones; of a rank those that tell how, where any do."""
    kinds = ("exit", "first_failure", "other_failure", "task_exit")
    ends = [s for s in told.of(*kinds) if s.code != 0 and not _is_told_elsewhere(told, s)]
    named = {sign.quote for sign in ends if told.rank(sign.speaker) is not None}
    ends = [s for s in ends if s.quote not in named or told.rank(s.speaker) is not None]
    ends = [s for s in ends if not _is_stop_of_rest(s, ends)]
    how = {told.rank(sign.speaker) for sign in ends if _tells_how(sign)}
    return [s for s in ends if _tells_how(s) or told.rank(s.speaker) not in how - {None}]


def _is_stop_of_rest(sign: Sign, ends: Sequence[Sign]) -> bool:
    """Tells whether a SIGTERM is the launcher's, which stops the ranks that are left of a job."""
    stop = _SIGNALS["SIGTERM"]
    is_stop = sign.end_code == stop and sign.kind != "first_failure"
    return is_stop and any(other.end_code not in (None, stop) for other in ends)


def _is_told_elsewhere(told: LoggedSigns, sign: Sign) -> bool:
    """Tells whether the scheduler ended a process as it cleared up, or says that memory ran out.

    Of a job that it has cancelled Slurm kills every task, whichever failed before; so it does
    with the tasks that are left where one ended with a code of its own.
    """
    how = str(sign.facts.get("how") or "")
    if how.startswith("Out Of Memory"):
        return True
    is_swept = sign.kind == "task_exit" and how.startswith(("Killed", "Terminated"))
    return is_swept and any(
        stop.quote.source == sign.quote.source and stop.quote.line < sign.quote.line
        for stop in [*told.of("cancelled"), *filter(_is_own_code, told.of("task_exit"))]
    )


def _is_own_code(sign: Sign) -> bool:
    return 0 < (sign.code or 0) < FIRST_OF_SIGNALS


def _tells_how(sign: Sign) -> bool:
    return sign.code is not None or any(sign.facts.get(each) for each in ("name", "signal", "how"))


def _failed(told: LoggedSigns) -> set[int | None]:
    """Returns the ranks that ended with a code of their own; of several none is the first."""
    return {told.rank(sign.speaker) for sign in _ends(told) if _of_exit(told, sign) is FAILED}


def _was_cut_off(told: LoggedSigns, end: Sign) -> bool:
    """Tells whether a rank that ended says itself that it lost a peer, or waited to the limit."""
    rank = told.rank(end.speaker)
    if rank is None:
        return False
    first = [each for each in told.of("first_failure") if told.rank(each.speaker) == rank]
    return rank in told.ranks(told.of(*_CUT_OFF)) or any(
        _summary_of(told, each) in _CUT_OFF for each in first
    )


def _summary_of(told: LoggedSigns, failure: Sign) -> str | None:
    """Returns what the traceback below a launcher's first failure ends in; None where it is none.

    The last of its log's tracebacks is that rank's, which names no rank of its own.
    """
    below = [
        sign
        for sign in told.of("exception", "other_failure", *_CUT_OFF)
        if sign.quote.source == failure.quote.source and sign.quote.line > failure.quote.line
    ]
    first = min((sign.quote.line for sign in below), default=None)
    kinds = [sign.kind for sign in below if sign.quote.line == first]
    return next((kind for kind in kinds if kind in _CUT_OFF), None)


def _of_exit(told: LoggedSigns, sign: Sign) -> SignMeaning:
    name = str(sign.facts.get("name") or "")
    how = str(sign.facts.get("how") or "").capitalize()
    code = _SIGNALS.get(name, sign.code if sign.code is not None else 0)
    if isinstance(sign.facts.get("signal"), int):
        code = sign.end_code or 0
    if code - ALL_CODES in (-6, -7, -9, -11, -15):  # Python's own negative code as a byte
        code -= ALL_CODES
    elif code > FIRST_OF_SIGNALS:
        code = FIRST_OF_SIGNALS - code
    if code == -9 or how.startswith("Killed"):
        return KILLED
    if code == -11 or how.startswith("Segmentation"):
        return SEGFAULT
    if code == -7 or how.startswith("Bus"):
        return BUS
    if code == -1 and sign.kind != "task_exit":
        return HANGUP
    if code == -15 or how.startswith("Terminated"):
        return TERMINATED
    if code == -6 or how.startswith("Abort"):
        return ABORTED
    return FAILED


def _loading(told: LoggedSigns, exit_sign: Sign) -> Sign | None:
    """Returns the sign of a checkpoint being loaded, where it is the last said before an exit."""
    place = told.place(exit_sign)
    before = [
        sign for sign in told.of("loading", "saving", "validating") if told.place(sign) <= place
    ]
    return before[-1] if before and before[-1].kind == "loading" else None


def _of_agent(told: LoggedSigns, stop: Sign) -> SignMeaning:
    """Returns what it means that the launcher got a signal, by what its log says above that."""
    if stop.facts.get("signal") == 1:
        return HANGUP
    has_failed = any(
        sign.quote.source == stop.quote.source
        and sign.quote.line < stop.quote.line
        and _is_own_code(sign)
        for sign in told.of("exit")
    )
    if has_failed:
        return STOPPED_LATER
    return INTERRUPTED if stop.facts.get("signal") == -_SIGNALS["SIGINT"] else STOPPED


def _in_words(cancelled: Sign) -> Sign:
    """Returns the sign of a stop with its reason in words, where the scheduler's are known."""
    why = _WHY.get(str(cancelled.facts.get("why")).lower())
    return cancelled if why is None else replace(cancelled, facts={**cancelled.facts, "why": why})


def stop_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what stopped the job from outside."""
    signs = told.of("agent_signal")
    if signs:
        yield candidate(told, _of_agent(told, signs[0]), signs[:1])
    cancelled = told.of("cancelled", "evicted")
    failures = [sign for sign in cancelled if sign.facts.get("why") == "TASK FAILURE"]
    if failures:
        yield candidate(told, _TASK_FAILED, failures)
        return
    reasons = [sign for sign in cancelled if sign.facts.get("why") not in (None, "aborted")]
    if reasons:
        yield candidate(told, _CANCELLED, list(map(_in_words, reasons)))
    elif cancelled:
        yield candidate(
            told, _STEP_ENDED if _is_of_step(told, cancelled) else _CANCELLED_UNTOLD, cancelled
        )


def _is_of_step(told: LoggedSigns, cancelled: Sequence[Sign]) -> bool:
    """Tells whether Slurm ended a step because a task of it had ended with a code of its own."""
    has_failed = any(map(_is_own_code, told.of("task_exit")))
    return has_failed and all(_STEP.search(sign.quote.text) for sign in cancelled)
