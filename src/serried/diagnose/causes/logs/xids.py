"""Errors that NVIDIA's driver numbers: the Xid of a GPU, the SXid of an NVSwitch.

An Xid speaks of the GPU that its PCI address names; which rank sits there the kernel does not say.
Of several that is the root whose own device failed: what another one brought about, what the other
end of a link did and what goes by without harm comes after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.machine.xid import ADVICE, UNKNOWN, XIDS, XidSide
from serried.finding import said

DRAIN = said("drain that node, keep nvidia-bug-report.sh's output, and run dcgmi diag -r 3 on it")
OTHER_NODE = said("start again from the last checkpoint without that node")
LOOK_FOR_XID = said(
    "look for Xid lines in the kernel log of its node (dmesg -T | grep -i xid): with one, suspect "
    "the GPU; without, the code"
)
BLOCKING = said(
    "run again with CUDA_LAUNCH_BLOCKING=1, so that the Python line that is named is the one at "
    "fault"
)

_SXID = SignMeaning(
    ("sxid",),
    CauseClass.HARDWARE,
    "hw_sxid",
    Standing.HARDWARE,
    (said("the NVSwitch {pci} reports SXid {code}: {what}"),),
    (DRAIN, OTHER_NODE),
    0.9,
    "unknown",
)
_HARMLESS = re.compile(r"\bNon-?fatal\b", re.IGNORECASE)
"""What the driver prints of errors of an NVSwitch or an NVLink that go by without harm."""
_BARE = re.compile(r"\b(?:Data \{|Severity \d)")
"""Lines below such an error that hold registers, and no word of it."""
_DISTANCES = {
    XidSide.HARDWARE: 0,
    XidSide.REMOTE: 1,
    XidSide.DRIVER: 2,
    XidSide.PROGRAM: 2,
    XidSide.NOTICED: 3,
}
"""How far an Xid of each side is from a root."""


def numbered_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the error of a GPU and that of a switch that are nearest to a root."""
    yield from _xids(told)
    yield from _sxids(told)


def _xids(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the Xid that is nearest to a root; one that follows another never is."""
    known = [sign for sign in told.of("xid") if sign.code is not None]
    signs = [sign for sign in known if sign.code != ADVICE] or known
    previous = {sign.facts["previous"] for sign in signs if "previous" in sign.facts}
    own = [sign for sign in signs if _side(sign) is not XidSide.FOLLOWS]
    if own:
        first = min(own, key=lambda sign: (_DISTANCES[_side(sign)], told.place(sign)))
        yield _xid(told, first, [sign for sign in own if sign.code == first.code])
    elif previous:
        code = min(number for number in previous if isinstance(number, int))
        yield _xid(told, replace(signs[0], code=code), signs)
    elif signs:
        yield _xid(told, signs[0], signs)


def _side(sign: Sign) -> XidSide:
    side = XIDS.get(sign.code or 0, UNKNOWN).side
    is_harmless = side is XidSide.HARDWARE and _HARMLESS.search(sign.text)
    return XidSide.NOTICED if is_harmless else side


def _sxids(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the first error of an NVSwitch that does harm, or that there is one without."""
    signs = told.of("sxid")
    signs = [sign for sign in signs if not _BARE.search(sign.text)] or signs
    if harmful := [sign for sign in signs if not _HARMLESS.search(sign.text)]:
        yield candidate(told, _SXID, harmful)
    elif signs:
        yield candidate(told, replace(_SXID, standing=Standing.NOTICED, confidence=0.4), signs)


def _xid(told: LoggedSigns, sign: Sign, signs: list[Sign]) -> RankedCause:
    xid, side = XIDS.get(sign.code or 0, UNKNOWN), _side(sign)
    is_program, is_noticed = side is XidSide.PROGRAM, side is XidSide.NOTICED
    meaning = SignMeaning(
        ("xid",),
        CauseClass.CUDA_ERROR if is_program else CauseClass.HARDWARE,
        "xid_program" if is_program else "hw_xid",
        Standing.ROOT if is_program else Standing.NOTICED if is_noticed else Standing.HARDWARE,
        (
            said("GPU {pci} reports Xid {code}: {what}"),
            said("a GPU reports Xid {code}: {what}"),
        ),
        (BLOCKING, LOOK_FOR_XID) if is_program else (DRAIN, OTHER_NODE),
        0.4 if is_noticed else 0.7 if is_program else 0.9,
        "unknown",
    )
    explained = replace(sign, facts={**sign.facts, "what": xid.meaning})
    found = candidate(told, meaning, [explained])
    return replace(found, cause=replace(found.cause, quotes=quotes(signs)))
