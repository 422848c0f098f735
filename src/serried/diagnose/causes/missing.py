"""What evidence is missing where nobody can be named, and how to have it now or the next time.

>>> from serried.diagnose.causes.missing import unheard
>>> unheard((1, 2, 3, 5), world_size=6)
(0, 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.gathered import Evidence
from serried.diagnose.waits.state import JobState
from serried.diagnose.whom import named
from serried.finding import Sentence, said

STALLS = ("checkpoint_stall", "data_stall")
OTHER_LIBRARIES = ("hccl", "stall", "task_absent")
"""Signs of HCCL, Horovod and JAX, whose calls torch's flight recorder does not keep."""


def missing_evidence(evidence: Evidence, causes: Sequence[Cause]) -> Iterator[Sentence]:
    """Yields what would tell who is at fault, where the first cause cannot."""
    if not causes or causes[0].ranks is not None:
        return
    first = causes[0]
    state = evidence.state
    if silent := unheard(evidence.ranks_heard, state.world_size if state else None):
        yield said(
            "no line from {who}: collect the logs, and the stacks of what still lives",
            who=named(silent),
        )
    is_recorded = state is not None and any(each.counts is not None for each in state.ranks)
    is_others = any(sign.kind in OTHER_LIBRARIES for sign in evidence.signs)
    is_wait = first.cause_class is CauseClass.HANG or first.kind in STALLS
    if is_wait and not is_others and not is_recorded:
        yield said(
            "no record of what each rank called: set TORCH_FR_BUFFER_SIZE=2000 (before torch 2.9: "
            "TORCH_NCCL_TRACE_BUFFER_SIZE=2000) and TORCH_NCCL_DUMP_ON_TIMEOUT=1 before the next "
            "run"
        )
    if state is not None and is_recorded and is_wait:
        yield from beside_dumps(state, silent)
    if first.cause_class is CauseClass.NETWORK:
        yield said(
            "which ranks sit on the peer's host: keep the launcher's list of hosts and ranks"
        )
    if first.cause_class is CauseClass.HARDWARE:
        yield said(
            "which rank used that GPU: note nvidia-smi -L and each rank's device at the start"
        )


def beside_dumps(state: JobState, silent: Sequence[int]) -> Iterator[Sentence]:
    """Yields what is missing where some dumps are there: those of others, stacks, messages."""
    blank = [e.rank for e in state.ranks if e.counts is None and not e.stack]
    if bare := [rank for rank in blank if rank not in silent]:
        yield said(
            "no dump and no stack of {who}: collect them, or use serried.guard() in the next run",
            who=named(bare),
        )
    if stackless := [e.rank for e in state.ranks if e.counts is not None and not e.stack]:
        yield said(
            "no stack of {who}: take it while the job hangs (py-spy dump --pid PID), for it tells "
            "where a rank stands",
            who=named(stackless),
        )
    elif not blank and not any(op.peer is not None for e in state.ranks for op in e.issued):
        yield said(
            "no record of sends and receives: use serried.guard() in the next run, which keeps them"
        )


def unheard(heard: Sequence[int], world_size: int | None) -> tuple[int, ...]:
    """Returns the ranks of which no line is, as far as the number of ranks is known.

    Without it, ranks below the highest that speaks are known to be there.
    """
    if not heard:
        return ()
    return tuple(sorted(set(range(world_size or max(heard) + 1)) - set(heard)))
