"""All causes that logs tell, from the likeliest on: what is nearer to a root comes first.

Among causes that stand alike the one that the log tells first comes first. What a process printed
after a time-out is judged by its kind: a closed connection follows; a broken GPU does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.collectives.disagreement import disagreement_candidates
from serried.diagnose.causes.logs.collectives.limit import answered
from serried.diagnose.causes.logs.collectives.stall import stall_candidates
from serried.diagnose.causes.logs.collectives.timeout import timeout_candidates
from serried.diagnose.causes.logs.connection import connection_candidates
from serried.diagnose.causes.logs.device import device_candidates
from serried.diagnose.causes.logs.ends.exits import exit_candidates, stop_candidates
from serried.diagnose.causes.logs.ends.told import told_ends
from serried.diagnose.causes.logs.exception import exception_candidates
from serried.diagnose.causes.logs.inputs import input_candidates
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.nodes import node_candidates
from serried.diagnose.causes.logs.sequence import Order, sequence
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.causes.logs.startup import startup_candidates
from serried.diagnose.causes.logs.vague import vague_candidates
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.numbers import numbered_by_launchers
from serried.diagnose.evidence.quote import NOBODY, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named, speaker_named
from serried.finding import Sentence

MOST_CAUSES = 4
KILLS = (-9, -15, -6)
"""Ends from outside, or of the watchdog: not those of a process's own failure."""
_OWN_FAILURES = (
    CauseClass.EXCEPTION,
    CauseClass.GPU_OOM,
    CauseClass.CUDA_ERROR,
    CauseClass.DATA,
    CauseClass.NUMERICS,
)

WHAT = 3
"""Lines within which C++ or NCCL say what went wrong, once they have said that something did."""

_OF_NOBODY = ("aborted", "models_differ")
"""Kinds of causes of which the process that ended first is no sign."""

_OF_ABORT = ("cuda_error", "segfault")
"""Kinds of causes that a process may meet as the watchdog takes its communicators down."""

_FAMILIES = (
    device_candidates,
    disagreement_candidates,
    input_candidates,
    exception_candidates,
    told_ends,
    exit_candidates,
    stop_candidates,
    node_candidates,
    connection_candidates,
    startup_candidates,
    timeout_candidates,
    stall_candidates,
    vague_candidates,
)


def log_causes(signs: Sequence[Sign]) -> Iterator[Cause]:
    """Yields the causes that signs of text tell, the likeliest first."""
    for _, cause in standing_causes(signs):
        yield cause


def standing_causes(signs: Sequence[Sign]) -> Iterator[tuple[int, Cause]]:
    """Yields the causes that signs of text tell, each with its standing, the nearest root first."""
    told = LoggedSigns(numbered_by_launchers(signs))
    found = [each for family in _FAMILIES for each in family(told)]
    waits = sorted((e for e in found if e.standing is Standing.WAITS), key=lambda e: e.place)
    standings = {id(each): _standing(told, each, waits) for each in found}
    ranked = sorted(found, key=lambda each: (standings[id(each)], each.place))
    shown = [
        each
        for each in ranked
        if not _is_echo(each, ranked[0]) and not _is_own_abort(standings[id(each)], each, ranked[0])
    ][:MOST_CAUSES]
    is_told = any(each.cause.collective for each in shown)
    for number, each in enumerate(shown):
        cause = _with_broken_call(told, each.cause, is_first=number == 0 and not is_told)
        yield standings[id(each)], answered(told, _with_rank_of_exit(told, cause))


def _is_echo(each: RankedCause, first: RankedCause) -> bool:
    """Tells whether a cause repeats, more vaguely, what the first one says."""
    if each is first:
        return False
    is_same = each.cause.cause_class is first.cause.cause_class
    is_vague = each.standing is Standing.MARKED or _is_begun(each, first)
    is_later = is_same and each.standing is Standing.FOLLOWS
    is_like = is_same and each.cause.kind == first.cause.kind
    is_repeated = is_like and _adds_nobody(each, first)
    is_less = is_repeated or _adds_nothing(each, first)
    return is_vague or is_later or is_less or _is_follow_up(each, first)


def _adds_nothing(each: RankedCause, first: RankedCause) -> bool:
    """Tells whether a line that leaves out what failed stands beside one that tells it."""
    return each.is_bare and first.standing < Standing.NOTICED


def _is_own_abort(standing: int, each: RankedCause, first: RankedCause) -> bool:
    """Tells whether a process aborted because its watchdog saw the time-out that is told first."""
    is_wait = first.cause.cause_class is CauseClass.HANG and first.standing >= Standing.WAITS
    return is_wait and each.cause.kind == "aborted" and standing == Standing.FOLLOWS


def _adds_nobody(each: RankedCause, first: RankedCause) -> bool:
    known = set(each.cause.ranks or ()) <= set(first.cause.ranks or ())
    return known and each.cause.collective is None


def _is_begun(each: RankedCause, first: RankedCause) -> bool:
    """Tells whether a cause is the word that something failed, and the first says what it was."""
    begins = each.standing is Standing.FOLLOWS and each.cause.kind in ("aborted", "cuda_error")
    return (begins or each.cause.kind in ("nccl_error", "nccl_usage")) and any(
        line.source == thrown.source and 0 <= line.line - thrown.line <= WHAT
        for thrown in each.cause.quotes
        for line in first.cause.quotes
    )


