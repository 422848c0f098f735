"""What a request sends, taken as it comes: into memory or a folder, in bounded time and room."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterable, AsyncIterator, Callable
from pathlib import Path

import anyio
from starlette.concurrency import run_in_threadpool

from serried.errors import InputError
from serried.limits import ANSWER_SECONDS, FOLDER_BYTES, UPLOAD_RATE
from serried.views.web.bounds import took_too_long
from serried.views.web.wire.coming import Coming, coming_of, malformed

_HEAD = struct.Struct("<I")
_HEADER_BYTES = 1 << 22
_AT_ONCE = 1 << 20


async def read_body(chunks: AsyncIterable[bytes], name: str) -> bytes:
    """Returns the body of the request ``name``.

    Raises InputError where it is too large, once it has ended, for a browser takes an answer that
    comes before it has sent everything for a broken line; and where it takes longer than an answer.
    """
    kept, size = [], 0
    try:
        with anyio.fail_after(ANSWER_SECONDS.most):
            async for chunk in chunks:
                size += len(chunk)
                if size <= FOLDER_BYTES.most:
                    kept.append(chunk)
    except TimeoutError:
        raise took_too_long(name) from None
    if size > FOLDER_BYTES.most:
        raise InputError(
            "what was given holds {size} MB; at most {limit} MB are taken at once, and only "
            "the launch files are needed",
            size=f"{size / 1024**2:.0f}",
            limit=FOLDER_BYTES.most // 1024**2,
        )
    return b"".join(kept)


async def receive(
    chunks: AsyncIterable[bytes], folder: Path, make_room: Callable[[Coming], None]
) -> Coming:
    """Writes the files of a request below ``folder``, and returns what they are.

    ``make_room`` refuses what there is no room for. Raises InputError for a request that does not
    hold what it says, and for files that come too slowly.
    """
    body = _Body(chunks)
    try:
        with anyio.fail_after(ANSWER_SECONDS.most):
            coming = await _announced(body)
    except TimeoutError:
        raise took_too_long("open") from None
    make_room(coming)
    most = seconds_for(coming)
    try:
        with anyio.fail_after(most):
            await _write(coming, body, folder)
    except TimeoutError:
        raise InputError(
            "{name} had not come whole after {most} s, so it is not opened; serried serve PATH "
            "opens it where it lies",
            name=coming.name,
            most=most,
        ) from None
    return coming


def seconds_for(coming: Coming) -> int:
    """Returns the time that files have to come, in s: an answer's, and that of a slow line.

    >>> from pathlib import PurePosixPath
    >>> seconds_for(Coming("run", ((PurePosixPath("a"), 1 << 30),)))
    4216
    """
    return ANSWER_SECONDS.most + coming.size_bytes // UPLOAD_RATE.most


async def _announced(body: _Body) -> Coming:
    """Returns what a request says is to come."""
    (length,) = _HEAD.unpack(await body.exactly(_HEAD.size))
    if length > _HEADER_BYTES:
        raise malformed()
    return coming_of(await body.exactly(length))


async def _write(coming: Coming, body: _Body, folder: Path) -> None:
    for path, size in coming.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            async for part in body.parts(size):
                await run_in_threadpool(file.write, part)


async def hear_out(chunks: AsyncIterable[bytes]) -> None:
    """Waits for the rest of what is sent, no longer than for an answer."""
    with anyio.move_on_after(ANSWER_SECONDS.most):
        async for _ in chunks:
            pass


class _Body:
    """Deals out the bytes of a request, whatever pieces they come in."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = aiter(chunks)
        self._rest = b""

    async def exactly(self, size: int) -> bytes:
        return b"".join([part async for part in self.parts(size)])

    async def parts(self, size: int) -> AsyncIterator[bytes]:
        """Yields the next ``size`` bytes in pieces; raises InputError where there are fewer."""
        while size:
            while len(self._rest) < min(size, _AT_ONCE):
                piece = await anext(self._chunks, None)
                if piece is None:
                    raise malformed()
                self._rest += piece
            part, self._rest = self._rest[: min(size, _AT_ONCE)], self._rest[min(size, _AT_ONCE) :]
            size -= len(part)
            yield part
