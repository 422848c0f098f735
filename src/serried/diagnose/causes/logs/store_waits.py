"""Ranks that wait for one another at the store: how many came, and for what the others waited.

6 of 8 came                the start waits for those that never reached init_process_group
9 of 8 came                processes of an earlier start use the same store
the store, but no answer   another rank has not left there what this one asks for
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.collectives.job_part import BUILD_FIRST
from serried.diagnose.causes.logs.collectives.limit import raised_for
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named
from serried.finding import said

_FIREWALL = said("open the port between the hosts (nc -vz HOST PORT), and check MASTER_ADDR")

_STORE_BARRIER = SignMeaning(
    ("store_barrier",),
    CauseClass.STARTUP,
    "init_rendezvous",
    Standing.CONNECTION,
    (
        said(
            "{joined} ranks came to a start of {expected}: {who} waited for the others until "
            "the limit"
        ),
    ),
    (
        said("see which ranks did not start: compare the scheduler's tasks with the logs"),
        _FIREWALL,
    ),
    0.85,
    "unknown",
)
_STORE_ANSWER = SignMeaning(
    ("store_answer",),
    CauseClass.STARTUP,
    "init_rendezvous",
    Standing.WAITS,
    (
        said(
            "{who} reached the store at {address}:{port} and waited there {seconds:,} s for what "
            "another rank leaves as it comes to the same point: that one did not come in time"
        ),
    ),
    (
        said(
            "see which rank did not get that far: read what each printed last, or take the stacks "
            "of all (py-spy dump --pid PID)"
        ),
    ),
    0.7,
    "unknown",
)
_STORE_ANSWER_BUILDING = replace(
    _STORE_ANSWER,
    cause_class=CauseClass.DATA,
    kind="data_stall",
    templates=(
        said(
            "{who} waited {seconds:,} s at the store at {address}:{port} while data were being "
            "prepared: the rank that prepares them is at work longer than the limit; nobody is "
            "shown dead"
        ),
    ),
)
MOST_STARTED = 1 << 16
"""Ranks of a start up to which those who did not come are named."""
LONG_WAIT = 4
"""Lines of one rank's waiting, ten seconds apart, from which on a start is taken to be stuck."""
_STORE_WAIT = SignMeaning(
    ("store_waiting",),
    CauseClass.STARTUP,
    "init_rendezvous",
    Standing.WAITS,
    (said("{joined} ranks came to a start of {expected}: {who} still waited there"),),
    (
        said("see which ranks did not start: compare the scheduler's tasks with the logs"),
        _FIREWALL,
    ),
    0.6,
    "unknown",
)
_TOO_MANY = replace(
    _STORE_WAIT,
    templates=(
        said(
            "{joined} processes came to a start of {expected} ranks, so that none is the last for "
            "whom all wait: processes of an earlier start use the same store, or ranks were "
            "started twice"
        ),
    ),
    cures=(
        said(
            "end what is left of earlier starts, or take another port; and let one launcher give "
            "all numbers"
        ),
    ),
    confidence=0.8,
)


def store_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what waits at the store tell."""
    yield from _unanswered(told)
    yield from _store_barriers(told)
    yield from _store_waits(told)


def _unanswered(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields who waited at the store, which was there, for what another rank had to leave."""
    signs = told.of("store_answer")
    if not signs:
        return
    limit_ms = int(str(signs[0].facts["ms"]))
    first = replace(signs[0], facts={**signs[0].facts, "seconds": limit_ms // 1000})
    if told.first("building_data") is None:
        yield candidate(told, _STORE_ANSWER, [first, *signs[1:]])
        return
    found = candidate(told, _STORE_ANSWER_BUILDING, [first, *signs[1:]])
    cures = (BUILD_FIRST, raised_for(limit_ms))
    yield replace(found, cause=replace(found.cause, cures=cures))


def _store_barriers(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields a start that timed out, for ranks that did not come or for more than belong there."""
    if signs := told.of("store_barrier"):
        too_many = replace(_TOO_MANY, kinds=("store_barrier",), standing=Standing.CONNECTION)
        found = candidate(told, too_many if _is_full(signs[0]) else _STORE_BARRIER, signs)
        if absent := _absent(told, signs):
            verdict = said("{who} did not come to the start within the limit", who=named(absent))
            found = replace(found, cause=replace(found.cause, ranks=absent, verdict=verdict))
        yield found


def _absent(told: LoggedSigns, signs: Sequence[Sign]) -> tuple[int, ...]:
    """Returns who did not come to the job's first group, where all who came ran out of time.

    What the store counted is as many as say so then. Ranks of a later group have its own numbers.
    """
    came = set(told.ranks(signs))
    joined = {sign.facts.get("joined") for sign in signs}
    sizes = {sign.facts.get("expected") for sign in signs if "first" in sign.facts}
    size = sizes.pop() if len(sizes) == 1 else None
    if not isinstance(size, int) or joined != {len(came)} or size > MOST_STARTED:
        return ()
    everybody = set(range(size))
    return tuple(sorted(everybody - came)) if came <= everybody else ()


def _is_full(sign: Sign) -> bool:
    """Tells whether more processes came to a start than it has ranks."""
    joined, expected = sign.facts.get("joined"), sign.facts.get("expected")
    return isinstance(joined, int) and isinstance(expected, int) and joined > expected


def _store_waits(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields a start at which ranks still wait, by what torch says every ten seconds of it."""
    signs = told.of("store_waiting")
    if not signs or told.first("store_passed") is not None:
        return
    is_full = _is_full(signs[-1])
    is_open = told.first("start_open") is not None
    if is_full or is_open or len(signs) >= LONG_WAIT * len(told.ranks(signs)):
        last = [s for s in signs if s.facts.get("joined") == signs[-1].facts.get("joined")]
        yield candidate(
            told, _TOO_MANY if is_full else _STORE_WAIT, signs[-1:] if is_full else last
        )
