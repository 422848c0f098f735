"""What goes wrong with a question, as an answer: one sentence in the page's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from serried.errors import SerriedError
from serried.views.mishap import mishap_of
from serried.views.sentences import say

if TYPE_CHECKING:
    from serried.views.web.wire.query import Words

BINARY = "application/octet-stream"


def words_of_request(request: Request) -> Words:
    """Returns the words of a request's address."""
    params = request.query_params
    return {name: params.getlist(name) for name in params}


def refusal(error: SerriedError, words: Words) -> Response:
    """Returns a user's mistake as its sentence, with the word of the question it is about."""
    from serried.views.web.plan.query import field_of as plan_field_of
    from serried.views.web.schedule.query import field_of

    found = field_of(error) or plan_field_of(error)
    field = error.values.get("axis") or found or error.values.get("name")
    return JSONResponse({"error": say(error, _language(words)), "field": field}, 400)


def mishap(error: Exception, request: Request, words: Words) -> Response:
    """Returns what nobody foresaw as its sentence; the page and its other answers go on."""
    # What was asked goes into a file for a report, where the token must not stand.
    asked = [f"{name}={value}" for name in words if name != "token" for value in words[name]]
    told = mishap_of(error, [request.url.path, *asked])
    return JSONResponse({"error": say(told, _language(words)), "field": None}, 500)


def _language(words: Words) -> str:
    return "zh" if "zh" in words.get("lang", ()) else "en"
