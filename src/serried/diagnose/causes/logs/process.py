"""Processes that ended: by the host's memory, a signal, an exit code, a person.

An exit code alone says little: 1 is an exception that another line tells, -6 as a rule the
watchdog's own end. A process that is killed by signal 9 without a word was as a rule killed by
the kernel, for want of memory; who sent it only the kernel log says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import said

_KERNEL_LOG = said(
    "look into the kernel log of its node: dmesg -T | grep -i -E 'killed process|oom'; it names "
    "the process and its size, or shows that somebody else sent the signal"
)
_LESS_MEMORY = said(
    "load checkpoints by shards (low_cpu_mem_usage, mmap), use fewer loader workers and pinned "
    "buffers, or ask the scheduler for more memory"
)
_DETACH = said("start it detached from the terminal: tmux, nohup or sbatch")
_REQUEUE = said("ask for more time, or save often and let the scheduler requeue the job")
_CORE = said(
    "keep the core file and read it: gdb python core, then bt; or run with python -X faulthandler"
)
_ITS_LOG = said(
    "read that rank's own log: torchrun writes one for each with --log-dir and --redirects 3; "
    "@record on main() brings its traceback into the summary"
)

_SIGNALS = {
    "SIGKILL": -9,
    "SIGSEGV": -11,
    "SIGABRT": -6,
    "SIGBUS": -7,
    "SIGTERM": -15,
    "SIGHUP": -1,
    "SIGINT": -2,
    "SIGFPE": -8,
    "SIGILL": -4,
    "SIGUSR1": -10,
    "SIGUSR2": -12,
}

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
        (_LESS_MEMORY,),
        0.95,
        "unknown",
    ),
    SignMeaning(
        ("task_oom",),
        CauseClass.HOST_OOM,
        "host_oom_sigkill",
        Standing.EXHAUSTED,
        (said("the scheduler killed {who}: the host memory that it granted ran out"),),
        (_LESS_MEMORY,),
        0.95,
    ),
    SignMeaning(
        ("no_host_memory",),
        CauseClass.HOST_OOM,
        "host_oom",
        Standing.EXHAUSTED,
        (said("{who} found no more host memory: it is used up, or a limit is reached"),),
        (_LESS_MEMORY, _KERNEL_LOG),
        0.85,
    ),
    SignMeaning(
        ("told_to_stop",),
        CauseClass.EXTERNAL_STOP,
        "sigterm",
        Standing.NOTICED,
        (said("{who} got SIGTERM, the signal to stop; the log does not say from whom"),),
        (_ITS_LOG,),
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
        (_KERNEL_LOG, _LESS_MEMORY),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("interrupted",),
        CauseClass.EXTERNAL_STOP,
        "interrupted",
        Standing.ROOT,
        (said("somebody stopped the job from the keyboard (ctrl-C); no rank failed"),),
        (),
        0.85,
        "nobody",
    ),
    SignMeaning(
        ("heap_broken",),
        CauseClass.EXCEPTION,
        "aborted",
        Standing.ENDED,
        (said("the C library ended {who}, because native code there had overwritten memory"),),
        (_CORE,),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("native_abort",),
        CauseClass.EXCEPTION,
        "aborted",
        Standing.FOLLOWS,
        (said("an exception in native code ended {who}; what it said was cut off"),),
        (_CORE,),
        0.4,
        "unknown",
    ),
    SignMeaning(
        ("peer_failed",),
        CauseClass.EXCEPTION,
        "exit_code",
        Standing.FOLLOWS,
        (said("another rank failed or ended, and the library stopped {who}; its log says why"),),
        (_ITS_LOG,),
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
        (_CORE,),
        0.9,
    ),
)
_KILLED = SignMeaning(
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
    (_KERNEL_LOG, _LESS_MEMORY),
    0.7,
)
_KILLED_LOADING = SignMeaning(
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
    (_KERNEL_LOG, _LESS_MEMORY),
    0.8,
)
_SEGFAULT = SignMeaning(
    ("exit",),
    CauseClass.EXCEPTION,
    "segfault",
    Standing.ROOT,
    (said("{who} crashed with a segmentation fault: in native code, which Python cannot catch"),),
    (_CORE,),
    0.9,
)
_BUS = SignMeaning(
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
_HANGUP = SignMeaning(
    ("exit",),
    CauseClass.EXTERNAL_STOP,
    "sighup_user",
    Standing.ROOT,
    (said("the terminal or ssh session of the job closed (SIGHUP); no rank failed"),),
    (_DETACH,),
    0.9,
    "nobody",
)
_STOPPED = SignMeaning(
    ("exit",),
    CauseClass.EXTERNAL_STOP,
    "sigterm",
    Standing.ROOT,
    (said("the launcher itself was told to stop (signal {signal}); no rank failed before that"),),
    (
        said(
            "ask the scheduler why: time limit, preemption, maintenance, or somebody's scancel "
            "or kubectl delete"
        ),
    ),
    0.85,
    "nobody",
)
_TERMINATED = SignMeaning(
    ("exit",),
    CauseClass.EXTERNAL_STOP,
    "sigterm",
    Standing.NOTICED,
    (said("{who} got SIGTERM, the signal to stop; the log does not say from whom"),),
    (_ITS_LOG,),
    0.5,
    "unknown",
)
_ABORTED = SignMeaning(
    ("exit",),
    CauseClass.EXCEPTION,
    "aborted",
    Standing.FOLLOWS,
    (said("{who} aborted (SIGABRT); why stands in the log of that rank"),),
    (_ITS_LOG,),
    0.5,
    "unknown",  # the watchdog aborts whoever waited longest
)
_FAILED = SignMeaning(
    ("exit",),
    CauseClass.EXCEPTION,
    "exit_code",
    Standing.NOTICED,
    (
        said("the first to end was {who}, with code {code}; why stands in the log of that rank"),
        said("the first to end was {who}; why stands in the log of that rank"),
    ),
    (_ITS_LOG,),
    0.5,
)
_SEVERAL_FAILED = replace(
    _FAILED,
    templates=(
        said(
            "several ranks ended with an exit code of their own: why, and which was the first, "
            "stands in their logs"
        ),
    ),
    ranks="unknown",
)
_WORKER_DIED = SignMeaning(
    ("worker_died",),
    CauseClass.HOST_OOM,
    "worker_died",
    Standing.ENDED,
    (
        said(
            "a worker of Ray ended without a word: as a rule the host's memory ran out, else a "
            "crash in native code"
        ),
    ),
    (_KERNEL_LOG, _LESS_MEMORY),
    0.5,
    "unknown",
)
_CANCELLED = SignMeaning(
    ("cancelled",),
    CauseClass.EXTERNAL_STOP,
    "cancelled",
    Standing.ROOT,
    (said("the scheduler stopped the job: {why}"), said("the scheduler stopped the job")),
    (_REQUEUE,),
    0.85,
    "nobody",
)


_OWN_FAULTS = (_SEGFAULT, _BUS)
"""Ends that no launcher brings about: each such rank met its own, whichever was the first."""


def process_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what ended processes from outside, or without a word of their own."""
    yield from candidates(told, _TOLD)
    if died := _silent_workers(told):
        is_known = len(told.ranks(died)) == 1 == len({sign.speaker.pid for sign in died})
        meaning = replace(_WORKER_DIED, ranks="speakers") if is_known else _WORKER_DIED
        yield candidate(told, meaning, died)
    yield from _exits(told)
    yield from _stops(told)


