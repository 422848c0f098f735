"""Files dropped on the page, as it sends them: names and sizes, then bytes; never a path.

    u32   length of the header
    ...   JSON, UTF-8: {"files": [{"name", "size", "sent"}]}
    ...   the first ``sent`` bytes of each file, one after the other

A file larger than any launch file is named with its size, and none of it is sent.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.errors import InputError
from serried.launch.facts.source import check_size, text_of
from serried.limits import DROPPED_HEADER, FOLDER_FILES, LAUNCH_BYTES
from serried.user_file import opened

_HEAD = struct.Struct("<I")


@dataclass(frozen=True)
class Dropped:
    """Holds one file: its name, how large it is, and its bytes as far as they were sent."""

    name: str
    size_bytes: int
    data: bytes

    def text(self) -> str:
        """Returns the file as text; raises InputError when it is too large, or no text."""
        check_size(self.size_bytes, self.name)
        return text_of(self.data, self.name)


def read_places(places: Sequence[Path]) -> list[Dropped]:
    """Returns files of this machine as if they had been dropped; InputError where one is gone."""
    files = []
    for path in places:
        with opened(path) as file:
            data = file.read(LAUNCH_BYTES.most + 1)
        files.append(Dropped(path.name, len(data), data))
    return files


def read_files(body: bytes) -> list[Dropped]:
    """Returns the files of a request; raises InputError when it does not hold them.

    >>> head = b'{"files": [{"name": "a.sh", "size": 2, "sent": 2}]}'
    >>> read_files(len(head).to_bytes(4, "little") + head + b"ls")
    [Dropped(name='a.sh', size_bytes=2, data=b'ls')]
    """
    try:
        return list(_files(body))[: FOLDER_FILES.most]
    except (ValueError, KeyError, TypeError, RecursionError, struct.error) as error:
        raise InputError(
            "the request does not hold files as the page sends them: a length, names with "
            "their sizes, and bytes"
        ) from error


def _files(body: bytes) -> Iterator[Dropped]:
    (length,) = _HEAD.unpack_from(body)
    if length > DROPPED_HEADER.most:
        raise ValueError(f"a header of {length} bytes")
    at = _HEAD.size + length
    for each in json.loads(body[_HEAD.size : at])["files"]:
        size, sent = each["size"], each["sent"]
        # type() and not isinstance(), for which True is a whole number.
        if not (type(size) is type(sent) is int and 0 <= sent <= min(size, len(body) - at)):
            raise ValueError(f"{sent} of {size} bytes sent, {len(body) - at} here")
        yield Dropped(str(each["name"]), size, body[at : at + sent])
        at += sent
