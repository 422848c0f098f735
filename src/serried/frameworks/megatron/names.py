"""Megatron's module variables: what each kind is called before 0.14, and from which version on.

Read from ``_…_GROUP`` in megatron/core/parallel_state.py of each version. A variable that no
call fills with groups of its own holds those of another kind (the second column then names
both), as ``_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP`` holds dp_cp with one optimizer instance.
"""

from __future__ import annotations

from dataclasses import replace

from serried.frameworks.framework import at_least, choice
from serried.mesh import ByLowest, Chain, GroupKind, ModulesKind
from serried.mesh.sizes import Sizes

ALWAYS, NEVER = "0", "99"
VARIABLES = (
    ("_TENSOR_MODEL_PARALLEL_GROUP", ("tp",), ALWAYS, NEVER),
    ("_GTP_WEIGHT_REMAT_GROUP", ("gtp_remat",), "0.19", NEVER),
    ("_PIPELINE_MODEL_PARALLEL_GROUP", ("pp",), ALWAYS, NEVER),
    ("_MODEL_PARALLEL_GROUP", ("mp",), ALWAYS, NEVER),
    ("_MODEL_AND_EXPERT_PARALLEL_GROUP", ("tp_ep_pp",), "0.8", "0.10"),
    ("_EMBEDDING_GROUP", ("embd",), ALWAYS, NEVER),
    ("_POSITION_EMBEDDING_GROUP", ("pos_embd",), ALWAYS, NEVER),
    ("_DATA_PARALLEL_GROUP", ("dp",), ALWAYS, NEVER),
    ("_DATA_PARALLEL_GROUP_GLOO", ("dp_gloo",), ALWAYS, NEVER),
    ("_TENSOR_AND_DATA_PARALLEL_GROUP", ("tp_dp",), ALWAYS, NEVER),
    ("_EXPERT_GTP_WEIGHT_REMAT_GROUP", ("expt_gtp_remat",), "0.19", NEVER),
    ("_EXPERT_MODEL_PARALLEL_GROUP", ("ep",), "0.6", NEVER),
    ("_TENSOR_AND_EXPERT_PARALLEL_GROUP", ("tp_ep",), ALWAYS, "0.10"),
    ("_DATA_MODULO_EXPERT_PARALLEL_GROUP", ("expt_dp",), ALWAYS, "0.10"),
    ("_DATA_MODULO_EXPERT_PARALLEL_GROUP_GLOO", ("expt_dp_gloo",), "0.6", "0.10"),
    ("_DATA_MODULO_EXPERT_PARALLEL_GROUP_WITH_CP", ("expt_dp_cp",), "0.8", "0.10"),
    ("_DATA_MODULO_EXPERT_PARALLEL_GROUP_WITH_CP_GLOO", ("expt_dp_cp_gloo",), "0.8", "0.10"),
    ("_EXPERT_TENSOR_PARALLEL_GROUP", ("expt_tp",), "0.10", NEVER),
    ("_EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", ("tp_ep",), "0.10", NEVER),
    ("_EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", ("tp_ep_pp",), "0.10", NEVER),
    (
        "_EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP_WITH_EGTP",
        ("tp_ep_pp_with_egtp_remat",),
        "0.19",
        NEVER,
    ),
    ("_EXPERT_DATA_PARALLEL_GROUP", ("expt_dp",), "0.10", NEVER),
    ("_EXPERT_DATA_PARALLEL_GROUP_GLOO", ("expt_dp_gloo",), "0.10", NEVER),
    (
        "_INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
        ("intra_expt_dp", "expt_dp"),
        "0.13",
        NEVER,
    ),
    (
        "_INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP_GLOO",
        ("intra_expt_dp_gloo", "expt_dp_gloo"),
        "0.13",
        NEVER,
    ),
    ("_INTER_PARTIAL_EXPERT_DATA_PARALLEL_GROUP", ("inter_dist_opt",), "0.13", NEVER),
    (
        "_EXPERT_DATA_PARALLEL_GROUP_WITH_GTP_REMAT",
        ("expt_dp_gtp_remat", "expt_dp"),
        "0.19",
        NEVER,
    ),
    (
        "_INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP_WITH_GTP_REMAT",
        ("expt_dp_gtp_remat", "intra_expt_dp", "expt_dp"),
        "0.19",
        NEVER,
    ),
    ("_CONTEXT_PARALLEL_GROUP", ("cp",), ALWAYS, NEVER),
    ("_DATA_PARALLEL_GROUP_WITH_GTP_REMAT", ("dp_gtp_remat", "dp"), "0.19", NEVER),
    (
        "_DATA_PARALLEL_GROUP_WITH_CP_WITH_GTP_REMAT",
        ("dp_cp_gtp_remat", "dp_cp"),
        "0.19",
        NEVER,
    ),
    (
        "_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP_WITH_GTP_REMAT",
        ("dp_cp_gtp_remat", "intra_dp_cp", "dp_cp"),
        "0.19",
        NEVER,
    ),
    ("_DATA_PARALLEL_GROUP_WITH_CP", ("dp_cp",), ALWAYS, NEVER),
    ("_DATA_PARALLEL_GROUP_WITH_CP_AG", ("dp_cp_ag",), "0.16", NEVER),
    ("_DATA_PARALLEL_GROUP_WITH_CP_GLOO", ("dp_cp_gloo",), ALWAYS, NEVER),
    ("_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", ("intra_dp_cp", "dp_cp"), "0.10", NEVER),
    (
        "_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP_GLOO",
        ("intra_dp_cp_gloo", "dp_cp_gloo"),
        "0.10",
        NEVER,
    ),
    ("_INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", ("inter_dp_cp",), "0.10", "0.13"),
    ("_TENSOR_AND_CONTEXT_PARALLEL_GROUP", ("tp_cp",), "0.8", NEVER),
    ("_TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP", ("tp_dp_cp",), ALWAYS, NEVER),
    ("_INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP", ("intra_dist_opt",), "0.13", NEVER),
)
"""Variable, the kinds it may hold (the first there is), first version, first version without."""

