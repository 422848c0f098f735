"""The server says by OpenAPI what it answers, and whatever is asked by it gets an answer."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from starlette.testclient import TestClient

from serried.views.web.gate import Gate
from serried.views.web.openapi import OF_LAYOUTS, WORDS
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.questions import questions
from serried.views.web.server import application

HOST = "http://127.0.0.1:8765"
DESK = OpeningDesk()
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


@pytest.mark.parametrize("name", sorted({*OF_LAYOUTS, *WORDS}))
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


@SCHEMA.exclude(path="/api/openings/events").exclude(path="/api/search").parametrize()
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_whatever_is_asked_is_answered(case: Any) -> None:
    answer = case.call(headers={"host": "127.0.0.1:8765"})
    case.validate_response(answer, checks=[not_a_server_error])
    if case.path.startswith("/api/") and case.method == "GET" and answer.status_code == 400:
        assert answer.json()["error"]
