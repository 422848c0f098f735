"""The job that cards speak of, and what each of them asks it: groups, nodes, the selected rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.mesh import Layout, Placement
from serried.mesh.rank import RankPlace, place_of
from serried.plan.job_plan import JobPlan
from serried.views.explain.frameworks import Practice

EXPERT_TENSOR = ("expt_tp", "etp", "expert_tensor", "tensor_expert", "expert_weight")
"""What frameworks call the groups over which each expert is split."""


@dataclass(frozen=True, eq=False)
class CardJob:
    """Holds the job that cards speak of."""

    layout: Layout
    placement: Placement
    done: Practice
    rank: int | None = None
    """The rank that is selected."""
    plan: JobPlan | None = None


def kind_of(key: str, layout: Layout) -> str:
    """Returns the kind of groups that a card is about; "" where the layout makes none.

    >>> from serried.frameworks import Sizes, layout
    >>> made = layout("megatron", Sizes(16, ep=4))
    >>> kind_of("etp", made), kind_of("dp", made)
    ('expt_tp', 'dp')
    """
    if key != "etp":
        return layout.dims.get(key, "")
    named = {kind.name for kind in layout.kinds}
    return next((name for name in EXPERT_TENSOR if name in named), "")


def nodes_spanned(job: CardJob, kind: str) -> int:
    """Returns the most nodes that a group of a kind stands on."""
    groups = job.layout.groups(kind)
    return int(np.max(job.placement.nodes_of(groups), initial=1))


def known(job: CardJob) -> RankPlace:
    """Returns the place of the rank that is selected."""
    return place_of(job.layout, job.placement, job.rank or 0)
