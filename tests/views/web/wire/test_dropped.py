"""Files as the page sends them: taken apart, and refused where they are something else."""

from __future__ import annotations

import json

import pytest

from serried.errors import InputError
from serried.views.web.wire.dropped import read_files


def framed(*files: tuple[str, bytes], **other: object) -> bytes:
    """Returns files as static/desk/launch/files.js does, ``other`` in place of what is so."""
    listed = [{"name": name, "size": len(data), "sent": len(data)} | other for name, data in files]
    head = json.dumps({"files": listed}).encode()
    return len(head).to_bytes(4, "little") + head + b"".join(data for _, data in files)


def test_files_come_apart_as_they_were_put_together() -> None:
    files = read_files(framed(("a.sh", b"ls\r\n"), ("脚本.sh", "值".encode())))
    assert [(each.name, each.text()) for each in files] == [("a.sh", "ls\n"), ("脚本.sh", "值")]


def test_a_large_file_is_refused_by_its_size_though_none_of_it_came() -> None:
    (large,) = read_files(framed(("core", b""), size=50 * 1024**2))
    with pytest.raises(InputError) as caught:
        large.text()
    assert (
        str(caught.value)
        == "core holds more than 1 MB, the most that serried reads of a launch file"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\x00",
        b"\xff\xff\xff\xff{}",
        framed(("a.sh", b"ls"), sent=3),
        framed(("a.sh", b"ls"), sent=-1),
        framed(("a.sh", b"ls"), sent=True),
        framed(("a.sh", b"ls"), size="2"),
        (2).to_bytes(4, "little") + b"[]",
        (9).to_bytes(4, "little") + b'{"a": [}]',
        (40_000).to_bytes(4, "little") + b"[" * 40_000,
    ],
)
def test_a_body_that_is_none_of_ours_is_said_to_be(body: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_files(body)
    assert str(caught.value) == (
        "the request does not hold files as the page sends them: a length, names with their "
        "sizes, and bytes"
    )
