"""What is written whole is there whole or not at all, also on a disk that is full."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_trace
from serried.trace.merge.store import merge_store
from serried.trace.store.folder import read_store, write_store
from serried.whole_file import whole_file, whole_folder, whole_path
from tests.trace.recorded_run import Run

LARGE = Run(pp=4, num_microbatches=32, num_steps=20)
SMALL = Run(pp=2, num_microbatches=2, num_steps=1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def files_no_larger_than(num_bytes: int) -> Iterator[None]:
    """Lets the kernel refuse writes beyond a size, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


# ----------------------------------------------------------------------- files


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_file_has_the_mode_of_any_new_one_whoever_wrote_it(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with whole_path(tmp_path / "whole") as part:
            part.unlink()  # as a library that makes a file of its own does
            part.write_text("text")
            part.chmod(0o600)
        with whole_file(tmp_path / "other") as file:
            file.write(b"text")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("whole", "other")]
    assert modes == [0o666 & ~mask] * 2


def test_a_path_that_can_hold_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (Path("/"), tmp_path, tmp_path / "none" / "a", tmp_path / "file" / "a"):
        with pytest.raises(InputError, match="cannot be written"), whole_file(path) as file:
            file.write(b"text")
    assert names(tmp_path) == ["file"]


# ----------------------------------------------------------------------- folders


def test_a_folder_takes_its_place_when_the_block_ends(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with whole_folder(tmp_path / "whole") as folder:
            (folder / "file").write_text(text)
        assert (tmp_path / "whole" / "file").read_text() == text
    assert names(tmp_path) == ["whole"]


def test_what_stood_there_stays_until_the_block_ended_well(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "whole") as folder:
        (folder / "file").write_text("one")
    with pytest.raises(KeyError), whole_folder(tmp_path / "whole") as folder:
        (folder / "file").write_text("two")
        assert (tmp_path / "whole" / "file").read_text() == "one"
        raise KeyError
    assert (tmp_path / "whole" / "file").read_text() == "one"
    assert names(tmp_path) == ["whole"]


def test_what_stood_there_comes_back_where_the_new_cannot_take_its_place(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "whole") as folder:
        (folder / "file").write_text("one")
    with (
        pytest.raises(InputError, match="cannot be written"),
        whole_folder(tmp_path / "whole") as folder,
    ):
        shutil.rmtree(folder)
    assert (tmp_path / "whole" / "file").read_text() == "one"
    assert names(tmp_path) == ["whole"]


def test_a_file_beyond_the_disk_leaves_the_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one")
    with (
        files_no_larger_than(10_000),
        pytest.raises(InputError) as caught,
        whole_file(tmp_path / "file") as file,
    ):
        file.write(bytes(100_000))
    assert str(caught.value) == f"{tmp_path}/file cannot be written: File too large"
    assert ((tmp_path / "file").read_text(), names(tmp_path)) == ("one", ["file"])


# ----------------------------------------------------------------------- stores


@pytest.mark.parametrize("way", ["merged", "written"])
def test_a_disk_that_is_full_while_merging_leaves_no_half_store(tmp_path: Path, way: str) -> None:
    pytest.importorskip("pyarrow")
    folder, store = LARGE.write(tmp_path / "run"), tmp_path / "run.store"
    merge_store([SMALL.write(tmp_path / "small")], store)
    before, trace = read_store(store), read_trace([folder])

    with files_no_larger_than(10_000), pytest.raises(InputError) as caught:
        if way == "merged":
            merge_store([folder], store)
        else:
            write_store(trace, store)

    assert str(caught.value).startswith(f"{store} cannot be written: ")
    assert "too large" in str(caught.value)
    assert list(read_store(store).spans) == list(before.spans)
    assert names(tmp_path) == ["run", "run.store", "small"]


FULL = """
import subprocess, sys
from pathlib import Path
from serried.views.cli.main import main

disk, folder = map(Path, sys.argv[1:])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", disk], check=True)
sys.argv[1:] = ["trace", "merge", str(folder), "-o", str(disk / "run.store")]
try:
    main()
except SystemExit as end:
    print(end.code, [path.name for path in disk.iterdir()])
"""


def test_a_real_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(disk)]
    if (
        not shutil.which("unshare")
        or subprocess.run([*alone, *mount], capture_output=True).returncode
    ):
        pytest.skip("a file system of its own needs unshare, and a kernel that lets users mount")
    folder = LARGE.write(tmp_path / "run")
    ended = subprocess.run(
        [*alone, sys.executable, "-c", FULL, str(disk), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "2 []\n"
    assert ended.stderr.startswith(f"serried: {disk}/run.store cannot be written: ")
    assert "No space left on device" in ended.stderr
    assert ended.stderr.count("\n") == 1
