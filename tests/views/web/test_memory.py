"""What a request makes the server hold is bounded: its head, and how much it asks for at once."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from serried.errors import InputError
from serried.limits import Limit
from serried.views.web import questions as asking
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.questions import answer_to, questions
from serried.views.web.server import SETTINGS
from tests.views.web.served import served


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served() as address, httpx.Client(base_url=address, timeout=60) as visitor:
        yield visitor


def several(*asked: str) -> str:
    return "several?" + "&".join(f"ask={quote(each)}" for each in asked)


def test_questions_that_are_asked_at_once_are_few(client: httpx.Client) -> None:
    answer = client.get(f"/api/{several(*(f'rank?world_size=16&rank={i}' for i in range(17)))}")
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "17 questions are asked at once; at most 16 are answered together",
    )


def test_answers_that_are_large_together_are_asked_for_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "SEVERAL_BYTES", Limit(1 << 10, "bytes", "a test"))
    asked = [f"rank?world_size=16&rank={rank}" for rank in range(3)]
    with pytest.raises(InputError) as caught:
        answer_to(several(*asked), questions(OpeningDesk()))
    assert str(caught.value) == (
        "the answers have more than 0 MB together; ask for 'rank?world_size=16&rank=0' by itself"
    )


def test_a_head_without_end_is_refused() -> None:
    made = uvicorn.Config(lambda: None, **SETTINGS)
    made.load()
    assert issubclass(made.http_protocol_class, H11Protocol)
    assert (made.h11_max_incomplete_event_size or 0) <= 1 << 16
