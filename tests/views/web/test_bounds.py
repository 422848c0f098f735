"""A question of too much time or memory is cut off with a sentence; the others are answered."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from starlette.testclient import TestClient

from serried.limits import Limit
from serried.views.web import bounds, server
from serried.views.web.bounds import AnswerBounds, CutOff, MemoryCutOff, own_bytes
from serried.views.web.gate import Gate
from serried.views.web.opening.desk import OpeningDesk
from tests.views.web.wire.test_dropped import framed


def test_what_goes_on_without_end_is_cut_off() -> None:
    with pytest.raises(CutOff), AnswerBounds().within(0.01):
        while True:
            pass


def test_what_ends_in_time_is_left_alone() -> None:
    watched = AnswerBounds()
    for _ in range(200):
        with watched.within(60):
            pass
    assert watched._bounds == {}


def test_a_thread_that_was_cut_off_can_be_asked_again() -> None:
    watched = AnswerBounds()
    for _ in range(3):
        with pytest.raises(CutOff), watched.within(0.01):
            while True:
                pass
    with watched.within(60):
        assert sum(range(100_000)) == 4_999_950_000


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("en", "endless took more than 1 s and was ended; ask for less at once"),
        ("zh", "endless 超过了 1 秒，已经结束；请一次少问一些"),
    ],
)
def test_a_question_without_end_is_answered_by_a_sentence(
    lang: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(words: Mapping[str, object]) -> object:
        while True:
            pass

    asked = {"endless": endless, "quick": lambda words: {"is": "answered"}}
    monkeypatch.setattr(server._Answers, "by_name", asked)
    monkeypatch.setattr(bounds, "ANSWER_SECONDS", Limit(1, "s", "a test"))
    app = server.application(OpeningDesk(), Gate("127.0.0.1", 80))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        answer = client.get(f"/api/endless?lang={lang}")
        assert (answer.status_code, answer.json()["error"]) == (400, told)
        assert client.get("/api/quick").json() == {"is": "answered"}


def test_files_that_take_too_long_to_read_are_refused_by_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(files: object, words: object) -> object:
        while True:
            pass

    monkeypatch.setattr("serried.views.web.layout.launch.launch_answer", endless)
    monkeypatch.setattr(bounds, "ANSWER_SECONDS", Limit(1, "s", "a test"))
    app = server.application(OpeningDesk(), Gate("127.0.0.1", 80))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        body = framed(("run.sh", b"torchrun x.py"))
        headers = {"Content-Type": "application/octet-stream"}
        answer = client.post("/api/launch?lang=en", content=body, headers=headers)
    told = "launch took more than 1 s and was ended; ask for less at once"
    assert (answer.status_code, answer.json()["error"]) == (400, told)


def growing(*_: object) -> object:
    kept: list[bytes] = []
    while True:
        kept.append(b"x" * (1 << 20))


@pytest.mark.skipif(not own_bytes(), reason="this system does not say what a process holds")
@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("en", "growing took more than 64 MB of memory and was ended; ask for less at once"),
        ("zh", "growing 占用的内存超过了 64 MB，已经结束；请一次少问一些"),
    ],
)
def test_a_question_of_memory_without_end_is_answered_by_a_sentence(
    lang: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"growing": growing, "quick": lambda words: {"is": "answered"}}
    monkeypatch.setattr(server._Answers, "by_name", asked)
    monkeypatch.setattr(bounds, "ANSWER_BYTES", Limit(64 << 20, "bytes", "a test"))
    app = server.application(OpeningDesk(), Gate("127.0.0.1", 80))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        answer = client.get(f"/api/growing?lang={lang}")
        assert (answer.status_code, answer.json()["error"]) == (400, told)
        assert client.get("/api/quick").json() == {"is": "answered"}


@pytest.mark.skipif(not own_bytes(), reason="this system does not say what a process holds")
def test_what_the_process_held_before_is_not_counted() -> None:
    held = b"x" * (96 << 20)
    with AnswerBounds().within(60, 64 << 20):
        assert len(held) > 64 << 20
    with pytest.raises(MemoryCutOff), AnswerBounds().within(60, 64 << 20):
        growing()
