"""What came first: a failure, or the wait that timed out, by the times that logs print.

A line of the watchdog tells when a wait ended and how long it had lasted, hence when it began:

    began = 18:34:12              ended = 18:44:12 (ran for 600061 milliseconds)
    ├────────────── wait ─────────┤
    ▲ failure here: it came first        ▲ failure here: the time-out came first

A traceback prints no time; it then lies between the dated lines around it in its file. Clocks of
two files may disagree; a collective that timed out in both tells by how much.

>>> before_wait = TimeSpan(100.0, 102.0).order(TimeSpan(110.0, 710.0))
>>> before_wait
(<Order.FIRST: 'first'>, 8.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from serried.diagnose.causes.logs.signs import LoggedSigns
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import NO_YEAR
from serried.diagnose.evidence.sign import Sign
from serried.finding import Sentence, said

SLACK_S = 30.0
"""Seconds by which ranks reach a collective one after another in any step, long ones included."""
LONGEST_GAP_S = 3600.0
"""Seconds beyond which two files without a common event more likely disagree in their clocks."""
ALIKE_S = 60.0
"""Seconds by which the ends of one collective may differ where clocks agree."""


_NO_TIME = said(
    "whether this or the wait that timed out came first cannot be told: no time stands on its "
    "line or near it"
)
_CLOCKS = said(
    "whether this or the wait that timed out came first cannot be told: the clocks of the two "
    "logs may disagree by hours"
)
_BOTH = said(
    "whether this or the wait that timed out came first cannot be told: the times that are "
    "printed leave both open"
)


class Order(Enum):
    """Says how a failure lies to a wait."""

    FIRST = "first"
    WITH = "with"
    DURING = "during"
    AFTER = "after"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TimeSpan:
    """Holds the seconds between which something happened or lasted; None where nothing tells."""

    low: float | None
    high: float | None

    def order(self, wait: TimeSpan) -> tuple[Order, float]:
        """Returns how this failure lies to a wait, and the seconds between them."""
        began, ended = wait.low, wait.high
        if began is None or ended is None:
            return Order.UNKNOWN, 0.0
        if self.high is not None and self.high <= began:
            gap = began - self.high
            return (Order.FIRST, gap) if gap > 1 else (Order.WITH, gap)
        if self.low is None:
            return Order.UNKNOWN, 0.0
        if self.low > ended + 1:
            return Order.AFTER, self.low - ended
        if self.high is not None and self.high <= began + SLACK_S:
            return Order.WITH, self.high - began
        if self.low > began + SLACK_S and self.high is not None and self.high <= ended:
            return Order.DURING, self.low - began
        return Order.UNKNOWN, 0.0

    def moved(self, seconds: float) -> TimeSpan:
        """Returns the span by a clock that is ahead by some seconds."""
        return TimeSpan(*(None if t is None else t + seconds for t in (self.low, self.high)))


def sequence(told: LoggedSigns, cause: Cause) -> tuple[Order, tuple[Sentence, ...]]:
    """Returns how a failure lies to the waits that timed out, in sentences; () without waits."""
    waits = [sign for sign in told.of("timeout") if _is_timed(sign)]
    root = told.at(cause.quotes[0]) if waits and cause.quotes else None
    if root is None or root.kind == "timeout":
        return Order.UNKNOWN, ()
    failed = _moment(root)
    if failed.low is None and failed.high is None:
        return Order.UNKNOWN, (_NO_TIME,)
    offsets = _clock_offsets(waits, root.quote.source)
    known = [sign for sign in waits if sign.quote.source in offsets]
    if not known:
        order, seconds = failed.order(_wait_span(min(waits, key=_began)))
        is_far = seconds > LONGEST_GAP_S
        return (Order.UNKNOWN, (_CLOCKS,)) if is_far else (order, tuple(_words(order, seconds)))
    wait = min(known, key=lambda sign: _began(sign) + offsets[sign.quote.source])
    offset = offsets[wait.quote.source]
    order, seconds = failed.order(_wait_span(wait).moved(offset))
    apart = [_disagree(root, wait, offset)] if abs(offset) > ALIKE_S else []
    return order, (*_words(order, seconds), *apart)


def _words(order: Order, seconds: float) -> Iterator[Sentence]:
    if order is Order.FIRST:
        yield said(
            "this came first: {seconds:,.0f} s before the others began the wait that timed out",
            seconds=seconds,
        )
    elif order is Order.WITH:
        yield said(
            "this came first: the wait that timed out began as it happened, and the limit ran out "
            "later"
        )
    elif order is Order.DURING:
        yield said(
            "the others had already waited {seconds:,.0f} s when this happened, so something had "
            "held the rank up before",
            seconds=seconds,
        )
    elif order is Order.AFTER:
        yield said(
            "the time-out came first: this happened {seconds:,.0f} s after it and may follow from "
            "the end of the job",
            seconds=seconds,
        )
    else:
        yield _BOTH


def _disagree(root: Sign, wait: Sign, offset: float) -> Sentence:
    return said(
        "the clocks of {one} and {other} disagree by about {seconds:,.0f} s, by a collective that "
        "timed out in both",
        one=root.quote.source,
        other=wait.quote.source,
        seconds=abs(offset),
    )


def _clock_offsets(waits: list[Sign], here: str) -> dict[str, float]:
    """Returns by how much a file's clock is ahead of others, by collectives that ended in both."""
    ends: dict[tuple[object, ...], dict[str, float]] = {}
    for sign in waits:
        facts = sign.collective
        if sign.time is not None and facts is not None and facts.seq is not None:
            key = facts.op, facts.seq, facts.numel_in, facts.timeout_ms
            ends.setdefault(key, {}).setdefault(sign.quote.source, _in_year(sign.time))
    offsets: dict[str, float] = {}
    for met in ends.values():
        if here in met:
            for source, end in met.items():
                offsets.setdefault(source, met[here] - end)
    return offsets


def _is_timed(sign: Sign) -> bool:
    return sign.time is not None and bool(sign.collective and sign.collective.ran_ms)


def _wait_span(sign: Sign) -> TimeSpan:
    ran_ms = sign.collective.ran_ms if sign.collective else None
    ended = _in_year(sign.time or 0.0)
    return TimeSpan(ended - (ran_ms or 0) / 1000, ended)


def _began(sign: Sign) -> float:
    return _wait_span(sign).low or 0.0


def _moment(sign: Sign) -> TimeSpan:
    """Returns when a sign was printed: at its time, or between the dated lines around it."""
    if sign.time is not None:
        return TimeSpan(_in_year(sign.time), _in_year(sign.time))
    return TimeSpan(*(None if t is None else _in_year(t) for t in (sign.after, sign.before)))


def _in_year(time: float) -> float:
    """Returns a time as seconds of a year, for lines of glog's print none."""
    return datetime.fromtimestamp(time, UTC).replace(year=NO_YEAR).timestamp()
