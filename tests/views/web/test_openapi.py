"""The server says by OpenAPI what it answers, and whatever is asked by it gets an answer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from starlette.testclient import TestClient

from serried.errors import InputError
from serried.views.web.gate import Gate
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.parameters import OF_LAYOUTS, SIZES_OF_EXAMPLE, TRACE, WORDS
from serried.views.web.questions import questions
from serried.views.web.server import application
from serried.views.web.trace.payload import NamedTrace
from tests.trace.simulated_run import simulated_run

HOST = "http://127.0.0.1:8765"
DESK = OpeningDesk([NamedTrace("run", simulated_run())])
DESK.is_left = True  # what streams changes ends, as none will come
APPLICATION = application(DESK, Gate("127.0.0.1", 8765))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    with TestClient(APPLICATION, base_url=HOST) as client:
        found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_every_question_and_every_route_is_named(document: dict[str, Any]) -> None:
    named = set(document["paths"])
    assert {f"/api/{name}" for name in questions(DESK)} <= named
    assert {"/", "/api/launch", "/api/open", "/api/recognise"} <= named
    assert not any("{" in path for path in named)
    assert "get" in document["paths"]["/api/layout"]
    assert "post" in document["paths"]["/api/launch"]


def test_the_sizes_of_a_job_are_its_parameters(document: dict[str, Any]) -> None:
    named = {
        each.get("$ref", "").rpartition("/")[2] or each["name"]
        for each in document["paths"]["/api/plan"]["get"]["parameters"]
    }
    assert {"size_world_size", "size_tp", "framework", "lang", "model"} <= named
    told = document["components"]["parameters"]["size_tp"]["description"]
    assert told == "Ranks that every layer is split over (tensor parallelism)."


class Noting(dict[str, list[str]]):
    """Holds the words of a question, and which of them an answer looks for."""

    def __init__(self, words: dict[str, str]) -> None:
        super().__init__({name: [text] for name, text in words.items()})
        self.sought: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.sought.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> list[str]:
        self.sought.add(name)
        return super().__getitem__(name)


@pytest.mark.parametrize("name", sorted(questions(DESK)))
def test_every_word_that_a_question_looks_for_is_told(name: str, document: dict[str, Any]) -> None:
    examples = {word: text for word, text in WORDS.get(name, {}).items() if text is not None}
    words = Noting((SIZES_OF_EXAMPLE if name in OF_LAYOUTS else {}) | examples)
    with suppress(InputError):  # such as where nothing is open that could be asked about
        questions(DESK)[name](words)
    told = {
        each.get("$ref", "").rpartition("/")[2].removeprefix("size_") or each["name"]
        for each in document["paths"][f"/api/{name}"]["get"]["parameters"]
    }
    assert words.sought <= told


OF_OTHERS = {"trace/gpus", "trace/scale", "trace/sharding"}
"""What cannot be answered of a simulated run: it is no profile and lies nowhere."""
WITH_EXAMPLES = {name for name, words in WORDS.items() if any(words.values())}


@pytest.mark.parametrize("name", sorted({*OF_LAYOUTS, *WITH_EXAMPLES} - OF_OTHERS))
def test_a_question_is_answered_by_the_examples_of_its_words(
    name: str, document: dict[str, Any]
) -> None:
    parts = document["components"]["parameters"]
    listed = [
        parts[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in document["paths"][f"/api/{name}"]["get"]["parameters"]
    ]
    words = {each["name"]: each["example"] for each in listed if "example" in each}
    with TestClient(APPLICATION, base_url=HOST) as client:
        answer = client.get(f"/api/{name}", params=words)
    assert (answer.status_code, bool(words)) == (200, True), answer.text


SCHEMA = schemathesis.openapi.from_asgi(
    "/openapi.json", APPLICATION, headers={"host": "127.0.0.1:8765"}
)
SCHEMA.config.phases.coverage.enabled = False  # it tries each of forty words by itself


@SCHEMA.parametrize()
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_whatever_is_asked_is_answered(case: Any) -> None:
    if TRACE in case.query:  # else every trace but the one that is open would be refused
        case.query[TRACE] = "0"
    answer = case.call(headers={"host": "127.0.0.1:8765"})
    case.validate_response(answer, checks=[not_a_server_error])
    if case.path.startswith("/api/") and case.method == "GET" and answer.status_code == 400:
        assert answer.json()["error"]
