"""Recordings are found in folders and behind URLs, and what cannot be read is said."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.limits import NAMES_BYTES
from serried.trace.clocks.pings import ping_file, ping_line
from serried.trace.formats.reading import read_trace
from serried.trace.merge.files import Url, place_of
from serried.trace.merge.in_memory import merge
from serried.trace.merge.store import merge_store
from serried.trace.store.folder import read_store
from tests.trace.recorded_run import Clock, Run

RUN = Run(pp=4, num_microbatches=4)
CLOCKS = [Clock("a"), Clock("a"), Clock("b", late_ns=3_000_000), Clock("b", late_ns=3_000_000)]


def refused(kind: type[SerriedError], places: list[Any]) -> str:
    with pytest.raises(kind) as caught:
        merge(places)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of two hosts with pings, some of which are none."""
    folder = RUN.write(tmp_path / "run", clocks=CLOCKS)
    pings = [ping_line(3, (at, at + 50_000, at + 50_001, at + 100_001)) for at in range(0, 900, 9)]
    (folder / ping_file(0)).write_text("".join([*pings, "no ping\n"]))
    return folder


@pytest.fixture
def memory(folder: Path) -> Iterator[Url]:
    """The same files in fsspec's own filesystem in memory."""
    fsspec = pytest.importorskip("fsspec")
    filesystem = fsspec.filesystem("memory")
    for path in folder.iterdir():
        filesystem.pipe(f"/bucket/run/{path.name}", path.read_bytes())
    yield Url("memory://bucket/run")
    filesystem.rm("/bucket", recursive=True)


# ----------------------------------------------------------------------- behind a URL


def test_a_url_gives_what_the_folder_does(folder: Path, memory: Url, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    here = read_trace([folder])
    for place in (memory, Url(f"file://{folder}/")):
        merge_store([place], tmp_path / "run.store")
        for there in (read_trace([place]), read_store(tmp_path / "run.store")):
            assert (there.hosts, there.clocks) == (here.hosts, here.clocks)
            assert list(there.spans) == list(here.spans)
            assert [str(each) for each in there.warnings] == [
                str(each).replace(str(folder), str(place)) for each in here.warnings
            ]
    assert "clock-00000.jsonl are no pings" in str(here.warnings[0])


def test_a_url_and_a_folder_are_merged_together(folder: Path, memory: Url) -> None:
    for rank in (2, 3):
        (folder / f"rank-0000{rank}.spans").unlink()
    assert merge([folder]).missing == (2, 3)
    assert list(merge([folder, memory]).spans) == list(merge([memory]).spans)


def test_a_word_with_a_protocol_is_a_url() -> None:
    assert place_of("s3://bucket/run") == Url("s3://bucket/run")
    assert place_of("runs/first") == Path("runs/first")


@pytest.mark.usefixtures("memory")
def test_a_url_that_is_not_there_is_refused() -> None:
    assert refused(InputError, [Url("memory://bucket/absent")]) == (
        "memory://bucket/absent is not there; give the folder that --trace-dir named"
    )


def test_a_protocol_that_nobody_knows_is_refused() -> None:
    pytest.importorskip("fsspec")
    assert refused(InputError, [Url("nowhere://bucket")]) == (
        "nowhere://bucket cannot be read: Protocol not known: nowhere"
    )


def test_a_protocol_whose_package_is_missing_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    told = refused(EnvironmentProblem, [Url("s3://bucket/run")])
    assert told.startswith("s3://bucket/run needs a package that is not installed: ")
    assert "s3fs" in told


def test_without_fsspec_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert refused(EnvironmentProblem, [Url("memory://bucket/run")]) == (
        "a URL is read through fsspec; pip install 'serried[remote]' brings it"
    )


# ----------------------------------------------------------------------- folders


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A folder that this process may not read: root becomes another user, whom modes hold."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        folder = RUN.write(place / "run")
        folder.chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        yield folder
        os.seteuid(user)
        folder.chmod(0o755)


def test_a_folder_that_may_not_be_read_is_refused(forbidden: Path) -> None:
    sentence = f"{forbidden} cannot be read: Permission denied"
    assert refused(InputError, [forbidden]) == sentence
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_trace([forbidden])


def test_a_file_that_may_not_be_read_is_refused(forbidden: Path) -> None:
    user = os.geteuid()
    os.seteuid(os.getuid())
    forbidden.chmod(0o755)
    (forbidden / "rank-00002.spans").chmod(0)
    os.seteuid(user)
    assert refused(InputError, [forbidden]) == (
        f"{forbidden}/rank-00002.spans cannot be read: Permission denied"
    )


def test_a_file_of_another_program_is_named_and_left_out(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run", only=range(3))
    (folder / "rank-00003.spans").write_text("mine")
    (folder / "rank-00009.spans").write_bytes(bytes(100_000))

    trace = merge([folder])

    assert trace.missing == (3,)
    assert [str(each) for each in trace.warnings] == [
        f"{folder}/rank-00003.spans is not a recording of serried; left out",
        f"{folder}/rank-00009.spans is not a recording of serried; left out",
        "1 of 4 ranks have no file here: 3; give the folders of all nodes at once",
    ]


def test_a_folder_of_none_but_empty_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.spans").touch()
    assert refused(InputError, [tmp_path]) == (
        f"{tmp_path}/rank-00000.spans hold no complete span: the ranks stopped before they "
        "recorded one"
    )


def test_a_folder_named_as_a_recording_is_no_recording(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    (folder / "rank-00007.spans").mkdir()
    assert merge([folder]).warnings == ()


def test_names_of_spans_without_end_are_refused(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    names = folder / "rank-00000.names"
    names.touch()
    os.truncate(names, NAMES_BYTES.most + 1)
    assert refused(InputError, [folder]) == (
        f"{names} holds more than 64 MB, the most that serried reads of the names of spans"
    )
