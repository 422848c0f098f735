"""Named arrays of ranks, the group kinds over them, and where ranks sit. numpy only."""

from serried.mesh.groups import Groups
from serried.mesh.kind import FixedKind, GroupKind, ModulesKind
from serried.mesh.layout import PLAIN, Habits, Layout
from serried.mesh.mesh import Mesh, Ranks
from serried.mesh.placement import Placement
from serried.mesh.rank import RankPlace, place_of
from serried.mesh.rule import (
    ByFirst,
    ByLowest,
    Chunks,
    Ends,
    First,
    Level,
    Pick,
    Ring,
    Rule,
    Slices,
    Strides,
)
from serried.mesh.rule_across import Braid, Chain, Held, Leading, Runs, Strips, Windows

__all__ = [
    "PLAIN",
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
    "Habits",
    "Held",
    "Layout",
    "Leading",
    "Level",
    "Mesh",
    "ModulesKind",
    "Pick",
    "Placement",
    "RankPlace",
    "Ranks",
    "Ring",
    "Rule",
    "Runs",
    "Slices",
    "Strides",
    "Strips",
    "Windows",
    "place_of",
]
