"""A large trace is read behind the open page, which says so; a small one before it opens."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from serried.errors import InputError, SerriedError
from serried.trace.formats.reading import read_trace
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from serried.views.web.trace import shelf as trace_shelf
from serried.views.web.trace.shelf import Shelf, read_apart
from tests.trace.alike import differences
from tests.trace.recorded_run import Run
from tests.views.web.served import served

RUN = Run(pp=2, num_microbatches=2, num_steps=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RUN.write(tmp_path_factory.mktemp("run"))


def test_the_page_is_there_while_a_trace_is_read_and_says_so(folder: Path) -> None:
    may_go_on = threading.Event()

    def slowly(place: Path) -> Trace:
        assert may_go_on.wait(60)
        return merge([place])

    shelf = Shelf((), [folder], slowly)
    with served(shelf) as address, httpx.Client(base_url=address) as client:
        shelf.start(lambda _: None)
        assert client.get("/").status_code == 200
        told = client.get("/api/traces").json()
        assert (told["traces"], told["reading"], told["problems"]) == ([], [folder.name], [])
        assert client.get("/api/trace?trace=0").status_code == 400
        may_go_on.set()
        while (told := client.get("/api/traces?wait=1").json())["reading"]:
            pass
        assert [each["name"] for each in told["traces"]] == [folder.name]
        assert client.get("/api/trace?trace=0").status_code == 200


def test_what_cannot_be_read_is_told_on_the_page_and_in_the_terminal(
    folder: Path, tmp_path: Path
) -> None:
    told: list[SerriedError] = []
    shelf = Shelf((), [tmp_path / "none", folder], lambda path: read_trace([path]))
    with served(shelf) as address, httpx.Client(base_url=address) as client:
        shelf.start(told.append)
        while (answer := client.get("/api/traces?wait=1").json())["reading"]:
            pass
    assert [each["name"] for each in answer["traces"]] == [folder.name]
    (problem,) = answer["problems"]
    assert problem["en"] == str(told[0]) and problem["zh"] != problem["en"]


def test_a_process_of_its_own_reads_the_same_trace_and_refuses_the_same(
    folder: Path, tmp_path: Path
) -> None:
    assert differences(read_apart(folder), read_trace([folder])) == []
    with pytest.raises(InputError) as expected:
        read_trace([tmp_path / "none"])
    with pytest.raises(InputError) as found:
        read_apart(tmp_path / "none")
    assert str(found.value) == str(expected.value)


def test_small_places_are_read_before_the_page_opens_and_large_ones_are_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf.of_places([folder])
    assert ([each.name for each in shelf.traces], shelf.reading) == ([folder.name], [])
    monkeypatch.setattr(trace_shelf, "LARGE_BYTES", 1)
    shelf = Shelf.of_places([folder])
    assert (shelf.traces, shelf.reading) == ([], [folder.name])
