"""What a job got over: troubles after which it went on, or that came when it had ended well.

    trouble, then 20 more steps          it was retried, or hurt nobody
    trouble, then "training is done"     likewise
    "training is done", then SIGTERM     the end of a job that had nothing more to do

What stays wrong however long a job goes on is kept: hardware, numbers that are none, stragglers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign

_LASTING = (CauseClass.HARDWARE, CauseClass.NUMERICS, CauseClass.STRAGGLER)
_CLOSING = (CauseClass.EXTERNAL_STOP, CauseClass.NETWORK)
"""What ends a job from outside, or closes its connections, once it is done."""

_LAUNCHER_GONE = "agent_lost"
"""The first launcher to end takes the rendezvous with it, and the others complain."""

HasPassed = Callable[[str, int, int], bool]
"""Tells by steps, or by the line of a good end, whether a job got over a line of a log."""


def still_standing(
    told: Iterable[tuple[int, Cause]], signs: Sequence[Sign], has_passed: HasPassed
) -> Iterator[tuple[int, Cause]]:
    """Yields the causes that the job did not get over, each with its standing."""
    done = {sign.quote.source: sign.quote.line for sign in signs if sign.kind == "completed"}
    anew = {sign.quote.source for sign in signs if sign.kind == "restarted"}
    for standing, cause in told:
        lines: dict[str, list[int]] = {}
        for quote in cause.quotes:
            lines.setdefault(quote.source, []).append(quote.line)
        ends = {source: done.get(source, 0) for source in lines}
        is_over = bool(lines) and cause.cause_class not in _LASTING and not anew & set(lines)
        is_past = all(has_passed(s, max(each), ends[s]) for s, each in lines.items())
        is_leaving = cause.cause_class in _CLOSING or cause.kind == _LAUNCHER_GONE
        is_closing = is_leaving or standing >= Standing.NOTICED
        is_end = is_closing and all(0 < ends[s] < min(each) for s, each in lines.items())
        if not (is_over and (is_past or is_end)):
            yield standing, cause
