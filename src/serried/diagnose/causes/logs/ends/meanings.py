"""What an exit code or a signal means by itself, and whose end it is."""

from __future__ import annotations

from dataclasses import replace

from serried.diagnose.causes.logs.ends.cures import (
    ASK_SCHEDULER,
    CORE,
    DETACH,
    ITS_LOG,
    KERNEL_LOG,
    LESS_MEMORY,
    THEIR_LOGS,
)
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing
from serried.diagnose.diagnosis import CauseClass
from serried.finding import said

KILLED = SignMeaning(
    ("exit",),
    CauseClass.HOST_OOM,
    "rank_killed",
    Standing.ENDED,
    (
        said(
            "signal 9 from outside killed {who}: as a rule the host's memory ran out; the "
            "log does not say who sent it"
        ),
    ),
    (KERNEL_LOG, LESS_MEMORY),
    0.7,
)
KILLED_LOADING = SignMeaning(
    ("exit",),
    CauseClass.HOST_OOM,
    "host_oom_sigkill",
    Standing.ENDED,
    (
        said(
            "signal 9 killed {who} while loading shard {done} of {all}: very likely the "
            "host's memory ran out"
        ),
        said("signal 9 killed {who} while loading: very likely the host's memory ran out"),
    ),
    (KERNEL_LOG, LESS_MEMORY),
    0.8,
)
SEGFAULT = SignMeaning(
    ("exit",),
    CauseClass.EXCEPTION,
    "segfault",
    Standing.ROOT,
    (said("{who} crashed with a segmentation fault: in native code, which Python cannot catch"),),
    (CORE,),
    0.9,
)
BUS = SignMeaning(
    ("exit",),
    CauseClass.STORAGE,
    "shm",
    Standing.ENDED,
    (said("a bus error ended {who}: as a rule /dev/shm is full, or a mapped file was cut"),),
    (
        said(
            "give the container more shared memory (--shm-size, an emptyDir of medium Memory) "
            "and see df -h /dev/shm"
        ),
    ),
    0.6,
)
HANGUP = SignMeaning(
    ("exit",),
    CauseClass.EXTERNAL_STOP,
    "sighup_user",
    Standing.ROOT,
    (said("the terminal or ssh session of the job closed (SIGHUP); no rank failed"),),
    (DETACH,),
    0.9,
    "nobody",
)
INTERRUPTED = SignMeaning(
    ("interrupted",),
    CauseClass.EXTERNAL_STOP,
    "interrupted",
    Standing.ROOT,
    (said("somebody stopped the job from the keyboard (ctrl-C); no rank failed"),),
    (),
    0.85,
    "nobody",
)
STOPPED = SignMeaning(
    ("exit",),
    CauseClass.EXTERNAL_STOP,
    "sigterm",
    Standing.ROOT,
    (said("the launcher itself was told to stop (signal {signal}); no rank failed before that"),),
    (ASK_SCHEDULER,),
    0.85,
    "nobody",
)
STOPPED_LATER = replace(
    STOPPED,
    standing=Standing.NOTICED,
    templates=(said("the launcher was told to stop (signal {signal}) after a rank had failed"),),
)
TERMINATED = SignMeaning(
    ("exit",),
    CauseClass.EXTERNAL_STOP,
    "sigterm",
    Standing.NOTICED,
    (said("{who} got SIGTERM, the signal to stop; the log does not say from whom"),),
    (ASK_SCHEDULER, ITS_LOG),
    0.5,
    "unknown",
)
ABORTED = SignMeaning(
    ("exit",),
    CauseClass.EXCEPTION,
    "aborted",
    Standing.FOLLOWS,
    (said("{who} aborted (SIGABRT); why stands in the log of that rank"),),
    (ITS_LOG,),
    0.5,
    "unknown",  # the watchdog aborts whoever waited longest
)
FAILED = SignMeaning(
    ("exit",),
    CauseClass.EXCEPTION,
    "exit_code",
    Standing.NOTICED,
    (
        said("the first to end was {who}, with code {code}; why stands in the log of that rank"),
        said("the first to end was {who}; why stands in the log of that rank"),
    ),
    (ITS_LOG,),
    0.5,
)
SEVERAL_FAILED = replace(
    FAILED,
    templates=(
        said(
            "several ranks ended with an exit code of their own: why, and which was the first, "
            "stands in their logs"
        ),
    ),
    cures=(THEIR_LOGS,),
    ranks="unknown",
)
OWN_FAULTS = (SEGFAULT, BUS)
"""Ends that no launcher brings about: each such rank met its own, whichever was the first."""
