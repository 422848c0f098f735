"""No number and no unit is cut, however narrow the terminal: every table at 80 and 100 columns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from serried.runtime.check.report import CheckReport, GroupTimes
from serried.views.cli import output
from serried.views.runs.check_text import times_table
from tests.conftest import Call
from tests.trace.recorded_run import Run

JOB = "--world-size 16 --tp 2 --pp 4"
PLAN = f"plan --model llama3-8b --cluster h100 {JOB} --sequence 8192 --global-batch 64"
COMMANDS = (
    f"groups {JOB}",
    f"groups {JOB} --all",
    f"groups {JOB} --rank 5",
    f"groups {JOB} --advice",
    f"groups {JOB} --parameters 7.5B --zero 3",
    PLAN,
    f"{PLAN} --explain",
    "search --model llama3-8b --cluster h100 --world-size 8 --sequence 4096 --global-batch 32",
    "schedule",
    "schedule 1f1b --pp 4 --microbatches 8",
    "schedule zb-h1 --pp 4 --microbatches 8",
    "collective",
    "collective all-reduce --ranks 16",
    "collective all-reduce --ranks 16 --algorithm all",
    "trace stats RUN",
    "trace compare RUN RUN",
    "diagnose RUN",
)
FIGURE = re.compile(r"(?<![\w.])\d[\d,]*\.\d{1,3} ?([A-Za-zµ%]{1,5}(?:/s)?)(?!\w)")
"""A number with a point, and the unit behind it, whole or cut."""
UNITS = {
    *("ns", "us", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"),
    *("TiB", "kB/s", "MB/s", "GB/s", "TB/s", "x", "%", "M", "ticks", "slots"),
}
WORDS = {"and", "of", "in", "to", "at", "for", "zb", "as", "G", "e"}
"""Words that stand behind a number and are no unit."""
CUT = re.compile(r"\d…|\d ?[A-Za-zµ]{1,3}…")
"""A figure that breaks off."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Run(pp=2, tp=2, num_microbatches=4).write(tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_narrow_terminal_cuts_no_number_and_no_unit(
    command: str, serried: Call, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = command.replace("RUN", str(run)).split()
    for width in (100, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        answer = serried(*words)
        assert answer.code in (0, 1), answer.err
        text = _joined(answer.out)
        assert {each for each in FIGURE.findall(text) if len(each) < 4} <= UNITS | WORDS
        assert not CUT.search(text), f"at {width} columns"


LANGUAGES = ("en", "zh")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_on_a_terminal_no_line_is_wider_than_it_so_that_none_breaks_within_a_number(
    command: str, lang: str, serried: Call, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    words = command.replace("RUN", str(run)).split()
    for width in (100, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = ANSI.sub("", serried(*words, "--lang", lang).out).splitlines()
        # A word that is longer than the terminal, such as an address, has no place to break.
        wide = [each for each in lines if cell_len(each) > width and " " in each.strip()]
        assert wide == [], f"at {width} columns"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_times_of_a_check_go_on_below_where_a_terminal_is_narrow(
    lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    times = np.array([[1.6e6, 1.6e6], [1.8e6, 1.8e6]])
    timed = GroupTimes(
        "tp_dp_cp", "reduce_scatter", 1_050_000, (16, 16), (2, 2), times, times[:, 0], 1.5e6
    )
    report = CheckReport((), "gloo", "2.13.0", (1_050_000,), 2, {}, {}, (timed,), (), ())
    text = ANSI.sub("", output.rendered(times_table(report, lang)))
    assert all(cell_len(line) <= 80 for line in text.splitlines())
    assert "1.70 ms" in text
    assert "1.50 ms" in text
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert len(blocks) > 1
    assert {block[1].split("MB")[0] for block in blocks} == {blocks[0][1].split("MB")[0]}


def _joined(text: str) -> str:
    """Returns a text whose sentences are not broken by lines: a figure may stand at an end."""
    return re.sub(r"\s*\n\s*", " ", text)


def test_figures_are_recognised_whole_or_cut() -> None:
    assert FIGURE.findall("1.60 ms, 12.5 GB/s; 4.0 x, 1.60 m of 16") == ["ms", "GB/s", "x", "m"]
    assert "m" not in UNITS | WORDS
    assert CUT.search("1.60 m… 4") and not CUT.search("[0 2] [1 3] …")
