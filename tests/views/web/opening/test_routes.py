"""Files on their way to the server: recognised first, copied in bounds, followed, cancelled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serried.limits import Limit
from serried.trace.formats.reading import read_trace
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.opening import Opening, openings_answer
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire import coming
from tests.trace.recorded_run import Run
from tests.views.web.opening.samples import FILES, LOG, SCRIPT
from tests.views.web.served import served
from tests.views.web.wire.test_dropped import framed

BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that copies are made in."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def client(copies: Path) -> Iterator[httpx.Client]:
    with served(OpeningDesk()) as address, httpx.Client(base_url=address, timeout=60) as visitor:
        yield visitor


def sent(name: str, *files: tuple[str, bytes]) -> bytes:
    told = {"name": name, "files": [{"name": path, "size": len(data)} for path, data in files]}
    head = json.dumps(told).encode()
    return len(head).to_bytes(4, "little") + head + b"".join(data for _, data in files)


def followed(client: httpx.Client) -> list[dict[str, Any]]:
    """Hears the server's events to their end, and returns the openings as told last."""
    lines = client.get("/api/openings/events").text.splitlines()
    told = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    assert told[-1]["reading"] == 0
    openings: list[dict[str, Any]] = told[-1]["openings"]
    return openings


@pytest.mark.parametrize("which", FILES)
def test_beginnings_are_enough_to_say_what_a_file_is(
    which: str, client: httpx.Client, tmp_path: Path
) -> None:
    kind, name, make = FILES[which]
    answer = client.post("/api/recognise", content=framed((name, make(tmp_path))), headers=BINARY)
    assert (answer.status_code, answer.json()["kind"]) == (200, kind)


def test_what_ends_while_it_is_told_is_told_as_being_read(tmp_path: Path) -> None:
    class Ending(Opening):
        def document(self) -> dict[str, Any]:
            told = super().document()
            self.settle("done")
            return told

    told = openings_answer([Ending(0, "run", tmp_path)])
    assert (told["openings"][0]["state"], told["reading"]) == ("reading", 1)


def test_what_no_tab_shows_is_refused_before_it_is_sent(client: httpx.Client) -> None:
    body = framed(("x.zip", b"PK\x03\x04\0\0"))
    answer = client.post("/api/recognise?lang=zh", content=body, headers=BINARY)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("x.zip 是 zip 压缩包；请先解包（unzip x.zip）")


def test_a_dropped_folder_is_opened_and_its_copy_goes_with_the_server(copies: Path) -> None:
    with served(OpeningDesk()) as address, httpx.Client(base_url=address, timeout=60) as client:
        files = [("logs/rank_3.log", LOG * 9), ("logs/rank_4.log", b"step 1\n")]
        answer = client.post("/api/open", content=sent("logs", *files), headers=BINARY)
        assert answer.json() == {"number": 0}
        (told,) = followed(client)
        assert (told["state"], told["case"], told["tab"]) == ("done", "logs", "diagnose")
        assert client.get("/api/cases").json()["cases"][0]["name"] == "logs"
        assert any(copies.rglob("rank_3.log"))
    assert not any(copies.rglob("rank_3.log"))


def test_a_launch_file_is_read_again_with_each_answer(client: httpx.Client) -> None:
    client.post("/api/open", content=sent("run.sh", ("run.sh", SCRIPT)), headers=BINARY)
    (told,) = followed(client)
    assert told["files"] == ["run.sh"]
    read = client.get("/api/openings/launch?number=0&pp=2").json()
    assert (read["job"]["tp"], read["job"]["pp"]) == (["4"], ["2"])
    assert client.get("/api/openings/launch?number=9").status_code == 400


