"""Named arrays of ranks, the group kinds over them, and where ranks sit. numpy only."""

from serried.mesh.kind import Chunks, Ends, First, GroupKind, Groups, Level, Rule, Runs, Windows
from serried.mesh.layout import Layout
from serried.mesh.mesh import Mesh, Ranks
from serried.mesh.placement import Placement
from serried.mesh.rank import RankPlace, place_of

__all__ = [
    "Chunks",
    "Ends",
    "First",
    "GroupKind",
    "Groups",
    "Layout",
    "Level",
    "Mesh",
    "Placement",
    "RankPlace",
    "Ranks",
    "Rule",
    "Runs",
    "Windows",
    "place_of",
]
