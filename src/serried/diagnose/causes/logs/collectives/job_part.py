"""In which part of a job a time-out fell: training, saving, building data, or after the end."""

from __future__ import annotations

from collections.abc import Sequence

from serried.diagnose.causes.logs.collectives.limit import RAISE, raised_for
from serried.diagnose.causes.logs.signs import LoggedSigns
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import Sentence, said

NEAR_LINES = 400
"""Lines within which what a job said of its work belongs to a time-out after it."""

STACKS = said(
    "while it hangs, take the stacks of every rank: py-spy dump --pid PID on each node; the rank "
    "whose stack is elsewhere is the one the others wait for"
)
SAME_PATH = said(
    "look for a branch that depends on the rank or its data before this call: a loss, a metric or "
    "a batch that some ranks skip; run with TORCH_DISTRIBUTED_DEBUG=DETAIL to see both calls"
)
_STACK_OF = said("take the stack of that rank (py-spy dump --pid PID): it is elsewhere")
_STACKS_OF = said("take the stacks of those ranks (py-spy dump --pid PID): they are elsewhere")
LEFT_PATH = said(
    "look for a branch that depends on the rank or its batch: parameters that only some ranks use, "
    "a batch without images, a last batch that is shorter"
)
_SAVE_ALL = said(
    "let every rank take part in the gather before the save, write in the background, or give the "
    "group a longer timeout for the save alone"
)
BUILD_FIRST = said(
    "build the data set once before the job (or cache it), and give init_process_group a timeout "
    "that covers what rank 0 prepares"
)


def part_of_job(told: LoggedSigns, first: Sign) -> tuple[str, CauseClass, tuple[Sentence, ...]]:
    """Returns in which part of a job a time-out fell, by what the log says shortly before it."""
    near = [
        sign
        for sign in told.of("finished", "saving", "building_data")
        if sign.quote.source == first.quote.source
        and first.quote.line - NEAR_LINES < sign.quote.line
    ]
    kinds = [sign.kind for sign in near]
    limit_ms = first.collective.timeout_ms if first.collective else None
    if "finished" in kinds:
        return (
            "teardown",
            CauseClass.HANG,
            (
                said(
                    "the results are saved; let every rank reach the last barrier, or call "
                    "destroy_process_group on all"
                ),
                STACKS,
            ),
        )
    if kinds and kinds[-1] == "saving":
        return "checkpoint_stall", CauseClass.STORAGE, (_SAVE_ALL, raised_for(limit_ms))
    if kinds and kinds[-1] == "building_data":
        return "data_stall", CauseClass.DATA, (BUILD_FIRST, raised_for(limit_ms))
    return "timeout_unknown", CauseClass.HANG, (STACKS, SAME_PATH, RAISE)


def stack_of(ranks: Sequence[object]) -> Sentence:
    """Returns whose stack to take: that of the one rank, or of the several, who did not come."""
    return _STACK_OF if len(ranks) == 1 else _STACKS_OF
