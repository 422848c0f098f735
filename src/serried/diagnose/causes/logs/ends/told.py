"""What the kernel, a scheduler, a shell or a library says of a process that it ended or lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.ends.cures import (
    ASK_SCHEDULER,
    CORE,
    ITS_LOG,
    JOBS_OUTPUT,
    KERNEL_LOG,
    LESS_MEMORY,
    OWN_VOLUME,
    PODS_LOG,
)
from serried.diagnose.causes.logs.ends.meanings import INTERRUPTED
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import said

_TOLD = (
    SignMeaning(
        ("oom_kill",),
        CauseClass.HOST_OOM,
        "host_oom_sigkill",
        Standing.EXHAUSTED,
        (
            said("the kernel killed process {pid} ({killed}) because the host's memory ran out"),
            said("the host's memory ran out, and {killed} called the kernel's killer"),
            said("the host's memory ran out, and the kernel lists which processes it may kill"),
        ),
        (LESS_MEMORY,),
        0.95,
        "unknown",
    ),
    SignMeaning(
        ("task_oom",),
        CauseClass.HOST_OOM,
        "host_oom_sigkill",
        Standing.EXHAUSTED,
        (said("the scheduler killed {who}: the host memory that it granted ran out"),),
        (LESS_MEMORY,),
        0.95,
    ),
    SignMeaning(
        ("evicted_for",),
        CauseClass.STORAGE,
        "disk_full",
        Standing.EXHAUSTED,
        (
            said("the scheduler ended {who}: the node was low on {what}"),
            said("the scheduler ended {who}: more {spent} was used than its limit allows"),
        ),
        (OWN_VOLUME,),
        0.9,
        "unknown",
    ),
    SignMeaning(
        ("no_host_memory",),
        CauseClass.HOST_OOM,
        "host_oom",
        Standing.EXHAUSTED,
        (said("{who} found no more host memory: it is used up, or a limit is reached"),),
        (LESS_MEMORY, KERNEL_LOG),
        0.85,
    ),
    SignMeaning(
        ("object_store",),
        CauseClass.HOST_OOM,
        "object_store",
        Standing.EXHAUSTED,
        (said("Ray's object store, which lies in the host's memory, is full"),),
        (
            said(
                "see what holds it (ray memory), keep fewer objects, or give it more "
                "(--object-store-memory) and a disk to spill to"
            ),
        ),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("told_to_stop",),
        CauseClass.EXTERNAL_STOP,
        "sigterm",
        Standing.NOTICED,
        (said("{who} got SIGTERM, the signal to stop; the log does not say from whom"),),
        (ASK_SCHEDULER, ITS_LOG),
        0.5,
        "nobody",
    ),
    SignMeaning(
        ("killed_word",),
        CauseClass.HOST_OOM,
        "host_oom_sigkill",
        Standing.ENDED,
        (
            said(
                "a process was killed by signal 9 without a word: very likely the host's memory "
                "ran out"
            ),
        ),
        (KERNEL_LOG, LESS_MEMORY),
        0.6,
        "unknown",
    ),
    INTERRUPTED,
    SignMeaning(
        ("heap_broken",),
        CauseClass.EXCEPTION,
        "aborted",
        Standing.ENDED,
        (said("the C library ended {who}, because native code there had overwritten memory"),),
        (CORE,),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("native_abort",),
        CauseClass.EXCEPTION,
        "aborted",
        Standing.FOLLOWS,
        (said("an exception in native code ended {who}; what it was is not in these lines"),),
        (CORE,),
        0.4,
        "unknown",
    ),
    SignMeaning(
        ("job_failed",),
        CauseClass.EXCEPTION,
        "exit_code",
        Standing.FOLLOWS,
        (
            said("Slurm says that the job failed with code {code}; why stands in the job's output"),
            said("Slurm says that the job failed; why stands in the job's output"),
        ),
        (JOBS_OUTPUT,),
        0.4,
        "unknown",
    ),
    SignMeaning(
        ("pod_failed",),
        CauseClass.EXCEPTION,
        "exit_code",
        Standing.FOLLOWS,
        (said("{who} ended with an error; why stands in the log of that pod"),),
        (PODS_LOG,),
        0.4,
        "unknown",
    ),
    SignMeaning(
        ("peer_failed",),
        CauseClass.EXCEPTION,
        "exit_code",
        Standing.FOLLOWS,
        (said("another rank failed or ended, and the library stopped {who}; its log says why"),),
        (ITS_LOG,),
        0.4,
        "unknown",
    ),
    SignMeaning(
        ("segfault_stack", "segfault"),
        CauseClass.EXCEPTION,
        "segfault",
        Standing.ROOT,
        (
            said(
                "{who} crashed with a segmentation fault: in native code, which Python cannot catch"
            ),
        ),
        (CORE,),
        0.9,
    ),
)
_WORKER_DIED = SignMeaning(
    ("worker_died",),
    CauseClass.HOST_OOM,
    "worker_died",
    Standing.ENDED,
    (
        said(
            "process {pid} on {host}, a worker of Ray, ended without a word: as a rule the host's "
            "memory ran out, else a crash in native code"
        ),
        said(
            "a worker of Ray ended without a word: as a rule the host's memory ran out, else a "
            "crash in native code"
        ),
    ),
    (KERNEL_LOG, LESS_MEMORY),
    0.5,
    "unknown",
)
_RANK_DIED = replace(
    _WORKER_DIED,
    templates=(
        said(
            "{who}, a worker of Ray, ended without a word: as a rule the host's memory ran out, "
            "else a crash in native code"
        ),
    ),
    ranks="speakers",
)


def told_ends(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what others say of processes that ended."""
    yield from candidates(told, _TOLD)
    if died := _silent_workers(told):
        failed = told.of("worker_failed")
        if len(told.ranks(failed)) == 1:
            yield candidate(told, _RANK_DIED, [*failed, *died])
            return
        is_known = len(told.ranks(died)) == 1 == len({sign.speaker.pid for sign in died})
        meaning = replace(_WORKER_DIED, ranks="speakers") if is_known else _WORKER_DIED
        yield candidate(told, meaning, died)


def _silent_workers(told: LoggedSigns) -> list[Sign]:
    """Returns the workers of Ray that died, where no watchdog of theirs says that it ended them."""
    died = told.of("worker_died")
    ended = {sign.speaker.pid for sign in told.of("timeout")} - {None}
    return [] if ended & {sign.speaker.pid for sign in died} else died
