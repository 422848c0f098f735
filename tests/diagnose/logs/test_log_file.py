"""Logs as files: packed, wide, cut, binary, with other ends of lines, read in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from serried.diagnose.evidence import log_file
from serried.diagnose.evidence.log_file import BLOCK, LONGEST_LINE, OFTEN, LogFile
from serried.diagnose.evidence.text import reader
from serried.diagnose.evidence.wrapped import unwrapped
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

TROUBLE = b"step 1\nstep 2\n[rank3]: ValueError: bad label\n"


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        bz2.compress,
        lzma.compress,
        lambda data: data.replace(b"\n", b"\r"),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le"),
        lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"),
        lambda data: data.replace(b"step 2", b"\x1b[31mstep\xff 2"),
    ],
)
def test_a_log_is_read_however_it_is_written(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "job.log").write_bytes(pack(TROUBLE))
    cause = diagnosed(gather([tmp_path])).causes[0]
    assert (cause.kind, cause.ranks, cause.quotes[0].line) == ("exception", (3,), 3)


def test_lines_are_counted_over_the_borders_of_blocks(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"step\r\n" * (BLOCK // 3) + TROUBLE)
    log = LogFile(path, "long.log")
    assert [line.quote.line for line in log.lines() if "Error" in line.text] == [BLOCK // 3 + 3]


def test_a_log_is_never_held_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"x" * (3 * BLOCK) + b" ValueError\n" + TROUBLE)
    kept = [len(line.text) for line in LogFile(path, "long.log").lines()]
    assert kept and max(kept) <= LONGEST_LINE


def test_no_pattern_starts_anew_at_each_letter_of_a_long_word() -> None:
    folder = Path(reader.__file__).parent
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    opens_with_any_word = re.compile(
        r"""Pattern\(\s*"\w+",\s*\(?r"(?:\(\?P<\w+>)?(?:\\[wS]|\[\\w[^]]*\])\+"""
    )
    assert opens_with_any_word.search('Pattern("x", r"(?P<host>\\S+): task")')
    assert not opens_with_any_word.search(code)


def test_a_binary_file_is_passed_over_and_said(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF\0\0\0Error\n" * 40)
    found = diagnosed(gather([tmp_path]))
    assert not found.found
    assert "holds no text" in str(found.notes[0])


def test_a_packed_log_that_breaks_off_is_read_so_far_and_said(tmp_path: Path) -> None:
    whole = gzip.compress(TROUBLE * 4000, compresslevel=0)
    (tmp_path / "job.log.gz").write_bytes(whole[: len(whole) // 2])
    found = diagnosed(gather([tmp_path]))
    assert found.found
    assert "breaks off" in str(found.notes[0])


def test_a_log_that_this_python_cannot_unpack_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.log.zst").write_bytes(b"\x28\xb5\x2f\xfd\x24\x00\x01\x00\x00x")
    notes = " ".join(str(note) for note in gather([tmp_path]).notes)
    assert "zst" in notes


def test_long_reading_is_told_as_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "TOLD_EVERY", BLOCK)
    (tmp_path / "job.log").write_bytes(b"step 1\n" * (BLOCK // 2))
    heard: list[str] = []
    gather([tmp_path], lambda sentence: heard.append(str(sentence)))
    assert len(heard) == 3
    assert "of job.log are read" in heard[0]


def test_lines_that_a_terminal_broke_are_put_together(tmp_path: Path) -> None:
    whole = (
        "step 1\nE0325 20:57:27.620000 2606 api.py:869] failed (exitcode: -9) local_rank: 3 (pid: "
        "2630) of binary: /opt/envs/run/bin/python3.11\nTraceback (most recent call last):\n"
    )
    broken = "\n".join(
        row[place : place + 61]
        for row in whole.splitlines()
        for place in range(0, max(len(row), 1), 61)
    )
    (tmp_path / "job.log").write_text(broken)
    cause = diagnosed(gather([tmp_path])).causes[0]
    assert (cause.kind, cause.ranks, cause.quotes[0].line) == ("rank_killed", (3,), 2)


def test_bars_as_wide_as_the_terminal_stay_lines_of_their_own(tmp_path: Path) -> None:
    bar = " 6%|" + "#" * 60 + "| 3/9 [04:47<1:10:53, 13.82it/s]"
    (tmp_path / "job.log").write_text(f"{bar}\n{bar}\nValueError: bad label\n")
    cause = diagnosed(gather([tmp_path])).causes[0]
    assert (cause.kind, cause.quotes[0].line) == ("exception", 3)


@pytest.mark.parametrize(
    ("name", "held", "said"),
    [
        ("a.log", b"", "a.log is empty"),
        ("a.zip", b"PK\x03\x04" + bytes(40), "a.zip is an archive"),
        ("core", b"\x7fELF" + bytes(40), "core holds no text"),
    ],
)
def test_a_file_that_holds_no_log_is_named_and_nothing_is_called_sound(
    tmp_path: Path, name: str, held: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(held)
    found = diagnosed(gather([tmp_path / name]))
    assert said in str(found.notes[0])
    assert not found.was_read


def test_an_error_at_the_end_of_an_endless_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(b"." * (3 * BLOCK) + b" RuntimeError: CUDA out of memory")
    assert diagnosed(gather([tmp_path])).causes[0].kind == "gpu_oom"


def test_a_wide_log_without_a_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(TROUBLE.decode().encode("utf-16-le"))
    assert diagnosed(gather([tmp_path])).causes[0].ranks == (3,)


def test_a_warning_of_every_step_hides_no_error(tmp_path: Path) -> None:
    rows = [f"step {n}: warning: cannot use the fast path" for n in range(3 * OFTEN)]
    (tmp_path / "job.log").write_text("\n".join(rows) + "\n" + TROUBLE.decode())
    assert diagnosed(gather([tmp_path])).causes[0].ranks == (3,)


def test_what_a_launcher_puts_before_lines_makes_none_of_them_telling(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("[default0]:[rank0]: step 3 loss 2.1\n" * 50)
    assert not list(LogFile(path, "job.log").lines())
    path.write_text(
        "[default0]:[rank0]: step 3 loss 2.1\n" * 50 + "[default1]:Segmentation fault\n"
    )
    assert [line.quote.line for line in LogFile(path, "job.log").lines()][-1] == 51


def test_several_empty_files_are_told_in_one_note(tmp_path: Path) -> None:
    for rank in range(6):
        (tmp_path / f"ready_{rank}").write_text("")
    [note] = diagnosed(gather([tmp_path])).notes
    assert str(note) == "6 files are empty: ready_0, ready_1, ready_2, ready_3, …"


def test_a_tar_is_called_an_archive_whether_packed_or_not(tmp_path: Path) -> None:
    text = tmp_path / "job.log"
    text.write_text("ValueError: x\n", "utf-8")
    plain, packed = tmp_path / "a.tar", tmp_path / "a.tar.gz"
    with tarfile.open(plain, "w:") as archive:
        archive.add(text, "job.log")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for name in (plain.name, packed.name):
        log = LogFile(tmp_path / name, name)
        assert list(log.lines()) == []
        assert log.is_archive and not log.is_binary


def test_rows_of_a_table_are_not_taken_for_one_line() -> None:
    rows = ["7.batch      batch  COMPLETED      0:0   1234567K" + " " * 20 + "node001"] * 2
    rows.append("7.0         python  OUT_OF_ME+     0:9   5023411K" + " " * 20 + "node001")
    assert len(unwrapped(rows)) == 3


def test_marks_as_wide_as_the_code_above_them_are_no_width_of_a_terminal() -> None:
    code = "    weight = torch.empty((self.in_features, self.out_features), dtype=torch.half)"
    rows = [
        code,
        "    " + "^" * (len(code) - 4),
        "torch.OutOfMemoryError: Allocation on device",
        "x",
    ]
    assert [text for _, text in unwrapped(rows)] == rows
