"""What is built holds all, installs with the oldest allowed packages, and names missing extras."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIP = [sys.executable, "-m", "pip"]
BUILD = [sys.executable, "-m", "build", "--no-isolation"]


def oldest(requirements: list[str]) -> list[str]:
    """Returns each requirement at its lower bound: ``numpy>=1.26`` becomes ``numpy==1.26``."""
    return [re.sub(r">=([0-9.]+).*", r"==\1", requirement) for requirement in requirements]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel of this checkout, by way of its sdist, and returns its path."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([*BUILD, "--outdir", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def installed(python: str, folder: Path, *packages: str | Path) -> Path:
    """Makes a venv of ``packages`` in ``folder`` and returns its ``bin`` folder."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    into = ["--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-compile"]
    subprocess.run([*PIP, *into, "--only-binary", ":all:", *map(str, packages)], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a venv of the core and the oldest packages that it allows."""
    folder = tmp_path_factory.mktemp("bare")
    return installed(sys.executable, folder, wheel, *oldest(PROJECT["dependencies"]))


def call(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([bare / "serried", *words], capture_output=True, text=True, check=False)


def test_the_core_prints_groups_without_torch_or_a_web_stack(bare: Path) -> None:
    answer = call(bare, "groups", "--world-size", "16", "--tp", "2", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["groups"]["tp"][0] == [0, 1]


def test_the_core_answers_what_the_page_asks_without_a_web_stack(bare: Path) -> None:
    answer = call(bare, "serve", "--ask", "rank?world_size=16&tp=2&rank=3")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["rank"] == 3


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


def test_the_wheel_made_from_the_sdist_holds_every_file_of_the_source(wheel: Path) -> None:
    source = ROOT / "src"
    ours = {
        str(path.relative_to(source))
        for path in (source / "serried").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == ours
    assert {"serried/py.typed", "serried/views/web/static/index.html"} <= ours


def test_the_wheel_stays_small(wheel: Path) -> None:
    # 2 MB were the aim. Python alone takes that: 1,060 files deflate to 2.0 MB, and their names and
    # hashes take another 0.2. The page has 0.45, the sentences in two languages 0.25.
    assert wheel.stat().st_size < 3_200_000


def test_the_oldest_allowed_packages_plan_a_job(bare: Path) -> None:
    job = ("--model", "llama3-8b", "--world-size", "8", "--tp", "8", "--sequence", "4096")
    answer = call(bare, "plan", *job, "--global-batch", "8", "--cluster", "h100")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("fits: ")


OTHERS = [f"python3.{minor}" for minor in range(11, 15) if minor != sys.version_info.minor]


@pytest.mark.soak
@pytest.mark.parametrize("name", OTHERS)
def test_other_pythons_install_it_and_draw_a_schedule(
    wheel: Path, tmp_path: Path, name: str
) -> None:
    python = other_python(name)
    if not python:
        pytest.skip(f"this machine has no {name}")
    bare = installed(python, tmp_path / "venv", f"{wheel}[web,trace]")
    answer = call(bare, "schedule", "zbv", "--stages", "4", "--microbatches", "8")
    assert answer.returncode == 0, answer.stderr
    assert call(bare, "serve", "--help").returncode == 0


def other_python(name: str) -> str | None:
    """Returns a Python that answers to ``name``; pyenv keeps some beside the chosen one."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{name.removeprefix('python')}.*/bin/python"))
    for path in [shutil.which(name), *map(str, kept)]:
        if path and subprocess.run([path, "-V"], capture_output=True, check=False).returncode == 0:
            return path
    return None


@pytest.mark.soak
def test_the_oldest_allowed_extras_open_the_page(wheel: Path, tmp_path: Path) -> None:
    extras = PROJECT["optional-dependencies"]
    needs = oldest([*PROJECT["dependencies"], *extras["web"], *extras["trace"], *extras["remote"]])
    bare = installed(sys.executable, tmp_path / "venv", wheel, *needs, "httpx")
    code = (
        "import httpx, threading, uvicorn\n"
        "from serried.views.web.gate import Gate\n"
        "from serried.views.web.opening.desk import OpeningDesk\n"
        "from serried.views.web.server import application, listen\n"
        "with listen('127.0.0.1', 0) as port_of:\n"
        "    port = port_of.getsockname()[1]\n"
        "    app = application(OpeningDesk((), (), ()), Gate('127.0.0.1', port, None))\n"
        "    asked = uvicorn.Config(app, log_level='error', ws='none', lifespan='off')\n"
        "    server = uvicorn.Server(asked)\n"
        "    thread = threading.Thread(target=server.run, kwargs={'sockets': [port_of]})\n"
        "    thread.start()\n"
        "    print(httpx.get(f'http://127.0.0.1:{port}/').status_code)\n"
        "    server.should_exit = True\n"
        "    thread.join()\n"
    )
    answer = subprocess.run(
        [bare / "python", "-c", code], capture_output=True, text=True, check=False
    )
    assert answer.stdout.split() == ["200"], answer.stderr
