"""The commands of ``sh`` blocks do what they say: run as printed, or refused by nothing.

serried groups, schedule, trace …     run as they stand, in one folder for each page
serried train, check                  every option and size of them is checked by --emit
a program of the page                 is one that Python compiles, with a command that names it
a cluster, a server that stays …      listed here, each with what it needs
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Call
from tests.test_docs import PAGES, blocks

NEEDS = {
    "a cluster": ("MASTER_ADDR=", "torchrun ", "kill ", "echo 500:520", "export SERRIED_TRACE"),
    "a terminal beside it": ("node7$", "laptop$", "serried serve", "serried demo"),
    "a job that runs": ("serried diagnose --watch",),
    "an installation": ("pip install", "make ", "python -m"),
    "a trace or a service of the reader's own": (
        "serried trace stats log/",
        "serried trace merge profiles/",
        "serried trace stats profile/",
        "serried trace merge profile/",
        "serried trace stats trace-ST.parquet",
        "serried trace merge node0/run",
        "serried trace merge s3:",
        "serried trace merge /shared/run",
        "serried trace compare",
        "serried plan --from",
    ),
    "the program that stands above it": ("python ",),
    "a model of the reader's own": ("serried train --model",),
    "a run, which the command above it makes": (
        "serried trace merge runs/",
        "serried report runs/",
        "serried report logs/",
        "serried trace stats runs/",
        "serried export",
        "serried plan --calibrate",
    ),
    "ranks of its own for a minute": ("serried tune",),
    "a job that hangs or is slow": (
        "mkdir -p evidence",
        "py-spy dump",
        "serried collect",
        "serried diagnose evidence",
        "serried diagnose logs/",
        "serried diagnose runs/",
    ),
}
"""What is not run here, by how it begins."""
SCRIPT = "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2\n"
SLOW = pytest.mark.soak  # eight interpreters that load torch
PROGRAM = re.compile(r"# (\w+\.py)\n")


def commands(body: str) -> list[str]:
    """Returns a block's commands, each in one line and without its remark."""
    lines = re.sub(r" *\\\n *", " ", body).splitlines()
    bare = (re.split(r"\s+#\s", line)[0].strip() for line in lines)
    return [line for line in bare if line and not line.startswith("#")]


BLOCKS: dict[tuple[str, ...], str] = {}
"""Blocks by what they run: those of two languages differ in their remarks alone."""
for page, line, body in blocks("sh"):
    BLOCKS.setdefault(tuple(commands(body)), f"{page.name}:{line}")


def need(command: str) -> str | None:
    """Returns what a command needs that a test has not."""
    found = (what for what, starts in NEEDS.items() if command.startswith(starts))
    return next(found, None)


@pytest.mark.parametrize("block", BLOCKS, ids=BLOCKS.values())
def test_a_printed_block_runs_as_it_stands(
    block: tuple[str, ...], serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train.sh", "runs/train.sh"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(SCRIPT)
    Path("llama").mkdir()
    Path("llama/config.json").write_text('{"model_type": "llama", "num_hidden_layers": 2}')
    Path("other.yaml").write_text("compute_environment: LOCAL_MACHINE\nnum_processes: 8\n")
    for command in block:
        if need(command) is None:
            done = serried(*words_of(command))
            # A comparison that finds a difference ends with 1, and says nothing on stderr.
            assert done.code == 0 or (done.code, done.err) == (1, ""), (command, done.err)


def words_of(command: str) -> list[str]:
    """Returns the words of a command, where it starts ranks those that check it alone."""
    command = command.partition(" > ")[0].partition(" | ")[0]
    program, *words = shlex.split(command)
    assert program == "serried", f"{command} is neither run nor listed with what it needs"
    if words[0] in ("train", "check") and "--emit" not in words:
        words += ["--emit", "torchrun", "--gpus-per-node", ranks_of(words)]
    return words


def ranks_of(words: list[str]) -> str:
    """Returns how many ranks a command starts: by ``--nproc``, else by its pipeline."""
    for option in ("--nproc", "--pp"):
        if option in words:
            return words[words.index(option) + 1]
    return "8"


PROGRAMS = {named[1]: body for _, _, body in blocks("python") if (named := PROGRAM.match(body))}


@pytest.mark.parametrize("name", ["small_run.py", pytest.param("every_group.py", marks=SLOW)])
def test_a_printed_program_runs_by_the_command_below_it(name: str, tmp_path: Path) -> None:
    assert run_printed(name, tmp_path).stdout


@SLOW
def test_the_slow_rank_of_the_tutorial_is_the_one_that_is_named(
    serried: Call, tmp_path: Path
) -> None:
    run_printed("slow_loader.py", tmp_path)
    told = serried("diagnose", str(tmp_path / "runs" / "mine"))
    assert told.out.startswith("rank 1 on ") and "loading data" in told.out


@SLOW
def test_the_rank_that_hangs_the_tutorial_is_the_one_that_is_named(
    serried: Call, tmp_path: Path
) -> None:
    run_printed("hangs.py", tmp_path, code=1)
    told = serried("diagnose", str(tmp_path / "evidence"))
    assert told.out.startswith("rank 2 left out all_reduce of world and went on to barrier 11 ")


def run_printed(name: str, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a program of a page in a folder, by the command that the page prints."""
    (command,) = {each for block in BLOCKS for each in block if each.split()[-1] == name}
    (folder / name).write_text(PROGRAMS[name], encoding="utf-8")
    program, *words = command.split()
    started = [sys.executable, *(["-m", "torch.distributed.run"] if program == "torchrun" else [])]
    done = subprocess.run(
        [*started, *words], cwd=folder, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == code, done.stderr
    return done


def test_no_program_is_piped_into_an_interpreter() -> None:
    # A launcher's ranks, and those that Python starts, read their program from its file.
    assert not [name for block, name in BLOCKS.items() if any("<<" in each for each in block)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_program_of_a_page_compiles_and_a_command_names_it(page: Path) -> None:
    for own, _, body in blocks("python"):
        named = PROGRAM.match(body)
        if own == page and named:
            compile(body, named[1], "exec")
            assert re.search(rf"^(python|torchrun .*) {named[1]}$", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("start", [each for starts in NEEDS.values() for each in starts])
def test_what_is_listed_with_its_needs_is_printed(start: str) -> None:
    assert any(command.startswith(start) for block in BLOCKS for command in block)
