"""What evidence is missing where nobody can be named, and how to have it now or the next time.

>>> from serried.diagnose.causes.missing import unheard
>>> unheard((1, 2, 3, 5), world_size=6)
(0, 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serried.diagnose.causes.hang_words import meeting_named
from serried.diagnose.causes.stood_still import STOOD_STILL
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.program import is_in_communication
from serried.diagnose.job_state.state import JobState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.whom import named
from serried.finding import Sentence, said

STALLS = ("checkpoint_stall", "data_stall")
STARTS = ("store_waiting", "store_barrier")
"""Signs of a start, which say how many ranks belong to it."""
MOST_OF_A_JOB = 2**20
OTHER_LIBRARIES = ("hccl", "stall", "task_absent")
"""Signs of HCCL, Horovod and JAX, whose calls torch's flight recorder does not keep."""


def missing_evidence(evidence: Evidence, causes: Sequence[Cause]) -> Iterator[Sentence]:
    """Yields what would tell who is at fault, where the first cause cannot."""
    state = evidence.state
    first = causes[0] if causes else None
    # Whoever stops a job says nothing of why it stood.
    is_still = first is not None and first.kind == STOOD_STILL
    is_open = first is None or is_still or first.cause_class is CauseClass.EXTERNAL_STOP
    if state is not None and is_open:
        yield from all_have_come(state)
        yield from beside_stacks(state, is_still=is_still)
    if first is None or first.ranks is not None:
        return
    size = state.world_size if state else _said_size(evidence)
    if silent := unheard(evidence.ranks_heard, size):
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


def beside_stacks(state: JobState, *, is_still: bool) -> Iterator[Sentence]:
    """Yields what is missing where every rank's stack is there and none can be told apart.

    A rank that waits in C++ stands at its user's own line, as in ``work.wait()``.
    """
    stacks = {each.rank: each.stack for each in state.ranks if each.stack}
    if len(stacks) < max(2, state.world_size):
        return
    if all(map(is_in_communication, stacks.values())):
        if is_still:  # and over, so that nobody can look again
            if all(each.counts is None for each in state.ranks):
                yield said(
                    "whose call is missing: use serried.guard() in the next run, which will tell"
                )
            return
        yield said(
            "all {count} ranks stood in torch's communication: take their stacks again a minute "
            "later; where none has moved the job hangs, and serried.guard() in the next run tells "
            "whose call is missing",
            count=state.world_size,
        )
        return
    own = [rank for rank, stack in stacks.items() if not is_in_communication(stack)]
    if all(stacks[rank][0].is_users for rank in own):
        yield said(
            "the stacks of {who} end at lines of the job's own code, which hide a wait such as "
            "work.wait(): take them with the frames of C++ (py-spy dump --native --pid PID)",
            who=named(own),
        )


def all_have_come(state: JobState) -> Iterator[Sentence]:
    """Yields the collective in which some stand, though all have come and others are through it.

    What no recorder holds may differ there, as the source of a broadcast.
    """
    for meeting in wait_graph(state).meetings:
        are_through = len(meeting.came) < len(meeting.group.ranks)
        if meeting.seq is not None and not meeting.awaited and are_through:
            yield said(
                "all have come to {what} and some are through it, but not {who}: compare on all "
                "ranks what no recorder holds of that call, its source (src) and its group",
                what=meeting_named(meeting),
                who=named(meeting.came),
            )
            return


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
    elif not (blank or state.keeps_messages) and not _holds_messages(state):
        yield said(
            "no record of sends and receives: use serried.guard() in the next run, which keeps them"
        )


def _holds_messages(state: JobState) -> bool:
    return any(op.peer is not None for each in state.ranks for op in each.issued)


def _said_size(evidence: Evidence) -> int | None:
    """Returns how many ranks a start waits for, where ranks say so and none is beyond it."""
    said_so = [s.facts.get("expected") for s in evidence.signs if s.kind in STARTS]
    sizes = {size for size in said_so if isinstance(size, int)}
    fits = len(sizes) == 1 and max(evidence.ranks_heard, default=0) < min(sizes) <= MOST_OF_A_JOB
    return sizes.pop() if fits else None


def unheard(heard: Sequence[int], world_size: int | None) -> tuple[int, ...]:
    """Returns the ranks of which no line is, as far as the number of ranks is known.

    Without it, ranks below the highest that speaks are known to be there.
    """
    if not heard:
        return ()
    return tuple(sorted(set(range(world_size or max(heard) + 1)) - set(heard)))
