"""Damaged files of every tool are read, or refused in one sentence: never anything else."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from serried.errors import SerriedError
from serried.trace.formats.megatron.timers import timer_log
from serried.trace.formats.reading import read_trace
from serried.views.cli.main import serried as command_line
from serried.views.sentences import say
from tests.trace.mutants import NEEDS_ARROW, SAMPLES, Files, laid_down, mutant

LONGEST_SENTENCE = 2_000


def commands(name: str, folder: Path, made: Path) -> list[list[str]]:
    """Returns what is asked of a sample: stats first, then all that reads or writes a trace."""
    of_paddle = [["paddle", "--log_dir", str(folder), "-o", str(made)]]
    return [
        ["stats", str(folder)],
        ["stats", str(folder), "--format", "json", "--by", "rank,stage"],
        ["stats", str(folder), "--lang", "zh"],
        *(["merge", str(folder), "-o", str(made / f"a{end}")] for end in (".json", ".pftrace")),
        *([["merge", str(folder), "-o", str(made / "a.store")]] if name not in NO_ARROW else []),
        ["compare", str(folder), str(folder)],
        ["compare", str(folder), "--plan"],
        *(of_paddle if name.startswith("paddle") else []),
    ]


def asked(words: Sequence[str]) -> None:
    """Runs one command of ``serried trace``; raises what is no sentence of one line."""
    try:
        command_line.main(["trace", *words], prog_name="serried", standalone_mode=False)
    except SerriedError as refused:
        for told in (str(refused), say(refused, "zh")):
            assert "\n" not in told and len(told) < LONGEST_SENTENCE, told
    except click.ClickException as refused:
        assert "\n" not in refused.format_message()


try:
    import pyarrow  # noqa: F401

    NO_ARROW: tuple[str, ...] = ()
except ImportError:
    NO_ARROW = tuple(SAMPLES)


def hold(name: str, seeds: range, folder: Path) -> None:
    """Asks two things of every mutant of a sample."""
    if name in NEEDS_ARROW:
        pytest.importorskip("pyarrow")
    files, place, made = SAMPLES[name](folder / "sample"), folder / "mutant", folder / "made"
    for seed in seeds:
        draw = random.Random(f"{name} {seed}")
        for each in (place, made):
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir()
        laid_down(mutant(name, files, draw), place)
        first, *others = commands(name, place, made)
        for words in (first, draw.choice(others)):
            try:
                asked(words)
            except Exception as error:
                raise AssertionError((name, seed, words[0], repr(error))) from error


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_read_as_it_stands(tmp_path: Path, name: str) -> None:
    if name in NEEDS_ARROW:
        pytest.importorskip("pyarrow")
    laid_down(SAMPLES[name](tmp_path / "sample"), tmp_path / "whole")
    assert timer_log([tmp_path / "whole"]) or len(read_trace([tmp_path / "whole"]).spans)


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    hold(name, range(4), tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", SAMPLES)
def test_thousands_of_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    hold(name, range(1000), tmp_path)


@pytest.mark.parametrize("seen", ["pipe", "device", "folder", "loop"])
@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_no_file_in_a_folder_is_passed_over_or_refused(
    tmp_path: Path, name: str, seen: str
) -> None:
    if name in NEEDS_ARROW:
        pytest.importorskip("pyarrow")
    files = SAMPLES[name](tmp_path / "sample")
    place = tmp_path / "special"
    laid_down(files, place)
    victim = place / _last_but_ours(files)
    victim.unlink()
    if seen == "pipe":
        os.mkfifo(victim)
    elif seen == "folder":
        victim.mkdir()
    else:
        victim.symlink_to("/dev/zero" if seen == "device" else victim)
    asked(["stats", str(place)])


def _last_but_ours(files: Files) -> str:
    """Returns a file of a sample that is not the only one to say what it is, if there is one."""
    return sorted(files)[-1]


def test_a_pipe_for_pings_or_for_a_later_attempt_stops_nobody(tmp_path: Path) -> None:
    for name, victim in (("recordings", "clock-00000.jsonl"), ("restarted", "rank-00000.spans")):
        place = tmp_path / name
        laid_down(SAMPLES[name](tmp_path / f"sample of {name}"), place)
        (place / victim).unlink()
        os.mkfifo(place / victim)
        asked(["stats", str(place)])


@pytest.mark.parametrize("word", ["stats", "merge", "compare"])
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/random", "pipe"])
def test_a_device_or_a_pipe_is_refused_as_what_it_is(tmp_path: Path, path: str, word: str) -> None:
    if path == "pipe":
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
    more = {"merge": ["-o", str(tmp_path / "a.json")], "compare": ["--plan"]}.get(word, [])
    with pytest.raises(SerriedError, match=r"is a named pipe|is a device or a socket"):
        command_line.main(["trace", word, path, *more], standalone_mode=False)


def test_half_a_pair_of_surrogates_is_refused_or_written_as_a_question_mark(
    tmp_path: Path,
) -> None:
    files = SAMPLES["recordings"](tmp_path / "sample")
    files["rank-00000.names"] = b'"\\ud800"\n'
    laid_down(files, tmp_path / "names")
    assert read_trace([tmp_path / "names"]).names == ("?",)
    whole = files["rank-00001.spans"]
    files["rank-00001.spans"] = whole.replace(b'"host": "b", ', b'"host":"\\ud8",', 1)
    laid_down(files, tmp_path / "host")
    with pytest.raises(SerriedError, match=r"the header of .* cannot be read"):
        read_trace([tmp_path / "host"])


def test_timers_before_any_iteration_line_are_refused_or_told(tmp_path: Path) -> None:
    whole = SAMPLES["timers of all"](tmp_path)["all.log"]
    lines = whole.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if b"times across ranks" in line)
    after = b"".join(line for line in lines[first:] if b"elapsed time per iteration" not in line)
    last = next(line for line in lines[::-1] if b"elapsed time per iteration" in line)
    for text in (after, after + last):
        (tmp_path / "run.log").write_bytes(text)
        asked(["stats", str(tmp_path / "run.log")])