def _is_follow_up(each: RankedCause, first: RankedCause) -> bool:
    """Tells whether a cause is what the first one brings about: who was ended, and the stop."""
    is_end = first.standing < Standing.NOTICED or first.cause.kind == "exit_code"
    if each.cause.cause_class is CauseClass.EXTERNAL_STOP:
        return is_end and each.standing >= Standing.NOTICED
    if first.cause.kind == "mismatch_size" and each.cause.kind == "aborted":
        return True  # gloo ends a process that gets other bytes, and says which
    if each.cause.kind == "launch_failed":  # of a container that ended
        return each.standing is Standing.FOLLOWS
    if first.cause.kind == "launch_failed" and each.cause.kind == "exit_code":
        return each.cause.ranks is None  # what was to start it ended so
    is_memory = first.cause.cause_class is each.cause.cause_class is CauseClass.HOST_OOM
    is_untold = each.cause.ranks in (None, first.cause.ranks)
    return is_memory and is_untold and each.standing is Standing.ENDED


def _with_broken_call(told: LoggedSigns, cause: Cause, *, is_first: bool) -> Cause:
    """Returns a cause with the figures of the collective that an error of NCCL ended.

    They are those of a cause that tells the same number, or of the first where none tells any.
    """
    calls = [sign.collective for sign in told.of("broken_call") if sign.collective]
    if not calls:
        return cause
    own = cause.collective
    if own is None:
        return replace(cause, collective=calls[0].filled(calls[1:])) if is_first else cause
    return replace(cause, collective=own.filled(call for call in calls if call.seq == own.seq))


def _with_rank_of_exit(told: LoggedSigns, cause: Cause) -> Cause:
    """Returns a cause of a failure without a rank with that of the one process that ended first.

    Before torch 2.3 no rank stands in front of a traceback; torchrun's next line tells it.
    """
    is_own = cause.cause_class in _OWN_FAILURES or cause.kind == "launch_failed"
    if cause.ranks is not None or not is_own or cause.kind in _OF_NOBODY:
        return cause
    if cause.kind == "exception" and len(cause.quotes) > 1:
        return cause  # several processes raised it, of which the launcher names one
    ends = told.of("exit", "first_failure", "other_failure", "task_exit")
    ranks = told.ranks(ends)
    is_told_at_once = len({sign.quote for sign in ends}) == 1
    if (
        not ranks
        or all(sign.kind == "other_failure" for sign in ends)  # the first one is cut off
        or any("tasks" in sign.facts and sign.code for sign in ends)
        or (len(ranks) > 1 and not is_told_at_once)
        or any(sign.end_code in _not_own(told) for sign in ends)
    ):
        return cause
    shown = (*cause.quotes, *quotes(ends))
    who = named(ranks) if len(ranks) > 1 else speaker_named(_best(told, ends))
    verdict = cause.verdict
    if verdict.values.get("who") == speaker_named(NOBODY):
        verdict = Sentence(verdict.template, {**verdict.values, "who": who})
    return replace(cause, ranks=ranks, verdict=verdict, quotes=tuple(dict.fromkeys(shown)))


def _best(told: LoggedSigns, ends: Sequence[Sign]) -> Speaker:
    """Returns the speaker of some ends that is told best: with its number in the job, if any."""
    numbered = [sign.speaker for sign in ends if told.rank(sign.speaker) is not None]
    return next((each for each in numbered if each.global_rank is not None), numbered[0])


def _not_own(told: LoggedSigns) -> Sequence[int]:
    """Returns the codes of ends from outside; an abort is its own where its exception is told."""
    is_watched = told.first("timeout", "taken_down", "dump_signal") is not None
    is_own_abort = told.first("native_abort") is not None and not is_watched
    return [code for code in KILLS if code != -6 or not is_own_abort]


def _standing(told: LoggedSigns, each: RankedCause, waits: Sequence[RankedCause]) -> int:
    """Returns how near to the root a cause is; an end after a wait of its own follows from that.

    Within one file its lines tell what is after; over files only times do. Whoever lost a peer
    tells of that peer's end before the launcher does, which therefore follows from nothing.
    """
    if _is_of_barrier(told, each):
        return Standing.FOLLOWS
    is_late = each.standing in (Standing.ENDED, Standing.NOTICED) or each.cause.kind in _OF_ABORT
    before = [wait for wait in waits if _brings_about(told, wait, each)] if is_late else []
    if not before:
        return each.standing
    first = next((wait.place for wait in before if _source(wait) == _source(each)), None)
    if first is not None:
        is_after = each.place > first
    else:
        is_after = sequence(told, each.cause)[0] is Order.AFTER
    return Standing.FOLLOWS if is_after else each.standing


def _is_of_barrier(told: LoggedSigns, each: RankedCause) -> bool:
    """Tells whether an error is what a barrier raised that ranks did not come to.

    It is raised on the rank that says who did not come, which is the first one of its group.
    """
    failed = told.first("absent")
    if failed is None or each.cause.kind != "exception":
        return False
    if not set(each.cause.ranks or ()) <= {0, *told.ranks(told.of("absent"))}:
        return False
    return _source(each) == told.signs[failed].quote.source and each.place > failed


def _brings_about(told: LoggedSigns, wait: RankedCause, end: RankedCause) -> bool:
    """Tells whether an end may follow from a wait, or from a loss of peers: of whom that tells."""
    if wait.cause.cause_class is not CauseClass.NETWORK or end.standing is Standing.NOTICED:
        return True
    lines = frozenset(wait.cause.quotes)
    speakers = told.ranks(sign for sign in told.signs if sign.quote in lines)
    return set(end.cause.ranks or ()) <= set(speakers)


def _source(each: RankedCause) -> str:
    return each.cause.quotes[0].source if each.cause.quotes else ""
