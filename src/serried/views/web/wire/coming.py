"""Files that the page says it will send to be opened: their names and sizes, and room for them.

    u32   length of the header
    ...   JSON, UTF-8: {"name": "runs", "files": [{"name": "first/rank-00000.spans", "size": 8}]}
    ...   the bytes of each file, one after the other

A name is a path below what was dropped; one that leads anywhere else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from serried.errors import InputError
from serried.limits import UPLOAD_BYTES, UPLOAD_FILES

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
        raise malformed() from error
    for path, size in files:
        # type() and not isinstance(), for which True is a whole number.
        if type(size) is not int or size < 0:
            raise malformed()
        _require_below(path)
    if len({path for path, _ in files}) < len(files):
        raise malformed()
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


def malformed() -> InputError:
    """Returns the sentence for a request that is none of the page's."""
    return InputError(
        "the request does not hold files as the page sends them: a length, names with their "
        "sizes, and bytes"
    )