def _silent_workers(told: LoggedSigns) -> list[Sign]:
    """Returns the workers of Ray that died, where no watchdog of theirs says that it ended them."""
    died = told.of("worker_died")
    ended = {sign.speaker.pid for sign in told.of("timeout")} - {None}
    return [] if ended & {sign.speaker.pid for sign in died} else died


def _exits(told: LoggedSigns) -> Iterator[RankedCause]:
    by_meaning: dict[int, tuple[SignMeaning, list[Sign]]] = {}
    for sign in _ends(told):
        meaning = _of_exit(told, sign)
        if sign.kind == "other_failure" and meaning not in _OWN_FAULTS:
            continue  # whoever ended later was as a rule ended by the launcher
        by_meaning.setdefault(id(meaning), (meaning, []))[1].append(sign)
    for meaning, signs in by_meaning.values():
        if meaning is _KILLED and (loading := _loading(told, signs[0])):
            yield candidate(told, _KILLED_LOADING, [*signs, loading])
        else:
            shown = signs if meaning in (_KILLED, _SEGFAULT, _BUS) else signs[:1]
            is_several = meaning is _FAILED and len(_failed(told)) > 1
            yield candidate(told, _SEVERAL_FAILED if is_several else meaning, shown)


def _ends(told: LoggedSigns) -> list[Sign]:
    """Returns the ends that were no good ones; of a rank those that tell how, where any do."""
    ends = [
        s for s in told.of("exit", "first_failure", "other_failure", "task_exit") if s.code != 0
    ]
    how = {told.rank(sign.speaker) for sign in ends if _tells_how(sign)}
    return [s for s in ends if _tells_how(s) or told.rank(s.speaker) not in how - {None}]


def _tells_how(sign: Sign) -> bool:
    return sign.code is not None or any(sign.facts.get(each) for each in ("name", "signal", "how"))


def _failed(told: LoggedSigns) -> set[int | None]:
    """Returns the ranks that ended with a code of their own; of several none is the first."""
    return {told.rank(sign.speaker) for sign in _ends(told) if _of_exit(told, sign) is _FAILED}


def _of_exit(told: LoggedSigns, sign: Sign) -> SignMeaning:
    name = str(sign.facts.get("name") or "")
    how = str(sign.facts.get("how") or "").capitalize()
    code = _SIGNALS.get(name, sign.code if sign.code is not None else 0)
    signal = sign.facts.get("signal")
    if isinstance(signal, int):
        code = -signal
    if code > 128:
        code = 128 - code
    if code == -9 or how.startswith("Killed"):
        return _KILLED
    if code == -11 or how.startswith("Segmentation"):
        return _SEGFAULT
    if code == -7 or how.startswith("Bus"):
        return _BUS
    if code == -1 and sign.kind != "task_exit":
        return _HANGUP
    if code == -15 or how.startswith("Terminated"):
        return _TERMINATED
    if code == -6 or how.startswith("Abort"):
        return _ABORTED
    return _FAILED


def _loading(told: LoggedSigns, exit_sign: Sign) -> Sign | None:
    """Returns the sign of a checkpoint being loaded, where it is the last said before an exit."""
    place = told.place(exit_sign)
    before = [
        sign for sign in told.of("loading", "saving", "validating") if told.place(sign) <= place
    ]
    return before[-1] if before and before[-1].kind == "loading" else None


def _stops(told: LoggedSigns) -> Iterator[RankedCause]:
    signs = told.of("agent_signal")
    if signs:
        meaning = _HANGUP if signs[0].facts.get("signal") == 1 else _STOPPED
        yield candidate(told, meaning, signs[:1])
    cancelled = told.of("cancelled", "evicted")
    reasons = [sign for sign in cancelled if sign.facts.get("why") not in (None, "aborted")]
    if reasons:
        yield candidate(told, _CANCELLED, reasons)
    elif cancelled:
        weak = replace(_CANCELLED, standing=Standing.NOTICED, confidence=0.4)
        yield candidate(told, weak, cancelled)
