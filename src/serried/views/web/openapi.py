"""What the server answers, as an OpenAPI document made of the routes and questions it really has.

GET ./openapi.json      3.1; the page needs none of it: it is for programs that ask the server
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from starlette.routing import BaseRoute, Route

from serried.frameworks import FRAMEWORKS
from serried.mesh.sizes import TABLE, SizeField
from serried.version import __version__
from serried.views.sentences import LANGUAGES
from serried.views.web.parameters import OF_LAYOUTS, SIZES_OF_EXAMPLE, TRACE, WORDS
from serried.views.web.refusal import BINARY

ANY_QUESTION = "/api/{name:path}"
"""The route that answers every question by its name."""
_TRACE = (
    "The number of an open trace, from 0; or plan for the planned step of the job that sizes and "
    "words of a plan in the address say."
)
_Document = dict[str, Any]
_PROBLEM: _Document = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "field": {"type": ["string", "null"]}},
    "required": ["error", "field"],
}


def openapi_document(routes: Sequence[BaseRoute], questions: Iterable[str]) -> _Document:
    """Returns the document of a server with these routes, which answers these questions."""
    paths: _Document = {}
    for route in routes:
        if not isinstance(route, Route) or route.path.startswith("/static/"):
            continue
        if route.path == ANY_QUESTION:
            paths |= {f"/api/{name}": {"get": _question(name)} for name in questions}
        else:
            paths[route.path] = dict(_plain(route))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "serried serve",
            "version": __version__,
            "description": "Answers of the workbench's own server. Payloads are "
            "serried.payload/1; `serried serve --ask` prints the same as JSON.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "parameters": {f"size_{name}": _size(name, TABLE[name]) for name in TABLE}
            | {"framework": _framework(), "lang": _lang()},
        },
    }


def _question(name: str) -> _Document:
    named = [f"size_{size}" for size in TABLE] + ["framework"] if name in OF_LAYOUTS else []
    common = [{"$ref": f"#/components/parameters/{each}"} for each in (*named, "lang")]
    return {
        "operationId": f"ask_{name.replace('/', '_')}",
        "parameters": [*_words(name), *common],
        "responses": {
            "200": {
                "description": "The answer, as a document or as a payload of columns.",
                "content": {
                    "application/json": {"schema": {"type": "object"}},
                    BINARY: {"schema": {"type": "string", "format": "binary"}},
                },
            },
            "400": {
                "description": "What cannot be asked, in one sentence that says what would do.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                },
            },
        },
    }


def _plain(route: Route) -> Iterator[tuple[str, _Document]]:
    for method in sorted((route.methods or {"GET"}) - {"HEAD"}):
        told: _Document = {
            "operationId": f"{method.lower()}_{route.path.strip('/').replace('/', '_') or 'page'}",
            "parameters": _words(route.path.removeprefix("/api/")),
            "responses": {"200": {"description": "The answer."}},
        }
        if method == "POST":
            content = {BINARY: {"schema": {"type": "string", "format": "binary"}}}
            told["requestBody"] = {"required": True, "content": content}
            told["responses"]["400"] = {"description": "What cannot be, in one sentence."}
            told["responses"]["415"] = {"description": "Files come as bytes."}
        yield method.lower(), told


def _words(name: str) -> list[_Document]:
    return [_word(word, example) for word, example in WORDS.get(name, {}).items()]


def _size(name: str, size: SizeField) -> _Document:
    example = SIZES_OF_EXAMPLE.get(name)
    return _word(name, example) | {"description": size.help["en"]}


def _word(name: str, example: str | None) -> _Document:
    told: _Document = {"name": name, "in": "query", "schema": {"type": "string"}}
    told |= {"description": _TRACE} if name == TRACE else {}
    return told if example is None else told | {"example": example}


def _framework() -> _Document:
    return {
        "name": "framework",
        "in": "query",
        "schema": {"type": "string", "examples": sorted(FRAMEWORKS)},
    }


def _lang() -> _Document:
    return {"name": "lang", "in": "query", "schema": {"type": "string", "enum": [*LANGUAGES]}}
