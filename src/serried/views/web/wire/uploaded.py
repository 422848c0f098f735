"""Files that the page sends to be opened: written to a folder as they come, bounded, never run.

    u32   length of the header
    ...   JSON, UTF-8: {"name": "runs", "files": [{"name": "first/rank-00000.spans", "size": 8}]}
    ...   the bytes of each file, one after the other

A name is a path below what was dropped; one that leads anywhere else is refused.
"""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from starlette.concurrency import run_in_threadpool

from serried.errors import InputError
from serried.limits import UPLOAD_BYTES, UPLOAD_FILES

_HEAD = struct.Struct("<I")
_HEADER_BYTES = 1 << 22
_AT_ONCE = 1 << 20
_DEPTH, _LETTERS = 16, 200


@dataclass(frozen=True)
class Coming:
    """Says what files are to come: what holds them, and each one's path and size."""

    name: str
    files: tuple[tuple[PurePosixPath, int], ...]

    @property
    def size_bytes(self) -> int:
        """What all files hold together."""
        return sum(size for _, size in self.files)


async def receive(chunks: AsyncIterable[bytes], folder: Path, taken_bytes: int) -> Coming:
    """Writes the files of a request below ``folder``, and returns what they are.

    ``taken_bytes`` are held already of those that may be. Raises InputError for a request that does
    not hold what it says, and for more than is taken.
    """
    body = _Body(chunks)
    (length,) = _HEAD.unpack(await body.exactly(_HEAD.size))
    if length > _HEADER_BYTES:
        raise _malformed()
    coming = coming_of(await body.exactly(length))
    require_room(coming, taken_bytes)
    for path, size in coming.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            async for part in body.parts(size):
                await run_in_threadpool(file.write, part)
    return coming


def coming_of(header: bytes) -> Coming:
    """Returns what a header says is to come; raises InputError for a name that leads elsewhere.

    >>> coming_of(b'{"name": "x", "files": [{"name": "a/b.log", "size": 3}]}').files
    ((PurePosixPath('a/b.log'), 3),)
    """
    try:
        told = json.loads(header)
        files = tuple((PurePosixPath(str(f["name"])), f["size"]) for f in told["files"])
        name = PurePosixPath(str(told["name"])).name
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _malformed() from error
    for path, size in files:
        # type() and not isinstance(), for which True is a whole number.
        if type(size) is not int or size < 0:
            raise _malformed()
        _require_below(path)
    if len({path for path, _ in files}) < len(files):
        raise _malformed()
    return Coming(name[:_LETTERS] or "files", files)


def require_room(coming: Coming, taken_bytes: int) -> None:
    """Raises InputError, saying what would do it, for more than a drop may hold."""
    if len(coming.files) > UPLOAD_FILES.most:
        raise InputError(
            "{name} holds {count} files; a drop takes at most {limit}, and serried serve PATH "
            "opens any number where they lie",
            name=coming.name,
            count=len(coming.files),
            limit=UPLOAD_FILES.most,
        )
    if coming.size_bytes + taken_bytes > UPLOAD_BYTES.most:
        raise InputError(
            "{name} holds {size} MB; drops take at most {limit} MB, for they are copied, and "
            "serried serve PATH opens any size where it lies",
            name=coming.name,
            size=coming.size_bytes >> 20,
            limit=UPLOAD_BYTES.most >> 20,
        )


def _require_below(path: PurePosixPath) -> None:
    parts: Sequence[str] = path.parts
    is_below = 0 < len(parts) <= _DEPTH and not path.is_absolute()
    if not is_below or any(_is_odd(part) for part in parts):
        raise InputError(
            "'{name}' is no name of a file below what was dropped", name=str(path)[:40]
        )


def _is_odd(part: str) -> bool:
    is_control = any(ord(letter) < 32 for letter in part)
    return part in ("", ".", "..") or is_control or "\\" in part or len(part.encode()) > 255


def _malformed() -> InputError:
    return InputError(
        "the request does not hold files as the page sends them: a length, names with their "
        "sizes, and bytes"
    )


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
                    raise _malformed()
                self._rest += piece
            part, self._rest = self._rest[: min(size, _AT_ONCE)], self._rest[min(size, _AT_ONCE) :]
            size -= len(part)
            yield part
