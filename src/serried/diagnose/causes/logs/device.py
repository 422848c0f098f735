"""GPUs: hardware that broke, memory that ran out, kernels that failed.

An Xid speaks of the GPU that its PCI address names; which rank sits there the kernel does not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.machine.xid import ADVICE, UNKNOWN, XIDS, XidSide
from serried.finding import said

_DRAIN = said("drain that node, keep nvidia-bug-report.sh's output, and run dcgmi diag -r 3 on it")
_OTHER_NODE = said("start again from the last checkpoint without that node")
_LOOK_FOR_XID = said(
    "look for Xid lines in the kernel log of its node (dmesg -T | grep -i xid): with one, suspect "
    "the GPU; without, the code"
)
_BLOCKING = said(
    "run again with CUDA_LAUNCH_BLOCKING=1, so that the Python line that is named is the one at "
    "fault"
)
_SMALLER = said(
    "use a smaller microbatch or sequence, recompute activations, or shard further; "
    "serried plan says how much memory each stage takes"
)
_FRAGMENTS = said("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps against fragments")

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
        (_DRAIN, _OTHER_NODE),
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
        (_DRAIN, _OTHER_NODE),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("gsp",),
        CauseClass.HARDWARE,
        "hw_gsp",
        Standing.HARDWARE,
        (said("a GPU's system processor (GSP) no longer answers: the GPU must be reset"),),
        (_DRAIN, _OTHER_NODE),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("sxid",),
        CauseClass.HARDWARE,
        "hw_sxid",
        Standing.HARDWARE,
        (said("the NVSwitch {pci} reports SXid {code}: {what}"),),
        (_DRAIN, _OTHER_NODE),
        0.9,
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
        (_DRAIN, _OTHER_NODE),
        0.95,
    ),
    SignMeaning(
        ("ecc",),
        CauseClass.HARDWARE,
        "hw_ecc",
        Standing.HARDWARE,
        (said("a GPU reports memory errors that it could not correct (ECC): this is hardware"),),
        (_DRAIN, _OTHER_NODE),
        0.9,
        "unknown",
    ),
    SignMeaning(
        ("nvlink",),
        CauseClass.HARDWARE,
        "hw_nvlink",
        Standing.HARDWARE,
        (said("an NVLink between GPUs reports errors: this is hardware"),),
        (_DRAIN, _OTHER_NODE),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("pcie",),
        CauseClass.HARDWARE,
        "hw_pcie",
        Standing.HARDWARE,
        (said("a host reports a PCIe or health error that was not corrected: this is hardware"),),
        (_DRAIN, _OTHER_NODE),
        0.7,
        "unknown",
    ),
    SignMeaning(
        ("machine_check",),
        CauseClass.HARDWARE,
        "hw_host",
        Standing.HARDWARE,
        (said("a host reports a hardware error of its own (processor, memory or board)"),),
        (_DRAIN, _OTHER_NODE),
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
                "lies "
                "outside its range"
            ),
            said(
                "{who} failed a check inside a CUDA kernel: as a rule an index, label or token "
                "lies "
                "outside its range"
            ),
        ),
        (
            said(
                "compare the largest label or token id in the data with the model's classes or "
                "vocabulary"
            ),
            _BLOCKING,
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
        (_BLOCKING, _LOOK_FOR_XID),
        0.8,
    ),
    SignMeaning(
        ("cuda_weak",),
        CauseClass.CUDA_ERROR,
        "cuda_error",
        Standing.FOLLOWS,
        (said("{who} met an error of the GPU's runtime; what it was is not in these lines"),),
        (_BLOCKING, _LOOK_FOR_XID),
        0.5,
        "unknown",
    ),
)


def device_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what goes wrong on a GPU or with a machine's hardware."""
    # CUDA's own word names the rank; the kernel's line of the same fault would only repeat it.
    is_said_by_cuda = told.first("cuda_hardware") is not None
    yield from candidates(
        told, [each for each in _MEANINGS if not (is_said_by_cuda and each.kinds == ("ecc",))]
    )
    yield from _xids(told)


def _xids(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the Xid that is nearest to a root; one that follows another never is."""
    known = [sign for sign in told.of("xid") if sign.code is not None]
    signs = [sign for sign in known if sign.code != ADVICE] or known
    previous = {sign.facts["previous"] for sign in signs if "previous" in sign.facts}
    own = [sign for sign in signs if XIDS.get(sign.code or 0, UNKNOWN).side is not XidSide.FOLLOWS]
    if own:
        first = min(own, key=lambda sign: (_side(sign) is not XidSide.HARDWARE, told.place(sign)))
        yield _xid(told, first, [sign for sign in own if sign.code == first.code])
    elif previous:
        code = min(number for number in previous if isinstance(number, int))
        yield _xid(told, replace(signs[0], code=code), signs)
    elif signs:
        yield _xid(told, signs[0], signs)


def _side(sign: Sign) -> XidSide:
    return XIDS.get(sign.code or 0, UNKNOWN).side


def _xid(told: LoggedSigns, sign: Sign, signs: list[Sign]) -> RankedCause:
    xid = XIDS.get(sign.code or 0, UNKNOWN)
    is_program = xid.side is XidSide.PROGRAM
    meaning = SignMeaning(
        ("xid",),
        CauseClass.CUDA_ERROR if is_program else CauseClass.HARDWARE,
        "xid_program" if is_program else "hw_xid",
        Standing.ROOT if is_program else Standing.HARDWARE,
        (
            said("GPU {pci} reports Xid {code}: {what}"),
            said("a GPU reports Xid {code}: {what}"),
        ),
        (_BLOCKING, _LOOK_FOR_XID) if is_program else (_DRAIN, _OTHER_NODE),
        0.7 if is_program else 0.9,
        "unknown",
    )
    explained = replace(sign, facts={**sign.facts, "what": xid.meaning})
    found = candidate(told, meaning, [explained])
    return replace(found, cause=replace(found.cause, quotes=quotes(signs)))
