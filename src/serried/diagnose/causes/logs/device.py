"""GPUs: hardware that broke, memory that ran out, kernels that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.causes.logs.xids import (
    BLOCKING,
    DRAIN,
    LOOK_FOR_XID,
    OTHER_NODE,
    numbered_candidates,
)
from serried.diagnose.diagnosis import CauseClass
from serried.finding import said

_SMALLER = said(
    "use a smaller microbatch or sequence, recompute activations, or shard further; "
    "serried plan says how much memory each stage takes"
)
_FRAGMENTS = said("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps against fragments")

_NO_PEERS = said(
    "these GPUs cannot read one another's memory: set NCCL_P2P_DISABLE=1 where every rank gets it, "
    "also in what Ray or the launcher passes on to its workers"
)

_MEANINGS = (
    SignMeaning(
        ("bus", "gpu_lost"),
        CauseClass.HARDWARE,
        "hw_xid",
        Standing.HARDWARE,
        (
            said(
                "GPU {pci} is lost: it fell off the bus; this is hardware, and its node must be "
                "drained"
            ),
            said(
                "a GPU is lost: it fell off the bus; this is hardware, and its node must be drained"
            ),
        ),
        (DRAIN, OTHER_NODE),
        0.95,
        "unknown",
    ),
    SignMeaning(
        ("gpu_init",),
        CauseClass.HARDWARE,
        "hw_init",
        Standing.HARDWARE,
        (
            said("the driver could not start GPU {pci}: as a rule this is hardware"),
            said("the driver could not start a GPU: as a rule this is hardware"),
        ),
        (DRAIN, OTHER_NODE),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("gpu_reset",),
        CauseClass.HARDWARE,
        "hw_reset",
        Standing.HARDWARE,
        (
            said(
                "the driver refuses work for a GPU until it is reset, after an error that it "
                "could not recover from"
            ),
        ),
        (DRAIN, OTHER_NODE),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("gsp",),
        CauseClass.HARDWARE,
        "hw_gsp",
        Standing.HARDWARE,
        (said("a GPU's system processor (GSP) no longer answers: the GPU must be reset"),),
        (DRAIN, OTHER_NODE),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("cuda_hardware",),
        CauseClass.HARDWARE,
        "hw_ecc",
        Standing.HARDWARE,
        (
            said("{who} met a GPU fault ({what}): this is hardware, not code"),
            said("{who} met a GPU fault: this is hardware, not code"),
        ),
        (DRAIN, OTHER_NODE),
        0.95,
    ),
    SignMeaning(
        ("ecc",),
        CauseClass.HARDWARE,
        "hw_ecc",
        Standing.HARDWARE,
        (said("a GPU reports memory errors that it could not correct (ECC): this is hardware"),),
        (DRAIN, OTHER_NODE),
        0.9,
        "unknown",
    ),
    SignMeaning(
        ("nvlink",),
        CauseClass.HARDWARE,
        "hw_nvlink",
        Standing.HARDWARE,
        (said("an NVLink between GPUs reports errors: this is hardware"),),
        (DRAIN, OTHER_NODE),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("pcie",),
        CauseClass.HARDWARE,
        "hw_pcie",
        Standing.HARDWARE,
        (said("a host reports a PCIe or health error that was not corrected: this is hardware"),),
        (DRAIN, OTHER_NODE),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("machine_check",),
        CauseClass.HARDWARE,
        "hw_host",
        Standing.HARDWARE,
        (said("a host reports a hardware error of its own (processor, memory or board)"),),
        (DRAIN, OTHER_NODE),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("thermal",),
        CauseClass.HARDWARE,
        "thermal",
        Standing.NOTICED,
        (said("a GPU or a host slows its clock down because it is too hot"),),
        (
            said(
                "look at fans, power and inlet temperature of that node; nvidia-smi -q -d "
                "PERFORMANCE"
            ),
        ),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("gpu_oom",),
        CauseClass.GPU_OOM,
        "gpu_oom",
        Standing.EXHAUSTED,
        (
            said(
                "{who} ran out of GPU memory: {wanted} were asked for, {free} of {total} were "
                "free; what stopped elsewhere follows from it"
            ),
            said(
                "{who} ran out of GPU memory: {wanted} were asked for; what stopped elsewhere "
                "follows from it"
            ),
            said("{who} ran out of GPU memory; what stopped elsewhere follows from it"),
        ),
        (_SMALLER, _FRAGMENTS),
        0.95,
    ),
    SignMeaning(
        ("assertion",),
        CauseClass.EXCEPTION,
        "user_bug",
        Standing.ROOT,
        (
            said(
                "{who} failed a kernel's check in {file}: {condition}; an index, label or token "
                "lies outside its range"
            ),
            said(
                "{who} failed a check inside a CUDA kernel: as a rule an index, label or token "
                "lies outside its range"
            ),
        ),
        (
            said(
                "compare the largest label or token id in the data with the model's classes or "
                "vocabulary"
            ),
            BLOCKING,
        ),
        0.85,
    ),
    SignMeaning(
        ("cuda_capture",),
        CauseClass.CUDA_ERROR,
        "cuda_error",
        Standing.ROOT,
        (said("{who} called CUDA in a way that a graph under capture forbids: {what}"),),
        (
            said(
                "capture with capture_error_mode='thread_local', for the watchdog asks for events "
                "meanwhile; and let the first collective of each group run before the capture"
            ),
        ),
        0.8,
    ),
    SignMeaning(
        ("cuda", "cuda_unnamed"),
        CauseClass.CUDA_ERROR,
        "cuda_error",
        Standing.ROOT,
        (said("{who} met a CUDA error: {what}"), said("{who} met an error of the GPU's runtime")),
        (BLOCKING, LOOK_FOR_XID),
        0.8,
    ),
    SignMeaning(
        ("cuda_weak",),
        CauseClass.CUDA_ERROR,
        "cuda_error",
        Standing.FOLLOWS,
        (said("{who} met an error of the GPU's runtime; what it was is not in these lines"),),
        (BLOCKING, LOOK_FOR_XID),
        0.5,
        "unknown",
    ),
)


def device_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what goes wrong on a GPU or with a machine's hardware."""
    repeated = _repeated(told)
    for each in candidates(told, [each for each in _MEANINGS if each.kinds[0] not in repeated]):
        what = str(each.cause.verdict.values.get("what")).lower()
        if "nvlink" in what:
            yield replace(each, cause=replace(each.cause, kind="hw_nvlink"))
        elif "peer access is not supported" in what:
            yield replace(each, cause=replace(each.cause, cures=(_NO_PEERS,)))
        else:
            yield each
    yield from numbered_candidates(told)


def _repeated(told: LoggedSigns) -> set[str]:
    """Returns the kinds of which CUDA's own word, which names the rank, tells as much.

    The kernel's line of a memory error would only repeat it, and so would the line itself.
    """
    by_cuda = {sign.quote for sign in told.of("cuda_hardware")}
    links = {sign.quote for sign in told.of("nvlink")}
    return {"ecc" if by_cuda else "", "nvlink" if links and links <= by_cuda else ""}
