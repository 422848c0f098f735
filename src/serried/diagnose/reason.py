"""From evidence to a diagnosis: every family of causes is asked, and the likeliest comes first.

What a process says of its own failure comes before the hang that follows from it; the living root
of a hang before ends, time-outs and closed connections, which follow from that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from serried.diagnose.causes import hang
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.causes.logs.overcome import still_standing
from serried.diagnose.causes.missing import missing_evidence
from serried.diagnose.causes.one_moment import of_one_moment
from serried.diagnose.causes.settled import settled
from serried.diagnose.causes.stood_still import stood_still
from serried.diagnose.diagnosis import Cause, CauseClass, Diagnosis
from serried.diagnose.evidence.file_rank import file_rank
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.gathered import Evidence
from serried.diagnose.steps.clocks import clock_notes
from serried.diagnose.steps.going_on import GoingOn
from serried.diagnose.stragglers import causes as stragglers
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.root import RootKind
from serried.diagnose.whom import named
from serried.finding import Sentence, said


def diagnosed(evidence: Evidence) -> Diagnosis:
    """Returns what the evidence tells, with its causes from the likeliest on."""
    evidence = _of_last_start(evidence)
    going_on = evidence.going_on or GoingOn()
    found = standing_causes(evidence.signs)
    told = list(still_standing(found, evidence.signs, going_on.has_passed))
    hangs = list(hang.causes(evidence))
    # A log that complains of something tells that the job does not go on.
    hangs, told = settled(hangs if told else of_one_moment(evidence.state, hangs), told)
    stopped = tuple(_without_victims(_standing_first(evidence, list(_combined(hangs, told)))))
    # What stopped the job comes before what made it slow.
    causes = (*stopped, *stragglers.causes(evidence, stopped=bool(stopped)))
    return Diagnosis(
        causes,
        missing=(*evidence.missing, *missing_evidence(evidence, causes)),
        notes=(
            *evidence.notes,
            *_earlier(evidence.earlier),
            *clock_notes(evidence.recordings),
        ),
        ranks_heard=evidence.ranks_heard,
        world_size=evidence.state.world_size if evidence.state else None,
        was_read=bool(evidence.num_lines or evidence.state or evidence.recordings),
    )


def _of_last_start(evidence: Evidence) -> Evidence:
    """Returns the evidence with what one log tells of earlier starts of the job set apart.

    A launcher that starts all anew says so in its log. Where nothing after that tells of an end,
    nor anything of who waits, what came before is all that there is to go by.
    """
    restarts: dict[str, set[int]] = defaultdict(set)
    for sign in evidence.signs:
        if sign.kind == "restarted":
            restarts[sign.quote.source].add(sign.quote.line)
    if not restarts:
        return evidence
    after, before = list[Sign](), defaultdict[int, list[Sign]](list)
    for sign in evidence.signs:
        starts = sorted(restarts[sign.quote.source])
        number = bisect_left(starts, sign.quote.line)
        if number == len(starts):
            after.append(sign)
        elif sign.kind != "restarted":
            before[number].append(sign)
    is_told = any(standing <= Standing.WAITS for standing, _ in standing_causes(after))
    if not is_told and not (evidence.state and wait_graph(evidence.state).waiting):
        return evidence
    earlier = [*evidence.earlier]
    earlier += [Evidence()] * (max(before, default=-1) + 1 - len(earlier))
    for number, signs in before.items():
        earlier[number] = replace(earlier[number], signs=(*earlier[number].signs, *signs))
    return replace(evidence, signs=tuple(after), earlier=tuple(earlier))


def _earlier(starts: Iterable[Evidence]) -> Iterable[Sentence]:
    """Yields why earlier starts of the job ended, where what they left tells; the same once."""
    verdicts = [causes[0].verdict for each in starts if (causes := diagnosed(each).causes)]
    for verdict in {str(each): each for each in verdicts}.values():
        yield said("an earlier start of the job, now over: {verdict}", verdict=verdict)


def _combined(hangs: list[Cause], told: list[tuple[int, Cause]]) -> Iterable[Cause]:
    """Returns the causes of waits and of logs in one order."""
    rooted = [cause for cause in hangs if cause.ranks is not None]
    own = [cause for standing, cause in told if standing <= Standing.ROOT]
    later = [cause for standing, cause in told if standing > Standing.ROOT]
    ended = [cause for cause in rooted if cause.kind == RootKind.DEAD.value]
    living = [cause for cause in rooted if cause.kind != RootKind.DEAD.value]
    for end in ended:
        # The log says better how a rank ended; who waits for it, dumps say better.
        words = next((c for c in (*own, *later) if _tells_of(c, end)), None)
        if words is not None:
            own = [_told_end(words, end), *(c for c in own if c is not words)]
            later = [c for c in later if c is not words]
        else:
            own.append(end)
    # Whoever stops a job that hangs is not why it hung, nor are numbers of nobody knows which rank.
    beside = [c for c in own if living and _is_beside_hang(c)]
    yield from (cause for cause in own if cause not in beside)
    yield from living
    yield from beside
    yield from later
    yield from (cause for cause in hangs if cause.ranks is None)


def _told_end(words: Cause, end: Cause) -> Cause:
    """Returns an end as the log words it, with who waits for it as the dumps have it."""
    verdict = words.verdict
    if words.ranks is None and end.ranks:
        verdict = said("{verdict}; {who} ended by it", verdict=verdict, who=named(end.ranks))
    return replace(
        words,
        ranks=end.ranks,
        verdict=verdict,
        chain=words.chain or end.chain,
        waiting=end.waiting,
        quotes=tuple(dict.fromkeys((*words.quotes, *end.quotes))),
        groups=words.groups or end.groups,
        collective=words.collective or end.collective,
    )


def _standing_first(evidence: Evidence, causes: list[Cause]) -> Iterable[Cause]:
    """Yields causes; that a job stood still comes before who stopped it, though nobody is named."""
    first = causes[0] if causes else None
    if first is None or first.cause_class is not CauseClass.EXTERNAL_STOP:
        return causes
    if (still := stood_still(evidence)) is None:
        return causes
    hangs = [each for each in causes if each.cause_class is CauseClass.HANG]
    return [*(hangs or [still]), *(each for each in causes if each not in hangs)]


def _is_beside_hang(cause: Cause) -> bool:
    is_unnamed = cause.cause_class is CauseClass.NUMERICS and cause.ranks is None
    return is_unnamed or cause.cause_class is CauseClass.EXTERNAL_STOP


def _without_victims(causes: Iterable[Cause]) -> Iterable[Cause]:
    """Yields causes; beside a hang, who ended by itself first only gave up waiting first."""
    is_hang = False
    for cause in causes:
        is_victim = is_hang and cause.kind == "exit_code"
        yield replace(cause, ranks=None) if is_victim else cause
        is_hang = is_hang or cause.cause_class is CauseClass.HANG


def _tells_of(told: Cause, end: Cause) -> bool:
    """Tells whether a log's cause is how a rank ended: by its number, or by its own files.

    Of storage no rank is to blame, yet the rank whose write failed is the one that ended.
    """
    if told.ranks is not None or told.cause_class is not CauseClass.STORAGE:
        return told.ranks == end.ranks
    # A console of all ranks repeats what stands in one rank's own file.
    writers = {file_rank(quote.source) for quote in told.quotes} - {None}
    return writers == {*(end.ranks or ())}
