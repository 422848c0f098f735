"""How the page opens things: it sends beginnings to learn what they are, then the files.

POST ./api/recognise            beginnings of files     what they are, or one sentence
POST ./api/open                 the files               the number of the opening
POST ./api/openings/cancel?number=N
GET  ./api/openings/events      every opening, as server-sent events, until all are read
GET  ./api/openings/launch?number=N&…   launch files that were opened, with answers
POST ./api/openings/diagnose?trace=N     the run of a trace, diagnosed
GET  ./api/cases/events?case=N  what changes of a diagnosis, as server-sent events
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import PurePosixPath
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from serried.errors import SerriedError
from serried.finding import said
from serried.views.sentences import LANGUAGES, say
from serried.views.web.bounds import AnswerBounds
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.kinds import NAMES, Kind
from serried.views.web.opening.opening import openings_answer
from serried.views.web.opening.sample import Sample
from serried.views.web.refusal import BINARY, mishap, refusal, words_of_request
from serried.views.web.wire.arriving import hear_out, read_body, receive
from serried.views.web.wire.coming import Coming, require_room
from serried.views.web.wire.dropped import Dropped, read_files, read_places

HEARTBEAT_S = 0.5
"""Seconds after which a page hears how far reading is, where nothing else changes."""

LEFT_S = 0.2
"""Seconds within which a page that listens is left once the server ends."""

Handler = Callable[[Request], Awaitable[Response]]


def opening_routes(desk: OpeningDesk) -> list[Route]:
    """Returns the routes by which things are opened."""
    bounds = AnswerBounds()

    async def recognise(request: Request) -> Response:
        files = read_files(await read_body(request.stream(), "recognise"))
        return await run_in_threadpool(
            bounds.answer,
            "recognise",
            lambda: JSONResponse(recognised_answer(files, desk.copied_bytes)),
        )

    async def open_files(request: Request) -> Response:
        folder, stream = desk.folder(), request.stream()
        try:
            coming = await receive(stream, folder, lambda told: desk.make_room(folder, told))
        except (SerriedError, ClientDisconnect, OSError) as error:
            desk.drop(folder)
            # A browser takes an answer that comes before it has sent everything for a broken line.
            if isinstance(error, SerriedError):
                await hear_out(stream)
            raise
        is_one = len(coming.files) == 1
        place = folder / coming.files[0][0] if is_one else folder
        opening = desk.open(place, coming.files[0][0].name if is_one else coming.name)
        return JSONResponse({"number": opening.number})

    async def cancel(request: Request) -> Response:
        await run_in_threadpool(desk.cancel, _number(request))
        return JSONResponse(openings_answer(desk.openings))

    async def diagnose(request: Request) -> Response:
        opening = await run_in_threadpool(desk.diagnose, _number(request, "trace"))
        return JSONResponse({"number": opening.number})

    async def events(_: Request) -> Response:
        return _streamed(_events(desk))

    async def case_events(request: Request) -> Response:
        number = _number(request, "case")
        desk.case(number)
        return _streamed(_case_events(desk, number))

    async def launch(request: Request) -> Response:
        return await run_in_threadpool(
            bounds.answer,
            "openings/launch",
            lambda: JSONResponse(_launch(desk, request)),
        )

    return [
        Route("/api/recognise", _sent(recognise), methods=["POST"]),
        Route("/api/open", _sent(open_files), methods=["POST"]),
        Route("/api/openings/cancel", _sent(cancel), methods=["POST"]),
        Route("/api/openings/diagnose", _sent(diagnose), methods=["POST"]),
        Route("/api/openings/events", events),
        Route("/api/cases/events", _told(case_events)),
        Route("/api/openings/launch", _told(launch)),
    ]


def recognised_answer(files: list[Dropped], copied_bytes: int = 0) -> dict[str, Any]:
    """Returns what files are by their beginnings, and which of them are to be sent.

    ``copied_bytes`` are held of earlier drops. Raises InputError for what no tab shows, and for
    more than is taken, of which then nothing is sent.
    """
    from serried.views.web.opening.folder import together

    samples = [Sample(each.name, each.size_bytes, each.data) for each in files]
    found = together(samples, said("what was dropped"))
    if found.kind is not Kind.LAUNCH:
        sizes = [(PurePosixPath(e.name), e.size_bytes) for e in files if e.name in found.names]
        name = sizes[0][0].parts[0] if sizes else ""
        require_room(Coming(name, tuple(sizes)), copied_bytes)
    return {
        "schema": "serried.recognised/1",
        "kind": found.kind,
        "tab": found.tab,
        "what": {lang: say(NAMES[found.kind], lang) for lang in LANGUAGES},
        "names": list(found.names),
        "left": list(found.left),
    }


async def _events(desk: OpeningDesk) -> AsyncIterator[str]:
    """Yields the openings at each change, and now and then while one is read."""
    version = -1
    while True:
        told = openings_answer(desk.openings)
        yield f"data: {json.dumps(told, ensure_ascii=False)}\n\n"
        if not told["reading"] or desk.is_left:
            return
        version = await run_in_threadpool(desk.wait, version, HEARTBEAT_S)


async def _case_events(desk: OpeningDesk, number: int) -> AsyncIterator[str]:
    """Yields what is told of a diagnosis at each change, as long as somebody listens."""
    from serried.views.web.opening.followed import LOOK_S

    before: dict[str, Any] = {}
    while not desk.is_left:
        told = await run_in_threadpool(desk.followed.look, number)
        # A line without a meaning shows whether anybody listens still.
        yield ":\n\n" if told == before else f"data: {json.dumps(told, ensure_ascii=False)}\n\n"
        if told["state"] == "still":
            return
        before = told
        until = anyio.current_time() + LOOK_S
        while not desk.is_left and anyio.current_time() < until:
            await anyio.sleep(min(LOOK_S, LEFT_S))


def _streamed(events: AsyncIterator[str]) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _launch(desk: OpeningDesk, request: Request) -> dict[str, Any]:
    from serried.views.web.layout.launch import launch_answer

    files = read_places(desk.opening(_number(request)).files)
    return launch_answer(files, words_of_request(request), reads_folders=True)


def _number(request: Request, name: str = "number") -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1


def _sent(handler: Handler) -> Handler:
    """Wraps what takes a body: a page of another site may send forms and text, but no other."""

    async def guarded(request: Request) -> Response:
        if request.headers.get("content-type") != BINARY:
            return PlainTextResponse(f"Files come as {BINARY}.\n", 415)
        return await _told(handler)(request)

    return guarded


def _told(handler: Handler) -> Handler:
    """Wraps an answer: a user's mistake becomes its sentence, in the page's language."""

    async def answer(request: Request) -> Response:
        words = words_of_request(request)
        try:
            return await handler(request)
        except SerriedError as error:
            return refusal(error, words)
        except ClientDisconnect:
            return PlainTextResponse("", 499)
        except Exception as error:
            return mishap(error, request, words)

    return answer
