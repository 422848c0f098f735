"""What nanotron shards: the optimizer's state over dp_pg, at zero_stage 1.

Read from nanotron 0.4 (helpers.py: ZeroDistributedOptimizer over parallel_context.dp_pg) and main
2411b022 (optim/zero.py: every parameter is cut over the group, then all-gathered after the step).
"""

from __future__ import annotations

from serried.finding import said
from serried.frameworks.sharding.cuts import by_stage, named, over, refuse_unknown
from serried.mesh import Layout
from serried.mesh.sharding import Sharding
from serried.mesh.sizes import Sizes


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes as they are; raises InputError for stages 2 and 3."""
    cure = said("optimizer.zero_stage: 1 shards the optimizer's state")
    refuse_unknown("nanotron", version, sizes.zero, (0, 1), cure)
    return sizes


def sharding(layout: Layout) -> Sharding:
    """Returns what nanotron's ranks share; with context parallelism it is cut over dp alone."""
    stage = int(layout.settings.get("zero", 0))
    data = over(layout, named(layout, "dp_cp_pg", "dp_pg"))
    cut = over(layout, "dp_pg")
    across = "cp_pg" if data.ranks > cut.ranks else ""
    return Sharding(
        stage,
        by_stage(stage, weights="dense", data=data, cut=cut, across=across),
        spelled=f"optimizer.zero_stage: {stage}",
        source=f"nanotron {layout.version} src/nanotron/optim/zero.py",
    )
