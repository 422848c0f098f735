"""Cuts of a layout's groups, and the refusals that the rules of all frameworks share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from serried.errors import InputError, listed
from serried.finding import Sentence
from serried.mesh import Layout
from serried.mesh.sharding import STATES, WHOLE, Cut, StateCuts, Weights

FROM_STAGE = {"optimizer": 1, "gradients": 2, "parameters": 3}
"""The first stage that cuts each state (ZeRO, arXiv 1910.02054, section 5)."""


def group_size(layout: Layout, kind: str) -> int:
    """Returns how many ranks the group of ``kind`` has that the first rank is in."""
    found = layout.kind(kind).of(0, layout.meshes)
    return len(found[0]) if found else 1


def named(layout: Layout, *wanted: str) -> str:
    """Returns the first of some kinds that the layout has; "" when it has none."""
    there = {kind.name for kind in layout.kinds}
    return next((name for name in wanted if name in there), "")


def over(layout: Layout, *kinds: str) -> Cut:
    """Returns the cut over the groups of ``kinds``, of which "" and those of one rank cut nothing.

    >>> from serried.frameworks import Sizes, layout
    >>> over(layout("megatron", Sizes(16, tp=2, pp=4)), "dp_cp")
    Cut(over=('dp_cp',), ranks=2)
    """
    sizes = {kind: group_size(layout, kind) for kind in kinds if kind}
    # A kind of one rank cuts nothing, but says where the ranks would stand that shared it.
    cutting = tuple(kind for kind, size in sizes.items() if size > 1) or tuple(sizes)[:1]
    return Cut(cutting, math.prod(sizes.values()))


def by_stage(
    stage: int,
    *,
    weights: Weights,
    data: Cut,
    cut: Cut,
    across: str = "",
    near: Cut = WHOLE,
    is_kept: bool = False,
) -> StateCuts:
    """Returns what a stage of the paper cuts: 1 the optimizer's state, 2 gradients too, 3 all."""
    cuts: Mapping[str, Cut] = {
        state: cut if stage >= FROM_STAGE[state] else Cut(cut.over, 1) for state in STATES
    }
    return StateCuts(
        weights,
        data,
        parameters=cuts["parameters"],
        gradients=cuts["gradients"],
        optimizer=cuts["optimizer"],
        across=across,
        near=near,
        is_kept=is_kept,
    )


def refuse_unknown(
    framework: str, version: str, stage: int | None, known: Sequence[int], cure: Sentence
) -> None:
    """Raises InputError for a stage that the framework does not have; ``cure`` says what does."""
    if stage is not None and stage not in known:
        raise InputError(
            "{framework} {version} has no ZeRO stage {stage}; it has {known}: {cure}",
            framework=framework,
            version=version,
            stage=stage,
            known=listed(known, last="and"),
            cure=cure,
        )


def refuse_in_pipeline(framework: str, stage: int | None, pp: int, source: str) -> None:
    """Raises InputError for stages 2 and 3 where the framework's pipelines take 0 and 1 alone."""
    if stage is not None and stage > 1 and pp > 1:
        raise InputError(
            "ZeRO stage {stage} does not go with pp={pp} in {framework}, whose pipelines keep the "
            "gradients of all microbatches whole ({source}); take stage 1 or 0, or pp=1",
            stage=stage,
            pp=pp,
            framework=framework,
            source=source,
        )
