"""NVIDIA's Xid numbers: what each means, and whether hardware, a program or another Xid is behind.

Source: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors, r570, and its Xid catalog, whose
"immediate action" tells what may be ignored).

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
    NOTICED = "noticed"
    """NVIDIA's catalog lets it be ignored: the GPU works on, and no job ends of it."""
    REMOTE = "remote"
    """What the other end of a link did wrong, as a rule: of several GPUs' this is no root."""


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


def _noticed(meaning: Sentence) -> Xid:
    return Xid(meaning, XidSide.NOTICED)


_COPIES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_VIDEO = (65, 68, *range(82, 85), 86, 88, 89, *range(96, 106), 139, 142)

XIDS = {
    **{code: _driver(said("a copy engine exception")) for code in _COPIES},
    **{code: _driver(said("a video engine exception")) for code in _VIDEO},
    8: _driver(said("the GPU stopped processing")),
    11: _program(said("an invalid or corrupted push buffer stream")),
    13: _program(said("a graphics engine exception: a kernel accessed memory out of bounds")),
    31: _program(said("a memory page fault: a kernel accessed an illegal address")),
    32: _driver(said("an invalid or corrupted push buffer stream")),
    38: _driver(said("a driver firmware error")),
    43: _program(said("the GPU stopped processing: a program's fault")),
    44: _driver(said("a fault as the GPU switched between programs")),
    45: Xid(said("a preemptive clean-up after another error"), XidSide.FOLLOWS),
    46: _hardware(said("the GPU stopped processing and must be reset")),
    48: _hardware(said("a double-bit ECC error")),
    54: _hardware(said("auxiliary power is not connected to the GPU")),
    56: _hardware(said("a display engine error")),
    57: _hardware(said("an error in programming the video memory interface")),
    58: _hardware(said("an unstable video memory interface")),
    61: _hardware(said("an internal micro-controller breakpoint")),
    62: _hardware(said("an internal micro-controller halt")),
    63: _noticed(said("a row of GPU memory was remapped or a page retired")),
    64: _hardware(said("a row of GPU memory could not be remapped or a page not retired")),
    69: _program(said("a graphics engine class error")),
    74: _hardware(said("an NVLink error")),
    79: _hardware(said("the GPU has fallen off the bus")),
    80: _hardware(said("corrupted data was sent to the GPU")),
    92: _noticed(said("a high rate of single-bit ECC errors")),
    93: _noticed(said("the GPU's InfoROM was written too often")),
    94: _hardware(said("a contained uncorrectable ECC error")),
    95: _hardware(said("an uncontained uncorrectable ECC error")),
    109: _driver(said("a context switch timed out")),
    110: _hardware(said("a security fault")),
    119: _hardware(said("the GPU's system processor did not answer in time")),
    120: _hardware(said("an error of the GPU's system processor")),
    121: _noticed(said("a corrected error of the link between chips")),
    122: _hardware(said("an SPI read or write error of the GPU")),
    123: _hardware(said("an SPI read or write error of the GPU")),
    124: _hardware(said("an SPI read or write error of the GPU")),
    125: _hardware(said("an error of the GPU's InfoROM")),
    136: _hardware(said("an NVLink link training error")),
    137: _program(said("an NVLink fault: a kernel accessed an illegal address of a peer")),
    140: _hardware(said("an unrecovered ECC error")),
    141: _driver(said("an error of CUDA's fast path")),
    143: _hardware(said("an error of GPU initialization")),
    144: _hardware(said("an NVLink error (SAW)")),
    145: Xid(said("an NVLink error (RLW), as a rule one of the link's other end"), XidSide.REMOTE),
    146: _hardware(said("an NVLink error (TLW)")),
    147: _noticed(said("an NVLink error (TREX)")),
    148: _noticed(said("an NVLink error (NVLPW)")),
    149: _hardware(said("an NVLink error (NETIR): a link is down or its signal is bad")),
    150: _hardware(said("an NVLink error (MSE)")),
    151: _hardware(said("a key rotation error")),
    154: _hardware(said("the GPU needs a reset, or the node a reboot, before it is used again")),
    155: _hardware(said("an NVLink was taken down by software")),
    156: _hardware(said("a resource retirement event")),
    157: _hardware(said("a resource retirement failure")),
    158: _hardware(said("a fatal time-out of the GPU")),
    159: _hardware(said("an error of the link between processor and GPU")),
    160: _noticed(said("a channel of GPU memory was retired")),
    161: _noticed(said("a channel of GPU memory could not be retired")),
    167: _hardware(said("a fatal time-out on PCIe")),
    168: _hardware(said("part of the GPU's memory is damaged and left out")),
    169: _hardware(said("an internal micro-controller halt")),
    171: _hardware(said("an uncorrectable DRAM error")),
    172: _hardware(said("an uncorrectable SRAM error")),
}
ADVICE = 154
"""States what another Xid needs for recovery, and is the root of nothing."""
UNKNOWN = Xid(
    said("an error of the GPU that this version of serried has no words for"), XidSide.DRIVER
)
