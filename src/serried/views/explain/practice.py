"""What holds in a layout's groups under its settings: its framework's facts, and what follows.

``frameworks`` says what each framework does; here stand what most have in common, the facts that
follow from others, and the names of the kinds that sentences speak of.
"""

from __future__ import annotations

from collections.abc import Mapping

from serried.frameworks import FRAMEWORKS
from serried.mesh import Layout
from serried.views.explain.frameworks import PRACTICES, SHARDED, WHOLE, Practice, of_program


def practice(layout: Layout) -> Practice:
    """Returns what the framework of ``layout`` does under its settings.

    >>> from serried.frameworks import Sizes, layout
    >>> practice(layout("deepspeed", Sizes(16, zero=3))).facts["holds"]
    'shards'
    >>> practice(layout("deepspeed", Sizes(16))).facts["holds"]
    'open'
    """
    of_framework = PRACTICES.get(layout.framework, of_program)(layout)
    facts = {**COMMON, **of_framework.facts}
    names = {**_names(layout), **of_framework.names}
    holds = facts["holds"]
    facts.setdefault("gradients", holds)
    facts.setdefault("repeats", _over_context(facts["holds"], "copies", "shards", "open"))
    facts.setdefault("combines", _over_context(facts["holds"], "dp_cp", "shards", "dp_cp"))
    # The right side wins: what a framework says itself goes before what follows by rule.
    facts = {"rows": _rows(layout), "splits_short": facts["splits"]} | _derived(facts) | facts
    return Practice(facts, names)


def _derived(facts: Mapping[str, str]) -> dict[str, str]:
    """Returns the variants that follow from what data, tensor and context ranks do."""
    holds, tensor, way = facts["holds"], facts["tensor"], facts["context"]
    is_plain = facts["splits"] in ("plain", "program")
    cut = dict.fromkeys(("part_of_tp", "part_of_tp_pp", "fits"), "plain" if is_plain else "isp")
    # A replica is 'whole' even where its ranks share out the optimizer state (as in ZeRO 1 and
    # 2), for each has all the weights; of these the legend says 'state'.
    replica = "whole" if holds in WHOLE else "sharded" if holds in SHARDED else "open"
    once = {"gradients": "gradients", "kept": "kept", "kept_hybrid": "kept"}
    plainly = {"whole": "whole", "sharded": "shards", "open": "open"}[replica]
    ways = {"ring": "ring", "gather": "gather", "heads": "heads"}
    return (
        cut
        | _of_notes(facts, replica)
        | {
            "replica": replica,
            "all_experts": replica,
            "buckets": once.get(holds, plainly),
            "legend_dp": "state" if replica == "whole" and holds != "whole" else plainly,
            "legend_tp": "either" if tensor == "program" else tensor,
            "legend_cp": ways.get(way, "open"),
        }
    )


def _of_notes(facts: Mapping[str, str], replica: str) -> dict[str, str]:
    """Returns the variants that only notes on single kinds speak in."""
    # A note on one kind has fewer variants than the fact that it goes by, so each fact is folded
    # onto what that note can say.
    holds, splits, moe = facts["holds"], facts["splits"], facts["experts"]
    moe = "alltoall" if moe == "program" else moe
    plainly = {"whole": "whole", "sharded": "shards", "open": "open"}[replica]
    is_kept, is_isp = holds.startswith("kept"), splits.startswith("isp")
    sums = "state" if holds in ("state", "gradients") else "open" if "open" in holds else plainly
    dealt = {"whole": "whole", "hybrid": "shards", "shards": "shards"}.get(holds, "owners")
    staged = holds if holds in ("whole", "state", "gradients") else plainly
    return {
        "sums": "whole" if holds == "weight" else sums,
        **dict.fromkeys(("ep_note", "expt_tp_note", "tp_ep_note"), moe),
        "replicate_note": "hybrid"
        if "hybrid" in holds
        else "whole"
        if plainly != "shards"
        else "alone",
        "shard_note": "kept" if is_kept else "whole" if holds == "whole" else "shards",
        "sp_note": "alone",
        "data_note": "isp" if is_isp else "plain",
        "zero1_note": dealt,
        "weight_note": "isp" if splits == "isp" else "alone",
        "weight_data_note": splits if is_isp else "plain",
        "copies_note": {"hybrid": "hybrid", "sharing": "open", "shards": "alone"}.get(
            holds, "whole"
        ),
        "sharding_note": staged,
    }


COMMON = {"splits": "plain", "experts": "alltoall", "grid": "inside", "etp": "none"} | {
    "expert_gradients": "combined",
    "tied": "other",
    "context": "plain",
    "again": "always",
    "pipeline": "plain",
    "precision": "none",
}
"""What most frameworks do."""


def _names(layout: Layout) -> dict[str, str]:
    """Returns the names of the kinds of each dimension; other names stand for it by default."""
    data = layout.dims.get("dp", "dp")
    dims = {dim: layout.dims.get(dim, dim) for dim in ("tp", "pp", "cp", "ep")}
    title = FRAMEWORKS[layout.framework].title
    return dims | {
        **dict.fromkeys(("data", "grads", "shards", "copies"), data),
        "tokens": dims["ep"],
        "order": layout.order,
        "title": title,
        "etp_factor": "",
    }


def _over_context(holds: str, whole: str, sharded: str, other: str) -> str:
    if holds == "program":
        return "program"
    return whole if holds in WHOLE else sharded if holds in SHARDED else other


def _rows(layout: Layout) -> str:
    """Returns whether a stage is a run of neighbouring ranks: pp is the slowest axis."""
    kind = next((k for k in layout.kinds if k.name == layout.dims.get("pp")), None)
    mesh = layout.meshes.get(kind.mesh) if kind else None
    if kind is None or mesh is None or not kind.axes:
        return "none"
    # Axes stand slowest first, and one of size 1 moves no rank. Under megatron's tp-cp-ep-dp-pp
    # stages of 16 ranks at pp=2 are 0-7 and 8-15; with dp outside pp a stage lies apart.
    slowest = next((axis for axis, size in mesh.sizes.items() if size > 1), kind.axes[0])
    return "together" if slowest in kind.axes else "apart"
