"""What to do next about each kind of root of a hang."""

from __future__ import annotations

from serried.diagnose.causes.logs.collectives.limit import NEVER_MEET
from serried.diagnose.waits.root import Root, RootKind
from serried.finding import Sentence, said

_STILL_AT_WORK = said(
    "raise the time-out only if that rank is still at work there (saving, loading, compiling): "
    "take its stack twice, a minute apart (py-spy dump --pid PID), and see whether it moves"
)
_NOBODY_COMES = said("do not raise the time-out: a rank that ended or stands still does not come")
_SAME_ORDER = said(
    "let all ranks of a group issue the same collectives in the same order: no collective inside "
    "a branch that only some ranks take"
)

_AS_SCHEDULED = said(
    "compare its sends and receives with its schedule, which serried schedule NAME --pp N "
    "--microbatches M prints"
)

_CURES: dict[RootKind, tuple[Sentence, ...]] = {
    RootKind.DEAD: (
        said("read the last lines of that rank and of its node's kernel log (dmesg -T)"),
        _NOBODY_COMES,
    ),
    RootKind.STOPPED: (
        said("let it go on (kill -CONT PID), and find who stopped it: a debugger, a scheduler"),
        _NOBODY_COMES,
    ),
    RootKind.FINISHED: (
        said(
            "give every rank as many batches: drop the last ones, pad, or use "
            "torch.distributed.algorithms.join.Join"
        ),
        _NOBODY_COMES,
    ),
    RootKind.USER_CODE: (
        said("look at the frame that is named: what it reads, locks or computes there"),
        _STILL_AT_WORK,
    ),
    RootKind.NEVER_ARRIVED: (
        said("take its stack while it hangs (py-spy dump --pid PID), which tells where it stands"),
        _STILL_AT_WORK,
    ),
    RootKind.SILENT: (
        said("collect that rank's log, dump and stack: neither dump nor stack of it was given"),
    ),
    RootKind.SKIPPED: (_SAME_ORDER, NEVER_MEET),
    RootKind.SWAPPED: (_SAME_ORDER, NEVER_MEET),
    RootKind.OTHER_GROUP: (_SAME_ORDER, NEVER_MEET),
    RootKind.OTHER_OPERATION: (_SAME_ORDER, NEVER_MEET),
    RootKind.ALONE: (_SAME_ORDER, NEVER_MEET),
    RootKind.OTHER_DTYPE: (
        said("bring one data type to a collective on all ranks: look for a cast on one of them"),
        NEVER_MEET,
    ),
    RootKind.OTHER_SIZE: (
        said("bring as many elements on all ranks: pad, or gather the sizes first"),
        NEVER_MEET,
    ),
    RootKind.OUT_OF_SCHEDULE: (_AS_SCHEDULED,),
    RootKind.LEFT_OUT_SEND: (_AS_SCHEDULED,),
    RootKind.LEFT_OUT_RECEIVE: (_AS_SCHEDULED,),
    RootKind.OTHER_MESSAGES: (
        said("compare the sends and receives of that rank with those of its peers in this step"),
    ),
    RootKind.LEFT_PIPELINE: (
        said(
            "give every stage as many steps and microbatches: look for a loop that ends earlier "
            "on that rank, and for a message that it left out"
        ),
        NEVER_MEET,
    ),
    RootKind.LEFT_ORDER: (
        said(
            "look why that rank left out the rest of its step or did more than its peers: an "
            "exception that it passes over, or a loop of another length"
        ),
        NEVER_MEET,
    ),
    RootKind.OTHER_LINE: (
        said("compare the two lines: the source and the group have to be the same on all ranks"),
    ),
    RootKind.WRONG_PEER: (
        said("check the rank that it sends to: global ranks, not ranks inside the group"),
    ),
    RootKind.MAY_WAIT: (
        said(
            "take the stacks with the frames of C++ while it hangs (py-spy dump --native --pid "
            "PID): they tell a wait for a message from work"
        ),
        said(
            "use serried.guard() in the next run: it writes down sends and receives, which gloo's "
            "flight recorder leaves out"
        ),
    ),
    RootKind.CIRCLE: (
        said(
            "collect flight-recorder dumps of all of them: they show in which order each made its "
            "calls"
        ),
    ),
}


_POST_BOTH = said(
    "a blocking send waits for its receive: post sends and receives of neighbours together "
    "(batch_isend_irecv), or wait for isend only after the receive"
)

_COMPARE_BOTH = said(
    "count what both have sent and received in this step: serried.guard() writes it down, also "
    "where a flight recorder leaves it out, as with gloo"
)


def cures_of(root: Root) -> tuple[Sentence, ...]:
    """Returns what to do about a root, the first thing first."""
    if root.crossed is not None and root.ranks is None:
        return (_POST_BOTH, *_CURES[root.kind])
    if root.kind is RootKind.OUT_OF_SCHEDULE and root.crossed and not root.crossed.is_recorded:
        return (*_CURES[root.kind], _COMPARE_BOTH)
    return _CURES[root.kind]
