"""NVIDIA's Xid numbers: what each means, and whether hardware, a program or another Xid is behind.

Source: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors, r570 and its Xid catalog).

>>> str(XIDS[79].meaning), XIDS[79].side
('the GPU has fallen off the bus', <XidSide.HARDWARE: 'hardware'>)
>>> XIDS[45].side
<XidSide.FOLLOWS: 'follows'>
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from serried.finding import Sentence, said


class XidSide(Enum):
    """Says where the cause of an Xid lies as a rule."""

    HARDWARE = "hardware"
    PROGRAM = "program"
    DRIVER = "driver"
    FOLLOWS = "follows"
    """It clears away what another error left behind."""


@dataclass(frozen=True)
class Xid:
    """Says what one number means."""

    meaning: Sentence
    side: XidSide


def _hardware(meaning: Sentence) -> Xid:
    return Xid(meaning, XidSide.HARDWARE)


def _program(meaning: Sentence) -> Xid:
    return Xid(meaning, XidSide.PROGRAM)


def _driver(meaning: Sentence) -> Xid:
    return Xid(meaning, XidSide.DRIVER)


XIDS = {
    8: _driver(said("the GPU stopped processing")),
    11: _program(said("an invalid or corrupted push buffer stream")),
    13: _program(said("a graphics engine exception: a kernel accessed memory out of bounds")),
    31: _program(said("a memory page fault: a kernel accessed an illegal address")),
    32: _driver(said("an invalid or corrupted push buffer stream")),
    38: _driver(said("a driver firmware error")),
    43: _program(said("the GPU stopped processing: a program's fault")),
    45: Xid(said("a preemptive clean-up after another error"), XidSide.FOLLOWS),
    48: _hardware(said("a double-bit ECC error")),
    54: _hardware(said("auxiliary power is not connected to the GPU")),
    56: _hardware(said("a display engine error")),
    57: _hardware(said("an error in programming the video memory interface")),
    58: _hardware(said("an unstable video memory interface")),
    61: _hardware(said("an internal micro-controller breakpoint")),
    62: _hardware(said("an internal micro-controller halt")),
    63: _hardware(said("a row of GPU memory was remapped or a page retired")),
    64: _hardware(said("a row of GPU memory could not be remapped or a page not retired")),
    68: _driver(said("a video processor exception")),
    69: _program(said("a graphics engine class error")),
    74: _hardware(said("an NVLink error")),
    79: _hardware(said("the GPU has fallen off the bus")),
    80: _hardware(said("corrupted data was sent to the GPU")),
    92: _hardware(said("a high rate of single-bit ECC errors")),
    94: _hardware(said("a contained uncorrectable ECC error")),
    95: _hardware(said("an uncontained uncorrectable ECC error")),
    109: _driver(said("a context switch timed out")),
    110: _hardware(said("a security fault")),
    119: _hardware(said("the GPU's system processor did not answer in time")),
    120: _hardware(said("an error of the GPU's system processor")),
    121: _hardware(said("a corrected error of the link between chips")),
    122: _hardware(said("an SPI read or write error of the GPU")),
    123: _hardware(said("an error of the power management unit")),
    136: _hardware(said("an NVLink link training error")),
    137: _program(said("an NVLink fault: a kernel accessed an illegal address of a peer")),
    140: _hardware(said("an unrecovered ECC error")),
    143: _hardware(said("an error of GPU initialization")),
    144: _hardware(said("an NVLink protocol error")),
    145: _hardware(said("an NVLink remote link error")),
    146: _hardware(said("an NVLink link error")),
    147: _hardware(said("an NVLink error")),
    148: _hardware(said("an NVLink error")),
    149: _hardware(said("an NVLink management error")),
    150: _hardware(said("an NVLink multicast error")),
    151: _hardware(said("a key rotation error")),
    154: _hardware(said("the GPU needs a reset, or the node a reboot, before it is used again")),
    155: _hardware(said("an NVLink flow control error")),
    156: _hardware(said("a resource retirement event")),
    157: _hardware(said("a resource retirement failure")),
    158: _hardware(said("a fatal time-out of the GPU")),
    171: _hardware(said("an uncorrectable DRAM error")),
    172: _hardware(said("an uncorrectable SRAM error")),
}
ADVICE = 154
"""States what another Xid needs for recovery, and is the root of nothing."""
UNKNOWN = Xid(
    said("an error of the GPU that this version of serried has no words for"), XidSide.DRIVER
)
