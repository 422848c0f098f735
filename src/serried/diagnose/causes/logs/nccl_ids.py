"""Who waits for NCCL's id, which one rank of each group publishes before the first collective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named
from serried.finding import said

_FIRST = said("look at what rank 0 does: it opens the store when it reaches init_process_group")
_NCCL_ID = SignMeaning(
    ("nccl_id",),
    CauseClass.STARTUP,
    "init_rendezvous",
    Standing.CONNECTION,
    (said("{who} waited for the NCCL id of a peer"),),
    (
        _FIRST,
        said(
            "if rank 0 prepares data before its first collective, let it do so before init, or "
            "give init_process_group a longer timeout"
        ),
    ),
    0.85,
)
_NCCL_ID_CUT = replace(
    _NCCL_ID,
    kinds=("nccl_id_cut",),
    templates=(
        said(
            "{who} waited for the NCCL id of a rank whose number was cut off: that one has not "
            "reached its first collective yet, or ended before it"
        ),
    ),
    ranks="unknown",
)
_NCCL_ID_OF_TWO = replace(
    _NCCL_ID,
    cures=(
        said(
            "look at what the lower of the two ranks did at that time: its stack, log or flight "
            "record tells"
        ),
        said(
            "exchange a message between neighbours before the training starts, or give the group "
            "a longer timeout: making each communicator of two takes seconds"
        ),
    ),
)


def id_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields who waits for an NCCL id that a peer has not published; the peer is late, or gone."""
    yield from candidates(told, (_NCCL_ID_CUT,))
    signs = told.of("nccl_id")
    if not signs:
        return
    if messages := [sign for sign in signs if "low" in sign.facts]:
        yield from _ids_of_two(told, messages)
    if not (signs := [sign for sign in signs if "low" not in sign.facts]):
        return
    found = candidate(told, _NCCL_ID, signs)
    peers = {peer for sign in signs if isinstance(peer := sign.facts.get("peer"), int)}
    waits = {rank for sign in signs if isinstance(rank := sign.facts.get("group_rank"), int)}
    verdict = said(
        "{who} waited for the NCCL id of {peer}: that side has not reached its first "
        "collective yet, or ended before it",
        who=named(waits - peers),
        peer=named(peers),
    )
    culprits = tuple(sorted(peers)) if len(peers) == 1 else None
    is_building = told.first("building_data") is not None
    yield replace(
        found,
        cause=replace(
            found.cause,
            cause_class=CauseClass.DATA if is_building else CauseClass.STARTUP,
            kind="data_stall" if is_building else "init_rendezvous",
            ranks=culprits,
            verdict=verdict,
        ),
    )


def _ids_of_two(told: LoggedSigns, signs: Sequence[Sign]) -> Iterator[RankedCause]:
    """Yields who waits for an id at its first message; torch's words then name [0] all the same.

    The lower of the two publishes it (torch 2.13, ProcessGroupNCCL.cpp, broadcastUniqueNCCLID),
    when it comes to its send or receive; in a pipeline it may wait for its own neighbour before.
    """
    found = candidate(told, _NCCL_ID_OF_TWO, signs)
    verdict = said(
        "{who} waited for {peer} to open the NCCL communicator of the two: it had not come to its "
        "send or receive yet, or was held up itself",
        who=named({int(str(sign.facts["group_rank"])) for sign in signs}),
        peer=named({int(str(sign.facts["low"])) for sign in signs}),
    )
    yield replace(found, cause=replace(found.cause, ranks=None, verdict=verdict))
