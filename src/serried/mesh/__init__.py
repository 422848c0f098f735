"""Named arrays of ranks, the group kinds over them, and where ranks sit. numpy only."""

from serried.mesh.groups import Groups
from serried.mesh.kind import FixedKind, GroupKind, ModulesKind
from serried.mesh.layout import Layout
from serried.mesh.mesh import Mesh, Ranks
from serried.mesh.placement import Placement
from serried.mesh.rank import RankPlace, place_of
from serried.mesh.rule import (
    Braid,
    ByFirst,
    ByLowest,
    Chain,
    Chunks,
    Ends,
    First,
    Held,
    Leading,
    Level,
    Pairs,
    Pick,
    Rule,
    Runs,
    Slices,
    Strips,
    Windows,
)

__all__ = [
    "Braid",
    "ByFirst",
    "ByLowest",
    "Chain",
    "Chunks",
    "Ends",
    "First",
    "FixedKind",
    "GroupKind",
    "Groups",
    "Held",
    "Layout",
    "Leading",
    "Level",
    "Mesh",
    "ModulesKind",
    "Pairs",
    "Pick",
    "Placement",
    "RankPlace",
    "Ranks",
    "Rule",
    "Runs",
    "Slices",
    "Strips",
    "Windows",
    "place_of",
]
