"""Each step of docs/your-model.md is a file that learns what the file before it did."""

from __future__ import annotations

import difflib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from serried.errors import InputError
from serried.runtime import cut, cut_over_tp, start

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "your_model"
STEPS = ["one_process", "data_parallel", "tensor_parallel", "three_axes", "resumed"]
RANKS = {"data_parallel": 2, "tensor_parallel": 2, "three_axes": 8, "resumed": 8}
APART = 2e-6
"""Relative: float32 keeps 6e-8 of a number, sums of another order differ by some of that, and six
updates of AdamW, which divides by small gradients, carry it on; 1.2e-7 was measured."""


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Imports the files as the scripts that they are: by their folder."""
    monkeypatch.syspath_prepend(FOLDER)
    yield {name: importlib.import_module(name) for name in STEPS}
    for name in STEPS:
        del sys.modules[name]


@pytest.mark.parametrize("names", [[*RANKS][:2], pytest.param([*RANKS], marks=pytest.mark.soak)])
def test_every_step_has_the_losses_of_one_process(
    step: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = step["one_process"].main()
    assert wanted[-1] < wanted[0] - 1  # it learns
    for name in names:
        found = start(step[name].main, ranks=RANKS[name], timeout_s=60)
        assert found == pytest.approx(wanted, rel=APART), name
    if "resumed" in names:
        kept = sorted(each.name for each in (tmp_path / "runs" / "your-model").iterdir())
        assert kept == ["step-000003", "step-000006", "trace"]


def test_the_page_shows_what_differs_between_the_files() -> None:
    shown = [_changes(before, after) for before, after in pairwise(STEPS)]
    for page in ("your-model.md", "your-model.zh.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert re.findall(r"^```diff\n(.*?)^```", text, re.DOTALL | re.MULTILINE) == shown, page


def _changes(before: str, after: str) -> str:
    """Returns the lines that go and come, and where, as ``diff`` prints them."""
    old, new = ((FOLDER / f"{name}.py").read_text().splitlines() for name in (before, after))
    changes = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in changes if not line.startswith("@@"))


@pytest.mark.soak  # eight interpreters that load torch
def test_a_step_runs_under_torchrun_as_it_stands(tmp_path: Path) -> None:
    torchrun = Path(sys.executable).with_name("torchrun")
    program = FOLDER / "three_axes.py"
    command = [str(torchrun), "--standalone", "--nproc-per-node", "8", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 6


def test_the_refusals_that_the_page_shows_are_those_of_its_model(
    step: dict[str, ModuleType],
) -> None:
    model, (inputs, _) = step["three_axes"].Model(), step["three_axes"].batch(range(2))
    page = (ROOT / "docs" / "your-model.md").read_text(encoding="utf-8")
    for at in (["layers.9"], 8):
        with pytest.raises(InputError) as refused:
            cut(model, at, inputs)
        assert f"`{refused.value}`" in page
    three: Any = type("ThreeRanks", (), {"size": lambda self: 3})()
    with pytest.raises(InputError) as refused:
        cut_over_tp(model, three, step["three_axes"].SPLIT.plan)
    assert f"| {refused.value} |" in page
