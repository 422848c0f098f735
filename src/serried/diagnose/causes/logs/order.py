"""All causes that logs tell, from the likeliest on: what is nearer to a root comes first.

Among causes that stand alike the one that the log tells first comes first. What a process printed
after a time-out is judged by its kind: a closed connection follows; a broken GPU does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serried.diagnose.causes.logs.connection import connection_candidates
from serried.diagnose.causes.logs.device import device_candidates
from serried.diagnose.causes.logs.disagreement import disagreement_candidates
from serried.diagnose.causes.logs.exception import exception_candidates
from serried.diagnose.causes.logs.inputs import input_candidates
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.process import process_candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.causes.logs.timeout import timeout_candidates
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.sign import Sign

MOST_CAUSES = 4

_FAMILIES = (
    device_candidates,
    disagreement_candidates,
    input_candidates,
    exception_candidates,
    process_candidates,
    connection_candidates,
    timeout_candidates,
)


def log_causes(signs: Sequence[Sign]) -> Iterator[Cause]:
    """Yields the causes that signs of text tell, the likeliest first."""
    for _, cause in standing_causes(signs):
        yield cause


def standing_causes(signs: Sequence[Sign]) -> Iterator[tuple[int, Cause]]:
    """Yields the causes that signs of text tell, each with its standing, the nearest root first."""
    told = LoggedSigns(signs)
    found = [each for family in _FAMILIES for each in family(told)]
    first_wait = min((e.place for e in found if e.standing is Standing.WAITS), default=None)
    ranked = sorted(found, key=lambda each: (_standing(each, first_wait), each.place))
    for each in ranked[:MOST_CAUSES]:
        yield _standing(each, first_wait), each.cause


def _standing(each: RankedCause, first_wait: int | None) -> int:
    """Returns how near to the root a cause is; an end after a time-out follows from that."""
    is_after = first_wait is not None and each.place > first_wait
    if is_after and each.standing in (Standing.ENDED, Standing.NOTICED):
        return Standing.FOLLOWS
    return each.standing
