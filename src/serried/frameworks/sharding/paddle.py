"""What Paddle shards: stages 1 to 3 over its sharding groups, of which data groups join copies.

Read from paddlepaddle 3.3.1 (fleet/meta_optimizers/dygraph_optimizer/dygraph_sharding_optimizer.py,
fleet/meta_parallel/sharding/group_sharded_stage2.py and _stage3.py) and PaddleNLP 2.8.1
(trainer/training_args.py: "pipeline parallel is not compatible for sharding stage2 or stage3").
"""

from __future__ import annotations

from serried.finding import Sentence, said
from serried.frameworks.sharding.cuts import by_stage, named, over, refuse_in_pipeline
from serried.mesh import Layout
from serried.mesh.sharding import Sharding, StateCuts
from serried.mesh.sizes import Sizes


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes as they are; raises InputError for stages 2 and 3 in pipelines."""
    refuse_in_pipeline("paddle", sizes.zero, sizes.pp, "PaddleNLP trainer/training_args.py")
    return sizes


def sharding(layout: Layout) -> Sharding:
    """Returns what Paddle's ranks share: what sharding groups hold, stage 1 where none is given."""
    cut = over(layout, "sharding")
    stage = int(layout.settings.get("zero", 1 if cut.ranks > 1 else 0))
    copies = named(layout, "dp_sep", "data")
    data = over(layout, copies, "sharding")
    return Sharding(
        stage,
        by_stage(
            stage,
            weights="dense",
            data=data,
            cut=cut,
            across=copies if data.ranks > cut.ranks else "",
        ),
        spelled=f"sharding: stage{stage}" if stage else "",
        source=f"paddlepaddle {layout.version} distributed/fleet/meta_parallel/sharding",
        expert=_expert(layout, stage),
        notes=_notes(layout, stage, cut.ranks),
    )


def _expert(layout: Layout, stage: int) -> StateCuts | None:
    kind = named(layout, "moe_sharding")
    if not kind or layout.sizes.get("ep", 1) == 1:
        return None
    data = over(layout, kind)
    return by_stage(stage, weights="expert", data=data, cut=data)


def _notes(layout: Layout, stage: int, ranks: int) -> tuple[Sentence, ...]:
    if not stage or ranks > 1:
        return ()
    return (
        said(
            "sharding groups have one rank, so nothing is shared; give sharding_degree, such as "
            "{dp}",
            dp=layout.sizes["dp"],
        ),
    )
