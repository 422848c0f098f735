"""The commands of ``sh`` blocks that start ranks run, one after the other as a page prints them.

`make test` gives training four steps instead of its own number; `make soak` runs all as they stand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Call
from tests.test_printed import BLOCKS, SCRIPT, need

STARTS = ("serried train", "serried check")
MADE = "a run, which the command above it makes"
LONG = (
    *("README.md", "runtime.md", "parallelism.md", "ranks.md"),
    *("check.md", "retime.md", "checkpoints.md"),
)
"""Pages of many commands, ranks or layers: `make test` checks their options alone."""


def own(block: tuple[str, ...]) -> list[str]:
    """Returns the commands of a block that need nothing but what stands above them."""
    return [each for each in block if need(each) in (None, MADE)]


RUNS = {
    block: name
    for block, name in BLOCKS.items()
    if any(each.startswith(STARTS) and need(each) is None for each in block)
}


def run_block(block: tuple[str, ...], serried: Call, *, steps: int | None) -> None:
    """Runs a block, each training of it ``steps`` further than the one before."""
    Path("train.sh").write_text(SCRIPT, encoding="utf-8")
    done_steps = 0
    for command in own(block):
        words = command.partition(" > ")[0].partition(" | ")[0].split()[1:]
        if steps and words[0] == "train" and "--emit" not in words:
            done_steps += steps
            words += ["--steps", str(done_steps), "--trace-steps", f"0:{done_steps}"]
        done = serried(*words)
        assert done.code == 0, (command, done.err)


@pytest.mark.parametrize(
    "block",
    [each for each, name in RUNS.items() if not name.startswith(LONG)],
    ids=[name for name in RUNS.values() if not name.startswith(LONG)],
)
def test_a_printed_block_runs_its_ranks_for_four_steps(
    block: tuple[str, ...], serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_block(block, serried, steps=4)


@pytest.mark.soak
@pytest.mark.parametrize("block", RUNS, ids=RUNS.values())
def test_a_printed_block_runs_its_ranks_as_it_stands(
    block: tuple[str, ...], serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_block(block, serried, steps=None)
