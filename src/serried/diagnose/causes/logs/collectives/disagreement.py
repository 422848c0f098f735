"""Ranks that disagree by what a check said: fingerprints, desync, barriers, RAS, schedules."""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.causes.logs.collectives.differing_calls import (
    call_candidates,
    fingerprint_candidates,
)
from serried.diagnose.causes.logs.collectives.job_part import LEFT_PATH, STACKS
from serried.diagnose.causes.logs.collectives.message_circle import circle_candidates
from serried.diagnose.causes.logs.collectives.named_absent import (
    absent_candidates,
    analysed_candidates,
    barrier_candidates,
    ras_candidates,
)
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.finding import said

_MEANINGS = (
    SignMeaning(
        ("mismatched",),
        CauseClass.HANG,
        "mismatch_op",
        Standing.MISMATCH,
        (
            said(
                "NCCL or MPI found ranks in different calls; the rank that it prints is near, not "
                "necessarily the one at fault"
            ),
        ),
        (
            said(
                "list every call: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL, one file for each rank "
                "(NCCL_DEBUG_FILE=nccl.%h.%p.log), and give these files to serried diagnose"
            ),
        ),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("truncated",),
        CauseClass.HANG,
        "mismatch_size",
        Standing.MISMATCH,
        (
            said(
                "two ranks met in NCCL with different sizes: {arrived:,} bytes arrived where "
                "{expected:,} were awaited; the process that prints this is not necessarily the "
                "one at fault"
            ),
        ),
        (
            LEFT_PATH,
            said(
                "give every rank the same NCCL settings: NCCL_PROTO or NCCL_ALGO that differ "
                "between hosts look the same"
            ),
        ),
        0.75,
        "unknown",
    ),
    SignMeaning(
        ("barrier_of_call",),
        CauseClass.HANG,
        "timeout_unknown",
        Standing.WAITS,
        (
            said(
                "the barrier that torch's debugging mode puts before each call failed: a rank did "
                "not come to the call of the others; which one is not in these lines"
            ),
        ),
        (LEFT_PATH, STACKS),
        0.6,
        "unknown",
        is_bare=True,
    ),
    SignMeaning(
        ("fingerprints_cut",),
        CauseClass.HANG,
        "mismatch_op",
        Standing.WAITS,
        (said("torch found ranks in different collectives; the line that names them was cut off"),),
        (LEFT_PATH,),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("models_differ",),
        CauseClass.EXCEPTION,
        "models_differ",
        Standing.ROOT,
        (
            said(
                "DDP found models with different parameters on different ranks; which of them is "
                "not as it should be the log does not tell"
            ),
        ),
        (
            said(
                "build the model from the same configuration on every rank, and print its number "
                "of parameters there"
            ),
        ),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("gather_empty",),
        CauseClass.HANG,
        "timeout_unknown",
        Standing.FOLLOWS,
        (
            said(
                "DDP compared the models of all ranks, but their first collective brought nothing: "
                "the ranks did not meet there"
            ),
        ),
        (
            said(
                "see whether the GPUs reach one another (nccl-tests, NCCL_DEBUG=INFO, "
                "NCCL_P2P_DISABLE=1 for a trial), and whether every rank came so far"
            ),
        ),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("straggler",),
        CauseClass.STRAGGLER,
        "straggler",
        Standing.NOTICED,
        (said("the job's own report calls {who} slower than the others"),),
        (
            said(
                "see whether the GPU's clock, the loader or the link is slow: serried diagnose "
                "on the recorded traces says which, and what it costs"
            ),
        ),
        0.7,
    ),
)
_FAMILIES = (
    fingerprint_candidates,
    absent_candidates,
    barrier_candidates,
    analysed_candidates,
    call_candidates,
    ras_candidates,
    circle_candidates,
)

_OF_SIZES = "appears not to match"


def disagreement_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what checks say of ranks that did not do the same."""
    for each in candidates(told, _MEANINGS):
        if not (each.cause.kind == "models_differ" and _is_unbrought(told, each)):
            yield each
    for family in _FAMILIES:
        yield from family(told)


def _is_unbrought(told: LoggedSigns, compared: RankedCause) -> bool:
    """Tells whether models were compared with sizes that a broadcast did not bring in time.

    Up to torch 1.10 DDP broadcasts the sizes of rank 0, and compares what stands there.
    """
    sources = {line.source for line in compared.cause.quotes if _OF_SIZES in line.text}
    return any(
        late.quote.source in sources and late.collective and late.collective.op == "BROADCAST"
        for late in told.of("timeout")
    )
