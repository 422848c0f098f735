"""Storage, data and numbers: disks that are full, loaders that end, losses that are no number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.exception import is_of_lost_parent
from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import said

_SHARED = said(
    "give the container more shared memory (--shm-size, an emptyDir of medium Memory) and see df "
    "-h /dev/shm"
)
_SPACE = said("free space or write elsewhere (df -h, df -i), and keep fewer checkpoints")
_MOUNT = said(
    "look at the file system's own log and mount on that node; read and write a file by hand"
)
_VOLUME = said(
    "kubectl describe pod POD and the log of the volume's driver on that node say why it was not "
    "mounted; another node may still hold it"
)
_OLDER = said(
    "load the checkpoint before it, and write new ones to a temporary name that is renamed at "
    "the end"
)
_WORKERS = said(
    "use fewer workers or smaller prefetch, and read the kernel log of its node for the killer"
)
_ANOMALY = said(
    "find the first step and tensor: torch.autograd.set_detect_anomaly(True), or Megatron's "
    "--check-for-nan-in-loss-and-grad; then lower the learning rate, or skip that batch"
)
_RERUN = said("run the same step on another GPU: if it is a number there, suspect the GPU")

_MEANINGS = (
    SignMeaning(
        ("shm_full",),
        CauseClass.STORAGE,
        "shm",
        Standing.EXHAUSTED,
        (
            said(
                # A path that is said, and not opened.
                "/dev/shm is full: {who} could not get {size} bytes of shared memory; "  # nosec B108
                "connections that fail afterwards follow from it"
            ),
            said("shared memory (/dev/shm) is full or too small"),
        ),
        (_SHARED,),
        0.9,
        "unknown",
    ),
    SignMeaning(
        ("disk_full", "quota"),
        CauseClass.STORAGE,
        "disk_full",
        Standing.EXHAUSTED,
        (
            said("{who} could not write to {path}: no space is left on the disk"),
            said("{who} could not write: no space is left on a disk, or a quota is used up"),
        ),
        (_SPACE,),
        0.9,
        "unknown",
    ),
    SignMeaning(
        ("write_failed",),
        CauseClass.STORAGE,
        "write_failed",
        Standing.EXHAUSTED,
        (
            said(
                "{who} could not write a file: as a rule the disk is full or a quota is used up; "
                "the error does not say"
            ),
        ),
        (_SPACE, _MOUNT),
        0.75,
        "unknown",
    ),
    SignMeaning(
        ("stale", "io_error", "read_only", "disk_error"),
        CauseClass.STORAGE,
        "file_system",
        Standing.EXHAUSTED,
        (said("a file system failed under the job (input/output error, stale or lost mount)"),),
        (_MOUNT,),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("mount_failed",),
        CauseClass.STORAGE,
        "mount",
        Standing.EXHAUSTED,
        (said("a container waits for a volume that could not be mounted on {who}"),),
        (_VOLUME,),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("storage_wait",),
        CauseClass.STORAGE,
        "storage_stall",
        Standing.EXHAUSTED,
        (
            said(
                "process {pid} waits in a call of the file system ({call}) that does not return: "
                "the storage does not answer, or processes wait there for one another"
            ),
        ),
        (_MOUNT,),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("remote_store",),
        CauseClass.STORAGE,
        "remote_store",
        Standing.CONNECTION,
        (said("a remote file system or object store did not answer or refused"),),
        (_MOUNT,),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("loader_died", "loader_timeout"),
        CauseClass.DATA,
        "loader",
        Standing.ROOT,
        (said("a worker that loads data ended or hung: {who} got no more batches"),),
        (_WORKERS, said("run with num_workers=0 to see the worker's own error")),
        0.75,
    ),
    SignMeaning(
        ("gradients_differ",),
        CauseClass.NUMERICS,
        "gradients_differ",
        Standing.ROOT,
        (
            said(
                "the gradients of the ranks differ after they were summed, or are no number: the "
                "ranks did not sum the same ones, or one computes wrongly; which the log does not "
                "tell"
            ),
        ),
        (_ANOMALY, _RERUN),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("nan_differs",),
        CauseClass.NUMERICS,
        "nan_transient",
        Standing.ROOT,
        (said("{who} got NaN that a second run of the same step did not give: suspect the GPU"),),
        (_RERUN,),
        0.85,
    ),
)
_TORN = SignMeaning(
    ("torn_checkpoint",),
    CauseClass.STORAGE,
    "checkpoint_torn",
    Standing.ROOT,
    (said("a checkpoint or data file is incomplete or damaged: {who} could not read it"),),
    (_OLDER,),
    0.85,
)
_SEMAPHORES = SignMeaning(
    ("disk_full",),
    CauseClass.STORAGE,
    "shm",
    Standing.EXHAUSTED,
    (
        said(
            "{who} could not make a semaphore: shared memory (/dev/shm), where they lie, is full "
            "or too small; the disks are another matter"
        ),
    ),
    (_SHARED,),
    0.85,
    "unknown",
)
_SEMAPHORES_OF = "multiprocessing/synchronize.py"
"""Where Python makes semaphores, each a file of /dev/shm."""
_SERIAL = "joblib will operate in serial mode"
"""What joblib says where it could make none."""
_LOADER_KILLED = SignMeaning(
    ("loader_killed",),
    CauseClass.DATA,
    "loader_killed",
    Standing.EXHAUSTED,
    (
        said(
            "a worker that loads data was killed by a signal ({signal}): as a rule memory ran out; "
            "{who} got no more batches"
        ),
    ),
    (_WORKERS, _SHARED),
    0.8,
)
_LOADER_CRASHED = replace(
    _LOADER_KILLED,
    templates=(
        said(
            "a worker that loads data crashed in native code ({signal}); {who} got no more batches"
        ),
    ),
    cures=(
        said("run with num_workers=0 to see the worker's own error"),
        said(
            "look at the library that reads the data (image, video, tokenizer): its version, and "
            "the file that it read last"
        ),
    ),
)
_CRASHES = ("segmentation fault", "floating-point exception", "illegal instruction", "aborted")
_LOADER_BUS = SignMeaning(
    ("loader_killed",),
    CauseClass.STORAGE,
    "shm",
    Standing.EXHAUSTED,
    (
        said(
            "a worker that loads data met a bus error: shared memory (/dev/shm) is full or too "
            "small"
        ),
    ),
    (_SHARED,),
    0.9,
    "unknown",
)
_NAN = SignMeaning(
    ("nan",),
    CauseClass.NUMERICS,
    "nan",
    Standing.ROOT,
    (
        said("{who} got NaN or Inf at iteration {iteration}"),
        said("{who} got NaN or Inf ({what})"),
        said("{who} got NaN or Inf where a number is asked for"),
    ),
    (_ANOMALY, _RERUN),
    0.8,
)
_NAN_OF_SOME = replace(
    _NAN,
    templates=(
        said(
            "NaN or Inf came up at iteration {iteration}; which rank had it first is not in the log"
        ),
        said(
            "NaN or Inf came up in the training (in a loss, a gradient or another number); which "
            "rank had it first is not in the log"
        ),
    ),
    ranks="unknown",
)
_NAN_REPEATS = replace(
    _NAN,
    templates=(
        said(
            "{who} got NaN at iteration {iteration}, and a second run on the same GPU gave it "
            "again: code or data, not a passing fault"
        ),
    ),
    confidence=0.9,
)


def input_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what goes wrong with files, loaders of data and numbers."""
    semaphores = _semaphores(told)
    for each in candidates(told, _MEANINGS):
        if not (semaphores and each.cause.kind == "disk_full"):
            yield each
    if semaphores:
        yield candidate(told, _SEMAPHORES, semaphores)
    orphaned = {sign.quote for sign in told.of("exception") if is_of_lost_parent(sign)}
    if torn := [sign for sign in told.of("torn_checkpoint") if sign.quote not in orphaned]:
        yield candidate(told, _TORN, torn)
    if killed := told.of("loader_killed"):
        signal = str(killed[0].facts.get("signal")).lower()
        is_crash = signal.startswith(_CRASHES)
        meaning = _LOADER_CRASHED if is_crash else _LOADER_KILLED
        yield candidate(told, _LOADER_BUS if "bus" in signal else meaning, killed)
    nans = told.of("nan")
    if repeats := told.of("nan_repeats"):
        yield candidate(told, _NAN_REPEATS, [*nans, *repeats])
    elif nans:
        # Only a line that names the rank says whose NaN it is; a loss is everybody's, unless one
        # rank alone had it and stopped for it, or had it in a call of its own.
        is_named = any("rank" in sign.facts for sign in nans)
        stopped = told.ranks(told.of("first_failure"))
        is_of_one = len(told.ranks(nans)) == 1
        is_its_own = is_of_one and (
            told.ranks(nans) == stopped or all("own" in sign.facts for sign in nans)
        )
        yield candidate(told, _NAN if is_named or is_its_own else _NAN_OF_SOME, nans)


def _semaphores(told: LoggedSigns) -> list[Sign]:
    """Returns where Python found no room for a semaphore; none where a file found none either."""
    made = {
        sign.quote for sign in told.of("exception") if _innermost(sign).endswith(_SEMAPHORES_OF)
    }
    full = told.of("disk_full")
    is_all = all(sign.quote in made or _SERIAL in sign.quote.text for sign in full)
    return [sign for sign in full if sign.quote in made] if is_all else []


def _innermost(exception: Sign) -> str:
    frames = exception.facts.get("frames")
    return str(frames[-1][0]) if isinstance(frames, tuple) and frames else ""
