"""What the constants were fitted to, as far as it tells how much a prediction may be off.

alike   model, GPU type, software, format and kind of job were measured together
apart   GPU type and format were, and the software, but not with this model
gpu     no step of this GPU type was measured in this format; of its generation some were
foreign no step of this generation, or under this software

most    the most of each size among what was measured: GPUs, ranks that share weights, degrees
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Familiarity = Literal["alike", "apart", "gpu", "foreign"]
FAMILIARITIES: tuple[Familiarity, ...] = ("alike", "apart", "gpu", "foreign")


@dataclass(frozen=True)
class JobMark:
    """Holds what of a job is compared with what was measured.

    >>> mark = JobMark("4096/14336/0", "h100", "hopper", "megatron", 16, "dense")
    >>> JobMark.of_text(mark.text) == mark
    True
    """

    model: str
    """Widths of stream and feed-forward, and experts."""
    gpu: str
    generation: str
    stack: str
    """The software, one of ``jobs.STACKS``."""
    bits: int
    """What linear layers are multiplied in."""
    kind: str
    """dense, moe or lora."""

    @property
    def text(self) -> str:
        """The mark as a line of the constants' file."""
        told = (self.model, self.gpu, self.generation, self.stack, self.bits, self.kind)
        return " ".join(map(str, told))

    @classmethod
    def of_text(cls, text: str) -> JobMark:
        """Returns the mark of a line; raises ValueError for what is none."""
        model, gpu, generation, stack, bits, kind = text.split()
        return cls(model, gpu, generation, stack, int(bits), kind)


@dataclass(frozen=True)
class Experience:
    """Holds the jobs that were measured.

    >>> seen = Experience(frozenset({JobMark("4096/14336/0", "h100", "hopper", "jax", 8, "dense")}))
    >>> seen.of(JobMark("4096/14336/0", "h200", "hopper", "jax", 8, "dense"))
    'gpu'
    >>> seen.of(JobMark("4096/14336/0", "h100", "hopper", "jax", 16, "dense"))
    'gpu'
    """

    marks: frozenset[JobMark] = frozenset()
    most: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def _gpus(self) -> frozenset[tuple[str, int]]:
        return frozenset((each.gpu, each.bits) for each in self.marks)

    @cached_property
    def _generations(self) -> frozenset[str]:
        return frozenset(each.generation for each in self.marks)

    @cached_property
    def _stacks(self) -> frozenset[str]:
        return frozenset(each.stack for each in self.marks)

    def of(self, mark: JobMark) -> Familiarity:
        """Returns how familiar a job is."""
        if mark in self.marks:
            return "alike"
        if mark.generation not in self._generations or mark.stack not in self._stacks:
            return "foreign"
        return "apart" if (mark.gpu, mark.bits) in self._gpus else "gpu"

    def joined(self, other: Experience) -> Experience:
        """Returns what both have seen."""
        names = {*self.most, *other.most}
        most = {name: max(self.most.get(name, 0), other.most.get(name, 0)) for name in names}
        return Experience(self.marks | other.marks, most)
