"""What ColossalAI's plugins shard: LowLevelZero's stages 1 and 2, and Gemini, which is stage 3.

Read from colossalai 0.5.0: booster/plugin/hybrid_parallel_plugin.py, moe_hybrid_parallel_plugin.py
(which takes stage 2 for 1), low_level_zero_plugin.py, gemini_plugin.py (shard_param_frac 1.0).

    hybrid            0, 1, 2   over dp, with sp folded in where sequences are split by it
    moe               0, 1      dense weights over dp, experts over moe_dp
    low_level_zero    1, 2      over inner_dp; extra_dp joins the copies
    gemini            3         over zero, in chunks; extra_dp joins the copies
"""

from __future__ import annotations

from serried.errors import InputError
from serried.finding import said
from serried.frameworks.sharding.cuts import by_stage, named, over
from serried.mesh import Layout
from serried.mesh.sharding import Sharding, StateCuts
from serried.mesh.sizes import Sizes

STAGE_OF_DATA = {"zero": 3, "inner_dp": 1}
"""The stage where none is given, by the kind that carries dp, which names the plugin."""


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes as they are; raises InputError for gemini at any stage but 3."""
    if sizes.options.get("plugin") == "gemini" and sizes.zero != 3:
        raise InputError(
            "gemini is ZeRO stage 3, and stage {stage} is asked for; low_level_zero has 1 and 2, "
            "hybrid 0, 1 and 2",
            stage=sizes.zero,
        )
    return sizes


def sharding(layout: Layout) -> Sharding:
    """Returns what the ranks of a plugin share."""
    kind = layout.dims["dp"]
    stage = int(layout.settings.get("zero", STAGE_OF_DATA.get(kind, 0)))
    experts = named(layout, "moe_dp")
    if experts:
        stage = min(stage, 1)
    mixed = next((each.name for each in layout.kinds if each.name.startswith("mixed_dp")), "")
    copies = named(layout, "extra_dp")
    cut = over(layout, mixed or kind)
    data = over(layout, mixed or kind, copies)
    across = copies if data.ranks > cut.ranks else ""
    return Sharding(
        stage,
        by_stage(stage, weights="dense", data=data, cut=cut, across=across),
        spelled="GeminiPlugin" if kind == "zero" else f"zero_stage={stage}",
        source=f"colossalai {layout.version} booster/plugin",
        expert=_expert(layout, stage, experts),
        padding=said("each bucket, or chunk of Gemini, is padded to a multiple of the ranks")
        if stage
        else None,
    )


def _expert(layout: Layout, stage: int, kind: str) -> StateCuts | None:
    if not kind:
        return None
    data = over(layout, kind)
    return by_stage(stage, weights="expert", data=data, cut=data)
