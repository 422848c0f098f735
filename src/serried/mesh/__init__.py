"""Named arrays of ranks, the group kinds over them, and where ranks sit. numpy only."""

from serried.mesh.groups import Groups
from serried.mesh.kind import FixedKind, GroupKind, ModulesKind
from serried.mesh.layout import PLAIN, Conventions, Layout
from serried.mesh.mesh import Mesh, Ranks
from serried.mesh.placement import Placement
from serried.mesh.rule import (
    ByFirst,
    ByLowest,
    Chain,
    Chunks,
    Ends,
    First,
    JoinRuns,
    JoinStrided,
    Leading,
    Level,
    Pick,
    RankWindows,
    RingPairs,
    Rule,
    Slices,
    Strides,
)

__all__ = [
    "PLAIN",
    "ByFirst",
    "ByLowest",
    "Chain",
    "Chunks",
    "Conventions",
    "Ends",
    "First",
    "FixedKind",
    "GroupKind",
    "Groups",
    "JoinRuns",
    "JoinStrided",
    "Layout",
    "Leading",
    "Level",
    "Mesh",
    "ModulesKind",
    "Pick",
    "Placement",
    "RankWindows",
    "Ranks",
    "RingPairs",
    "Rule",
    "Slices",
    "Strides",
]
