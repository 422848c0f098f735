"""What a request sends is taken in bounded time and room, however slowly or long it comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.limits import FOLDER_BYTES, Limit
from serried.views.web import bounds
from serried.views.web.wire import arriving
from serried.views.web.wire.arriving import hear_out, read_body, receive
from serried.views.web.wire.coming import Coming
from tests.apart import run_apart

SHORT = Limit(0, "s", "a test")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves no time for what does not come at once."""
    monkeypatch.setattr(arriving, "ANSWER_SECONDS", SHORT)
    monkeypatch.setattr(bounds, "ANSWER_SECONDS", SHORT)


async def stalling(*pieces: bytes) -> AsyncIterator[bytes]:
    """Yields pieces, and then never another one."""
    for piece in pieces:
        yield piece
    await asyncio.Event().wait()


def announced(size: int) -> bytes:
    head = json.dumps({"name": "runs", "files": [{"name": "a", "size": size}]}).encode()
    return len(head).to_bytes(4, "little") + head


def take(_: Coming) -> None:
    """Has room for all."""


async def received(chunks: AsyncIterator[bytes], folder: Path) -> Coming:
    return await receive(chunks, folder, take)


def test_a_body_beyond_all_launch_files_is_read_to_its_end_and_then_refused() -> None:
    read = []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(17):
            read.append(number)
            yield bytes(1024**2)

    with pytest.raises(InputError) as caught:
        run_apart(read_body(chunks(), "launch"))
    assert (len(read), FOLDER_BYTES.most) == (17, 16 * 1024**2)
    assert str(caught.value) == (
        "what was given holds 17 MB; at most 16 MB are taken at once, and only the launch "
        "files are needed"
    )


@pytest.mark.usefixtures("short")
def test_a_body_that_stops_coming_is_refused() -> None:
    with pytest.raises(InputError, match="recognise took more than 0 s and was ended"):
        run_apart(read_body(stalling(b"12"), "recognise"))


@pytest.mark.usefixtures("short")
def test_a_list_of_files_that_stops_coming_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="open took more than 0 s and was ended"):
        run_apart(received(stalling(announced(3)[:9]), tmp_path))


@pytest.mark.usefixtures("short")
def test_files_that_stop_coming_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run_apart(received(stalling(announced(3), b"12"), tmp_path))
    assert str(caught.value) == (
        "runs had not come whole after 0 s, so it is not opened; serried serve PATH opens it "
        "where it lies"
    )


@pytest.mark.usefixtures("short")
def test_what_is_refused_is_not_heard_without_end() -> None:
    run_apart(hear_out(stalling(b"12")))
