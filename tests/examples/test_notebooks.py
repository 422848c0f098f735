"""The gallery of notebooks is run by a real kernel, without a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """Runs all notebooks, and returns what each of them shows: outputs, or what went wrong."""
    runner = [sys.executable, str(Path(__file__).with_name("notebook_runner.py")), str(FOLDER)]
    done = subprocess.run(runner, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_gallery_runs_without_a_browser(shown: dict[str, Any]) -> None:
    assert sorted(shown) == NAMES
    assert {name: each for name, each in shown.items() if isinstance(each, str)} == {}
    for outputs in shown.values():
        bundles = [output["data"] for output in outputs if "data" in output]
        pictures = [each["text/html"] for each in bundles if "<svg" in each.get("text/html", "")]
        live = [each for each in bundles if "application/vnd.jupyter.widget-view+json" in each]
        assert pictures
        # Each live view stands below a still one, which an exported notebook keeps.
        assert len(live) == len([each for each in pictures if "data-serried" in each])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_kept_without_what_it_showed(name: str) -> None:
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert [cell for cell in notebook["cells"] if cell.get("outputs")] == []


@pytest.mark.parametrize("page", ["notebook.md", "notebook.zh.md"])
def test_the_page_names_every_notebook_of_the_gallery(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert sorted(re.findall(r"examples/notebooks/(\w+)\.ipynb", text)) == NAMES
