"""Every golden comes back through ``serried groups``: kinds, members, and order of groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.frameworks import FRAMEWORKS
from tests.conftest import Call
from tests.frameworks.goldens import FOLDER, arguments

GOLDENS = sorted(FOLDER.glob("*.json"))
UNIONS = ("internlm", "internevo", "nanotron")
"""Their goldens are unions over ranks, so the order of groups is not the package's."""
REMARKS = ("ranks_without_group", "zero_rank_repr")
"""What a golden says beside its kinds."""


def read(path: Path) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return golden


def framework(words: list[str]) -> str:
    return words[words.index("--framework") + 1].partition("@")[0]


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_a_golden_comes_back_equal_or_refused(path: Path, serried: Call) -> None:
    golden = read(path)
    words = arguments(golden)
    if framework(words) not in FRAMEWORKS:
        pytest.skip("not registered yet")
    shown = serried("groups", *words, "--format", "json")
    if "error" in golden:
        assert shown.code == 2, shown.out
        assert shown.err.startswith("serried: ")
        return
    assert shown.code == 0, shown.err
    made = json.loads(shown.out)["groups"]
    expected = {kind: ranks for kind, ranks in golden["groups"].items() if kind not in REMARKS}
    assert sorted(made) == sorted(expected)
    assert [kind for kind in made if kind in golden.get("created", made)] == [
        *golden.get("created", made)
    ]
    if "within" in golden:
        told = serried("groups", *words, "--rank", str(golden["rank"]), "--format", "json")
        assert json.loads(told.out)["within"] == golden["within"]
    arranged = sorted if framework(words) in UNIONS else list
    for kind, ranks in expected.items():
        assert arranged(made[kind]) == arranged(ranks), kind
