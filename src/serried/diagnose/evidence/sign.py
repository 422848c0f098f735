"""A sign: one fact that a line or an entry states, before anybody asks what it means.

    [rank3]:[E … Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7753, …
       │                                │                          └── collective
       └── speaker                      └── kind "timeout"

>>> sign = Sign(
...     "timeout",
...     Quote("job.log", 4, "... WorkNCCL(SeqNum=7, OpType=ALLREDUCE, ...) ran for 600061 ..."),
...     Speaker(rank=3),
...     collective=CollectiveFacts("ALLREDUCE", seq=7, timeout_ms=600_000, ran_ms=600_061),
... )
>>> sign.collective.seq
7
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from serried.diagnose.evidence.quote import NOBODY, Quote, Speaker


@dataclass(frozen=True)
class CollectiveFacts:
    """Says of one collective what was printed; None is what was not."""

    op: str | None = None
    """As it was printed: ``ALLREDUCE``, ``_ALLGATHER_BASE``, ``all_reduce``."""
    seq: int | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    dtype: str | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None
    group: str | None = None
    """The group as it was printed: a number, a name, a communicator."""
    last_enqueued: int | None = None
    last_completed: int | None = None

    def filled(self, others: Iterable[CollectiveFacts]) -> CollectiveFacts:
        """Returns these figures with those that only other lines of the same collective tell.

        >>> CollectiveFacts(seq=7).filled([CollectiveFacts("BARRIER", seq=7)]).op
        'BARRIER'
        """
        whole = self
        for other in others:
            known = {name: value for name, value in asdict(other).items() if value is not None}
            if all(getattr(whole, name) in (None, value) for name, value in known.items()):
                whole = replace(whole, **known)
        return whole


@dataclass(frozen=True)
class Sign:
    """Holds one fact of the evidence: its kind, whose it is, when, and where it stands."""

    kind: str
    """A short word of its reader, such as ``timeout``, ``exit``, ``xid``."""
    quote: Quote
    speaker: Speaker = NOBODY
    time: float | None = None
    """Seconds since 1970, in the year 1972 where the line tells none; hosts' clocks may differ."""
    collective: CollectiveFacts | None = None
    code: int | None = None
    """An exit code, a signal as a negative number, an Xid."""
    text: str = ""
    """What it says in its own words: an exception with its message."""
    after: float | None = None
    """The time of the last dated line before it in its file, for lines that tell none."""
    before: float | None = None
    """The time of the next dated line after it, likewise."""
    facts: dict[str, object] = field(default_factory=dict)
    """What else its reader knows, by names that its module states."""

    @property
    def end_code(self) -> int | None:
        """The code of an end, that of a signal below 0; None where it tells none."""
        signal = self.facts.get("signal")
        return -signal if isinstance(signal, int) else self.code