DP_CP = ("dp_cp", "_DATA_PARALLEL_GROUP_WITH_CP")
"""The data group with context parallelism folded in, under either naming."""

HIERARCHY = "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L"
LEVELS = "_HIERARCHICAL_CONTEXT_PARALLEL_GROUPS"


RECORDED = {
    "intra_expt_dp": "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L0",
    "intra_expt_dp_gloo": "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_GLOO_L0",
    "inter_dist_opt": "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L1",
    "inter_dist_opt_gloo": "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_GLOO_L1",
}
"""Descriptions (group_desc) of groups made by level, as NCCL logs and flight recorders show."""


def named(kinds: tuple[GroupKind, ...], sizes: Sizes, version: str) -> tuple[GroupKind, ...]:
    """Returns the kinds under the names of the version, or under those asked for."""
    names = choice(sizes, "names", ("default", "fields", "variables", "recorded"))
    if names == "recorded":
        return as_recorded(kinds)
    if names == "fields" or (names == "default" and at_least(version, "0.14")):
        return kinds
    return as_variables(kinds, version)


def as_recorded(kinds: tuple[GroupKind, ...]) -> tuple[GroupKind, ...]:
    """Returns the kinds by field, those made by level under their descriptions."""
    return tuple(
        replace(
            kind,
            name=RECORDED.get(kind.name, kind.name),
            twin_of=RECORDED.get(kind.twin_of, kind.twin_of) if kind.twin_of else None,
        )
        for kind in kinds
    )


def as_variables(kinds: tuple[GroupKind, ...], version: str) -> tuple[GroupKind, ...]:
    """Returns the kinds under the names of the module's variables, still in order of creation.

    A variable that holds the groups of another one follows it.
    """
    variables = _variables({kind.name for kind in kinds}, version)
    renamed: list[GroupKind] = []
    for kind in kinds:
        field, bracket, place = kind.name.partition("[")
        if kind.name.startswith(HIERARCHY):
            level = kind.name.removeprefix(HIERARCHY)
            renamed.append(_by_rank(replace(kind, name=f"{LEVELS}[{level}]")))
        elif bracket:
            # The variable is a list there: ranks of a separate encoder are in many pipelines.
            renamed.append(replace(kind, name=f"{variables[field][0]}[{place}"))
        else:
            twin = variables.get(kind.twin_of or "", [None])[0]
            renamed += [
                _by_rank(replace(kind, name=variable, twin_of=twin))
                for variable in variables.get(kind.name, ())
            ]
    return tuple(renamed)


def _variables(there: set[str], version: str) -> dict[str, list[str]]:
    """Returns the variables that hold each kind, the one named after it first."""
    found: dict[str, list[str]] = {}
    for variable, fields, since, until in VARIABLES:
        # Without its own kind a variable holds the next one's groups: with one optimizer instance
        # the intra-partial data groups are the whole ones.
        field = next((name for name in fields if name in there), None)
        if field is None or not at_least(version, since) or at_least(version, until):
            continue
        held = found.setdefault(field, [])
        held.insert(0 if field == fields[0] else len(held), variable)
    return found


def _by_rank(kind: GroupKind) -> GroupKind:
    """Returns ``kind`` with its groups in the order in which ranks, from 0 on, hold them."""
    if isinstance(kind, ModulesKind):
        return replace(kind, parts=tuple(_by_rank(part) for part in kind.parts))
    if kind.is_in_rank_order:
        return kind
    return replace(kind, rule=Chain((kind.rule, ByLowest())) if kind.rule else ByLowest())


def dims_of(kinds: tuple[GroupKind, ...]) -> dict[str, str]:
    """Returns which kind carries each dimension, under either naming."""
    names = {kind.name for kind in kinds}
    both = {
        "dp": ("dp", "_DATA_PARALLEL_GROUP"),
        "tp": ("tp", "_TENSOR_MODEL_PARALLEL_GROUP"),
        "pp": ("pp", "_PIPELINE_MODEL_PARALLEL_GROUP"),
        "cp": ("cp", "_CONTEXT_PARALLEL_GROUP"),
        "ep": ("ep", "_EXPERT_MODEL_PARALLEL_GROUP"),
    }
    found = {dim: next((n for n in pair if n in names), None) for dim, pair in both.items()}
    return {dim: name for dim, name in found.items() if name}


def name_of(field: str, variable: str, kinds: tuple[GroupKind, ...]) -> str:
    """Returns which of its two names a kind has among ``kinds``."""
    return field if any(kind.name == field for kind in kinds) else variable
