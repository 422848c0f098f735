"""The core, installed alone in a fresh environment, works and names the extras it lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a fresh venv with nothing but the core, and returns its ``bin`` folder."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-compile", str(ROOT)], check=True)
    return folder / "bin"


def call(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([bare / "serried", *words], capture_output=True, text=True, check=False)


def test_the_core_prints_groups_without_torch_or_a_web_stack(bare: Path) -> None:
    answer = call(bare, "groups", "--world-size", "16", "--tp", "2", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["groups"]["tp"][0] == [0, 1]


def test_the_core_brings_neither_torch_nor_a_web_stack(bare: Path) -> None:
    code = (
        "import importlib.util as u; print([n for n in ('torch', 'starlette') if u.find_spec(n)])"
    )
    found = subprocess.run(
        [bare / "python", "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_help_lists_every_command_without_the_extras(bare: Path) -> None:
    answer = call(bare, "--help")
    assert answer.returncode == 0, answer.stderr
    for command in ("groups", "train", "trace", "serve", "demo"):
        assert f"\n  {command} " in answer.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("train", "--nproc", "2"), "pip install 'serried[torch]'"),
        (("serve",), "pip install 'serried[web]'"),
        (("demo",), "pip install 'serried[torch,web]'"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    bare: Path, words: tuple[str, ...], extra: str
) -> None:
    answer = call(bare, *words)
    assert answer.returncode == 3
    assert extra in answer.stderr
    assert "Traceback" not in answer.stderr
