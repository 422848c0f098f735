"""Reads launch configs that users already have, and writes ones for the same layout.

The reader never runs what it reads. ``read`` takes text, ``read_among`` several texts,
``read_path`` a file or a folder; ``write`` gives the text of a file for a target of ``TARGETS``,
proved by reading it back.
"""

from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.facts import Found, Missing
from serried.launch.read import read, read_among, read_path
from serried.launch.write import TARGETS, write

__all__ = [
    "TARGETS",
    "Found",
    "LaunchConfig",
    "Missing",
    "read",
    "read_among",
    "read_path",
    "write",
]
