"""Random configurations: serried and the real package make the same groups, or both refuse.

Not part of ``make test``; ``make oracle`` runs it (marker ``oracle``). Packages come from PyPI
into SERRIED_ORACLE_CACHE; SERRIED_ORACLE_CASES says how many configurations each one gets.
"""

from __future__ import annotations

import json
import os
import random
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import Call
from tests.frameworks.goldens import arguments
from tests.frameworks.test_goldens import REMARKS, UNIONS, framework
from tests.oracle import colossalai, deepspeed, devicemesh, internevo, megatron, nanotron, paddle

CASES = int(os.environ.get("SERRIED_ORACLE_CASES", "60"))
SEED = int(os.environ.get("SERRIED_ORACLE_SEED", "0"))
ORACLES: tuple[ModuleType, ...] = (
    *(megatron, internevo, deepspeed, devicemesh, colossalai, nanotron, paddle),
)
PAIRS = [(oracle, version) for oracle in ORACLES for version in oracle.VERSIONS]

pytestmark = pytest.mark.oracle


def difference(golden: dict[str, Any], serried: Call) -> str:
    """Returns how serried's answer differs from ``golden``; nothing where they agree."""
    words = arguments(golden)
    shown = serried("groups", *words, "--format", "json")
    if "error" in golden:
        return "" if shown.code == 2 else f"accepted, but the package says {golden['error']}"
    if shown.code:
        return f"refused: {shown.err}"
    made = json.loads(shown.out)["groups"]
    expected = {kind: ranks for kind, ranks in golden["groups"].items() if kind not in REMARKS}
    if set(made) != set(expected):
        return f"kinds differ: {sorted(set(made) ^ set(expected))}"
    if within := golden.get("within"):
        asked = serried("groups", *words, "--rank", str(golden["rank"]), "--format", "json")
        told = json.loads(asked.out)["within"]
        if any(told[kind] != places for kind, places in within.items()):
            return f"within: {told} is not {within}"
    created = [kind for kind in made if kind in golden.get("created", ())]
    if created != golden.get("created", created):
        return f"made in another order: {created} is not {golden['created']}"
    arranged = sorted if framework(words) in UNIONS else list
    for kind, ranks in expected.items():
        if arranged(made[kind]) != arranged(ranks):
            return f"{kind}: {made[kind]} is not {ranks}"
    return ""


@pytest.mark.parametrize(
    ("oracle", "version"), PAIRS, ids=lambda each: getattr(each, "__name__", each)
)
def test_random_configurations_agree_with_the_package(
    oracle: ModuleType, version: str, serried: Call
) -> None:
    rng = random.Random(SEED)
    wrong = []
    for _ in range(CASES):
        golden = oracle.golden(oracle.random_config(rng, version), version)
        found = difference(golden, serried)
        if found:
            wrong.append(f"{golden['config']}\n    {found}")
    assert not wrong, f"{len(wrong)} of {CASES}:\n" + "\n".join(wrong[:5])
