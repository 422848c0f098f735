"""Reads launch configs that users already have, and writes ones for the same layout.

The reader never runs what it reads. ``read`` takes text, ``read_among`` several texts,
``read_path`` a file or a folder; ``write`` gives the text of a file for a target of ``TARGETS``,
proved by reading it back.
"""

from serried.frameworks.launch.config import LaunchConfig
from serried.frameworks.launch.found import Found, Missing
from serried.frameworks.launch.read import read, read_among, read_path
from serried.frameworks.launch.write import TARGETS, write

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
