"""What a job does beside its dimensions: Ulysses, ZeRO++, MiCS, weight parallelism and the like.

A feature is there where the layout has its groups, with more than one rank in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serried.mesh import Layout
from serried.views.explain.content import line, localized, paragraphs, table
from serried.views.explain.filling import filled
from serried.views.explain.frameworks import Practice, fields_of

SEQUENCES = ("sequence", "sequence_parallel", "sp")
"""Kinds whose ranks share sequences outside any dimension."""


def features(layout: Layout, done: Practice, lang: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields a heading and its paragraphs for each feature that ``layout`` has."""
    for name, more in _found(layout, done, lang):
        written = table(localized("features", lang)[name])
        known = done._replace(names={**done.names, **more})
        text = filled(str(written["text"]), known, lang)
        yield line(written["heading"]), paragraphs(text)


Found = tuple[str, Mapping[str, str]]


def _found(layout: Layout, done: Practice, lang: str) -> Iterator[Found]:
    yield from _sequences(layout, done, lang)
    yield from _zero(layout, lang)
    if layout.framework == "megatron":
        yield from _megatron(layout)
    if _size(layout, "weight") > 1:
        names = {"weight": "weight", "weight_data": "weight_data"}
        yield "weight", names | {"weight_size": str(_size(layout, "weight"))}
    yield from _expert_tensor(layout, done, lang)


def _size(layout: Layout, kind: str) -> int:
    """Returns the ranks of the largest group of a kind; 0 where the kind is not made."""
    made = any(each.name == kind and each.mesh != "hosts" for each in layout.kinds)
    return int(max(layout.groups(kind).sizes, default=0)) if made else 0


def _sequences(layout: Layout, done: Practice, lang: str) -> Iterator[Found]:
    spans = {"spans": done.names["grads"]}
    for kind in SEQUENCES:
        if _size(layout, kind) < 2:
            continue
        # Only ColossalAI has this setting; elsewhere such a group means Ulysses. Its other modes,
        # split_gather and ring, are told with tensor parallelism.
        mode = layout.settings.get("sequence_parallelism_mode", "all_to_all")
        if mode == "all_to_all":
            yield "ulysses", spans | {"sequence": kind}
        elif mode == "ring_attn":
            inner = {"en": ", in two rings, inner_ring and inter_ring", "zh": "，分 inner_ring 和"}
            inner["zh"] += " inter_ring 两层"
            rings = inner[lang] if _size(layout, "inner_ring") else ""
            yield "ring_attention", spans | {"sequence": kind, "rings": rings}
    if _size(layout, "sep") > 1:
        yield "sep", spans | {"sequence": "sep"}
    if _size(layout, "intra_window") > 1 or _size(layout, "inter_window") > 1:
        plane = ("head", "context", "intra_window", "inter_window")
        yield "plane", {name: name for name in plane}


def _zero(layout: Layout, lang: str) -> Iterator[Found]:
    """Yields ZeRO++ and MiCS, which are DeepSpeed's."""
    if layout.framework != "deepspeed":
        return
    if _size(layout, "zero_param_intra") > 1:
        ranks = str(_size(layout, "zero_param_intra"))
        kind = {"zero_param_intra": "zero_param_intra"}
        yield "hpz", kind | {"zero_hpz_partition_size": ranks}
    # With names=keys each group of qgZ is a kind of its own (local_0, local_1 …, global_0 …), of
    # which the first stands for all.
    local = next((name for name in ("local", "local_0") if _size(layout, name)), "")
    if local:
        across = local.replace("local", "global")
        yield "qgz", {"local": local, "global": across if _size(layout, across) else "-"}
    if _size(layout, "shard"):
        copies = {
            "en": "Ranks of replicate hold the same part; an all-reduce of its gradient keeps "
            "these copies equal.",
            "zh": "replicate 的 rank 持有同一部分，用 all-reduce 归约它的梯度，使各副本一致。",
        }
        yield "mics", {"mics_copies": copies[lang] if _size(layout, "replicate") else ""}
    if _size(layout, "inter_node"):
        yield "mics_levels", {"inter_node": "inter_node", "intra_node": "intra_node"}


def _megatron(layout: Layout) -> Iterator[Found]:
    """Yields what Megatron's settings add: weight shards, optimizer instances, hybrid context."""
    fields = fields_of(layout)
    gtp = [
        fields[kind]
        for kind in ("gtp_remat", "expt_gtp_remat")
        if kind in fields and max(layout.groups(fields[kind]).sizes) > 1
    ]
    if gtp:
        yield "gtp", {"gtp": ", ".join(gtp)}
    instances = layout.settings.get("num_distributed_optimizer_instances", "1")
    if "intra_dp_cp" in fields and instances != "1":
        yield "instances", {"intra_dp_cp": fields["intra_dp_cp"], "instances": instances}
    # HYBRID_DP_CP_GROUP_4 is made of groups of 4 ranks: such a name ends in their size.
    hybrid = [name.rsplit("_", 1)[1] for name in fields if name.startswith("HYBRID_DP_CP_GROUP_")]
    if hybrid:
        yield "hybrid_cp", {"hybrid_sizes": ", ".join(hybrid)}


def _expert_tensor(layout: Layout, done: Practice, lang: str) -> Iterator[Found]:
    """Yields that experts are split as well, where there are experts."""
    fields = {each.name: each.name for each in layout.kinds}
    if layout.framework == "megatron":
        fields = fields_of(layout)
    known = ("expt_tp", "etp", "expert_tensor", "expert_weight")
    kind = next((fields[name] for name in known if name in fields), "")
    if not kind or _size(layout, kind) < 2 or layout.sizes.get("ep", 1) < 2:
        return
    # InternEvo has expert_weight under isp and expert_tensor under its other modes; what Megatron
    # does with the parts also depends on its token dispatcher.
    how = "apart"
    if kind == "expert_weight":
        how = "weights"
    elif kind == "expert_tensor":
        how = "reduce"
    elif layout.framework == "megatron" and done.facts["experts"] != "alltoall":
        how = done.facts["experts"]
    written = table(localized("features", lang)["expert_split"])
    split = filled(str(written[how]).strip("\n"), done, lang)
    ranks = str(_size(layout, kind))
    yield "etp", {"expert_tensor": kind, "etp_size": ranks, "expert_split": split}
