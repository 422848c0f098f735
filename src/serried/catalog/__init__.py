"""Models, GPUs and clusters as data: TOML beside this module, each figure with its source."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


@cache
def figures(name: str) -> dict[str, Any]:
    """Returns what ``name``.toml of this folder says, read on first use.

    >>> figures("gpus")["h100"]["memory_gb"]
    80
    """
    import tomllib  # what a table of groups says needs none of it

    text = (Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
