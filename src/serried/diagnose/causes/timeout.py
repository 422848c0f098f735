"""A collective that timed out, where nothing tells which rank kept the others waiting."""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.gathered import Evidence
from serried.finding import said


def causes(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause of no known root for the first collective that timed out."""
    signs = [sign for sign in evidence.signs if sign.kind == "timeout" and sign.collective]
    if not signs:
        return
    facts = signs[0].collective
    assert facts is not None
    waiting = sorted({sign.speaker.rank for sign in signs if sign.speaker.rank is not None})
    yield Cause(
        CauseClass.HANG,
        "timeout_unknown",
        None,
        said(
            "ranks {ranks} wait in {op} {seq}; no rank's absence or error is in the log",
            ranks=waiting,
            op=facts.op,
            seq=facts.seq,
        ),
        confidence=0.5,
        quotes=tuple(sign.quote for sign in signs),
        collective=facts,
    )