def test_a_model_that_was_opened_is_planned_by_its_name_and_no_other_file_is(
    client: httpx.Client, tmp_path: Path
) -> None:
    data = FILES["model"][2](tmp_path)
    client.post("/api/open", content=sent("mine.json", ("mine.json", data)), headers=BINARY)
    (told,) = followed(client)
    words = "world_size=8&tp=2&cluster=h100&sequence=2048&global_batch=16"
    plan = client.get(f"/api/plan?{words}&model={told['question']['model']}").json()
    assert plan["asked"]["model"]["parameters"] > 1e6
    (tmp_path / "other.json").write_bytes(data)
    other = client.get(f"/api/plan?{words}&model={tmp_path / 'other.json'}")
    assert other.status_code == 400


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../../x", "a//../x", "..", "", "a\x01b", "a\\..\\b", "x" * 300]
)
def test_a_name_that_leads_elsewhere_is_refused(
    name: str, client: httpx.Client, copies: Path
) -> None:
    answer = client.post("/api/open", content=sent("x", (name, b"1")), headers=BINARY)
    assert answer.status_code == 400
    assert "is no name of a file below what was dropped" in answer.json()["error"]
    assert not [path for path in copies.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xff\xff\xff", b"\2\0\0\0{}", sent("a", ("b", b"1234"))[:-1]]
)
def test_a_request_that_does_not_hold_what_it_says_is_refused(
    body: bytes, client: httpx.Client
) -> None:
    answer = client.post("/api/open", content=body, headers=BINARY)
    assert answer.json()["error"].startswith("the request does not hold files as the page sends")


def test_a_list_without_end_of_what_was_dropped_is_refused(client: httpx.Client) -> None:
    head = b'{"files": [' + b"{}," * (1 << 19) + b"{}]}"
    body = len(head).to_bytes(4, "little") + head
    answer = client.post("/api/recognise", content=body, headers=BINARY)
    assert answer.json()["error"].startswith("the request does not hold files as the page sends")


def test_more_than_may_be_copied_is_refused_with_the_command_that_opens_it(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coming, "UPLOAD_BYTES", Limit(1 << 20, "bytes", "for this test"))
    body = sent("big", ("big", b"x" * (2 << 20)))
    answer = client.post("/api/open", content=body, headers=BINARY)
    assert answer.json()["error"] == (
        "big holds 2 MB; drops take at most 1 MB, for they are copied, and serried serve PATH "
        "opens any size where it lies"
    )


@pytest.mark.parametrize(
    "path", ["recognise", "open", "openings/cancel?number=0", "openings/diagnose?trace=0"]
)
def test_a_page_of_another_site_cannot_open_anything(path: str, client: httpx.Client) -> None:
    kinds = {"Content-Type": "text/plain"}
    assert client.post(f"/api/{path}", content=b"{}", headers=kinds).status_code == 415


def test_what_was_not_opened_cannot_be_cancelled(client: httpx.Client) -> None:
    answer = client.post("/api/openings/cancel?number=x", headers=BINARY)
    assert answer.json()["error"].startswith("nothing was opened under number -1; 0 were")


def test_a_recorded_run_is_diagnosed_once_where_it_is_asked_for(copies: Path) -> None:
    run = Run(pp=1, num_microbatches=1, num_steps=1).write(copies / "run")
    desk = OpeningDesk([NamedTrace.read("run", read_trace([run]), run)])
    with served(desk) as address, httpx.Client(base_url=address, timeout=60) as visitor:
        for _ in range(2):
            answer = visitor.post("/api/openings/diagnose?trace=0", headers=BINARY)
            assert answer.json() == {"number": 0}
        (told,) = followed(visitor)
        assert (told["state"], told["case"]) == ("done", "run")
        (case,) = visitor.get("/api/cases").json()["cases"]
        assert (case["question"]["world_size"], case["is_followed"]) == ("1", True)
        refused = visitor.post("/api/openings/diagnose?trace=1", headers=BINARY)
        assert refused.json()["error"].startswith("there is no recorded run 1 here")


def test_what_is_dropped_stands_still_and_a_diagnosis_there_is_not_is_refused(
    client: httpx.Client,
) -> None:
    client.post("/api/open", content=sent("x.log", ("x.log", LOG)), headers=BINARY)
    followed(client)
    (line,) = client.get("/api/cases/events?case=0").text.split("\n\n")[:-1]
    assert json.loads(line.removeprefix("data: "))["state"] == "still"
    assert client.get("/api/cases/events?case=1").json()["error"].startswith("there is no diag")
