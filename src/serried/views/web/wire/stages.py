"""Where each rank stands in its pipeline, as payloads of layouts, plans and traces tell it."""

from __future__ import annotations

import numpy as np

from serried.mesh import Layout, Ranks


def stages(layout: Layout) -> Ranks:
    """Returns each rank's stage, its rank within its pipeline: shape (world_size,)."""
    stage = np.zeros(layout.world_size, dtype=np.int32)
    if "pp" in layout.dims:
        groups = layout.groups(layout.dims["pp"]).ascending
        starts = np.repeat(groups.bounds[:-1], groups.sizes)
        inside = groups.members < layout.world_size
        stage[groups.members[inside]] = (np.arange(len(groups.members)) - starts)[inside]
    return stage


def pipelines(layout: Layout) -> Ranks:
    """Returns the pipeline of each rank: its group of dimension pp, or its own number."""
    if "pp" in layout.dims:
        return layout.groups(layout.dims["pp"]).index(layout.world_size)
    return np.arange(layout.world_size, dtype=np.int32)
