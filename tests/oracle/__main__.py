"""``python -m tests.oracle``: makes the goldens again from the packages on PyPI.

Goldens of packages that are not there (Megatron 0.4 and 0.17 on, InternLM tags, InternEvo's
develop branch, nanotron main) are frozen: they are named and left as they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.frameworks.goldens import FOLDER
from tests.oracle import colossalai, deepspeed, devicemesh, internevo, megatron, nanotron, paddle

TIMES = ("seconds", "new_group_calls", "ignored", "sizes", "ranks_without_group")
"""What a golden tells beside its groups; kept as it was."""


def remade(golden: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the golden as its package makes it today, None where it is frozen."""
    package, version = golden["oracle"].split(" ")[:2]
    config = golden["config"]
    if package in ("torch", "torchtitan", "accelerate"):
        label = "torch" if package == "torch" else f"{package} {version}"
        return devicemesh.golden(config, label) if label in devicemesh.VERSIONS else None
    oracles = {
        "megatron-core": megatron,
        "InternEvo": internevo,
        "deepspeed": deepspeed,
        "colossalai": colossalai,
        "nanotron": nanotron,
        "paddlepaddle": paddle,
    }
    oracle = oracles.get(package)
    known = oracle is not None and version in oracle.VERSIONS
    return oracle.golden(config, version) if oracle and known else None


def differs(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Tells whether the groups, or the fact of a refusal, have changed."""
    if "error" in old or "error" in new:
        return ("error" in old) != ("error" in new)
    kept = {kind: sorted(ranks) for kind, ranks in old["groups"].items() if kind in new["groups"]}
    return kept != {kind: sorted(ranks) for kind, ranks in new["groups"].items()}


def main(write: bool) -> int:
    """Makes every golden again and says how each one fared; returns how many changed."""
    changed = 0
    for path in sorted(FOLDER.glob("*.json")):
        old = json.loads(path.read_text(encoding="utf-8"))
        new = remade(old)
        state = "frozen" if new is None else "changed" if differs(old, new) else "same"
        print(f"{state:8} {path.stem}")  # noqa: T201  a command of its own
        if state == "changed" and new is not None:
            changed += 1
            if write:
                _replace(path, {**{k: v for k, v in old.items() if k in TIMES}, **new})
    return changed


def _replace(path: Path, golden: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(1 if main("--write" in sys.argv) and "--write" not in sys.argv else 0)
