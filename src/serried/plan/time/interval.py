"""Between which times a step lies, nine times in ten: from the residuals of cross-validation.

    ln(measured / predicted) of fits that saw neither the row's configuration, nor its model, its
    GPU type or its table
      ─> by kind of job and by how familiar it is: nine in ten lie within a half width
      ─> wider for each doubling of a size beyond the most that was measured

Experts and adapters are known less well than dense models, GPU types and software that nobody
measured least. Fitted to jobs of at most 1,024 GPUs, constants are off by 4.6 % there, by 9.5 % at
4,096 to 8,192 and by 11.7 % beyond: about 0.4 of the width more with each doubling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serried.plan.time.chips import generation, kind
from serried.plan.time.constants import Constants, shipped
from serried.plan.time.experience import FAMILIARITIES, Experience, Familiarity, JobMark
from serried.plan.time.jobs import RECIPES, STACKS, Column, Jobs

WIDENED = 0.4
"""The part of its width by which an interval is wider for each doubling of a size."""
UNTOLD = (0.3, 0.3, 0.4, 0.6)
"""Half widths of a kind of job that no residuals are told of."""


@dataclass(frozen=True)
class Beyond:
    """Holds a size of a job that is beyond the most that was measured."""

    size: str
    asked: int
    most: int


def marks_of(jobs: Jobs) -> list[JobMark]:
    """Returns the mark of each job."""
    count = jobs.cluster.size
    columns = [
        np.broadcast_to(each, count).astype(np.int64)
        for each in (jobs.hidden, jobs.ffn, jobs.experts, jobs.recipe, jobs.stack)
    ]
    kinds = np.broadcast_to(np.where(jobs.is_lora > 0, 2, np.where(jobs.is_moe, 1, 0)), count)
    found = []
    for row, (hidden, ffn, experts, recipe, stack) in enumerate(zip(*columns, strict=True)):
        gpu = jobs.clusters[int(jobs.cluster[row])].gpu
        found.append(
            JobMark(
                f"{hidden}/{ffn}/{experts}",
                kind(gpu),
                generation(gpu),
                STACKS[stack],
                {"bf16": 16, "nvfp4": 4}.get(RECIPES[recipe], 8),
                ("dense", "moe", "lora")[int(kinds[row])],
            )
        )
    return found


def sizes_of(jobs: Jobs) -> Mapping[str, Column]:
    """Returns the sizes that what was measured has a most of, one column each."""
    gpus = jobs.tp * jobs.cp * jobs.pp * jobs.dp
    return {
        "gpus": gpus,
        "fsdp": np.where(jobs.is_fsdp > 0, jobs.shard_ranks, 0),
        "tp": jobs.tp,
        "cp": jobs.cp,
        "pp": jobs.pp,
        "ep": jobs.ep,
        "sequence": jobs.sequence,
    }


def experience_of(jobs: Jobs) -> Experience:
    """Returns what was seen of jobs that were measured."""
    most = {name: int(np.max(each)) for name, each in sizes_of(jobs).items()}
    return Experience(frozenset(marks_of(jobs)), most)


def beyond(jobs: Jobs, row: int, constants: Constants | None = None) -> tuple[Beyond, ...]:
    """Returns the sizes of one job that are beyond the most that was measured."""
    most = (constants or shipped()).experience.most
    count = jobs.cluster.size
    asked = {name: int(np.broadcast_to(each, count)[row]) for name, each in sizes_of(jobs).items()}
    return tuple(
        Beyond(name, size, most[name])
        for name, size in asked.items()
        if name in most and size > max(1, most[name])
    )


def familiarity(jobs: Jobs, constants: Constants | None = None) -> list[Familiarity]:
    """Returns how familiar each job is to what the constants were fitted to."""
    known = (constants or shipped()).experience
    return [known.of(mark) for mark in marks_of(jobs)]


def half_widths(jobs: Jobs, constants: Constants | None = None) -> Column:
    """Returns within which part of the logarithm nine of ten steps lie, one a job."""
    known = constants or shipped()
    widths = [
        known.residuals.get(mark.kind, UNTOLD)[FAMILIARITIES.index(known.experience.of(mark))]
        for mark in marks_of(jobs)
    ]
    return np.array(widths) * widened(jobs, known)


def widened(jobs: Jobs, constants: Constants | None = None) -> Column:
    """Returns how many times as wide intervals are for sizes beyond the most that was measured."""
    most = (constants or shipped()).experience.most
    doublings = np.zeros(jobs.cluster.size)
    for name, each in sizes_of(jobs).items():
        if name in most:
            doublings = doublings + np.log2(np.maximum(1.0, each / max(1, most[name])))
    return 1.0 + WIDENED * doublings


def intervals(
    jobs: Jobs, steps: Column, constants: Constants | None = None
) -> tuple[Column, Column]:
    """Returns the least and the most that each step takes, nine times in ten, in seconds."""
    width = half_widths(jobs, constants)
    return steps * np.exp(-width), steps * np.exp(width)
