"""A file that a user names is read only where it has an end, and is no larger than stated."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.finding import said
from serried.user_file import opened, read_bytes, read_text

NOTE = said("a note")


def refusal(path: Path, limit_bytes: int = 1 << 20) -> str:
    with pytest.raises(InputError) as caught:
        read_bytes(path, limit_bytes, NOTE)
    return str(caught.value)


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_bytes(b"x" * 10)
    assert read_bytes(path, 10, NOTE) == b"x" * 10


def test_a_file_beyond_the_limit_is_refused_though_it_is_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "note"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(path) == f"{path} holds more than 1 MB, the most that serried reads of a note"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random", "/dev/null", "/dev/tty"])
def test_a_device_is_never_read(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"no {device} here")
    assert refusal(Path(device)).startswith(f"{device} is a device or a socket")


def test_a_link_to_a_device_is_no_way_round(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.symlink_to("/dev/zero")
    assert "is a device or a socket" in refusal(path)


def test_a_named_pipe_without_a_writer_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert refusal(path) == (
        f"{path} is a named pipe, which may never end; write what it brings to a file and give that"
    )


def test_a_socket_and_a_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert "is a device or a socket" in refusal(path)
    assert refusal(tmp_path) == f"{tmp_path} is a folder, where a file is asked for"


def test_a_pipe_that_is_open_here_is_read_as_the_shell_hands_it_over() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"--tp 2")
        os.close(writing)
        assert read_bytes(Path(f"/dev/fd/{reading}"), 1 << 20, NOTE) == b"--tp 2"
    finally:
        os.close(reading)


def test_of_an_open_pipe_no_more_is_read_than_the_limit() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"x" * 40)
        path = Path(f"/dev/fd/{reading}")
        assert "holds more than" in refusal(path, limit_bytes=10)
    finally:
        os.close(reading)
        os.close(writing)


def test_what_is_not_there_or_cannot_be_named_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert refusal(missing) == f"{missing} cannot be read: No such file or directory"
    assert "a byte of zero in a name" in refusal(Path("a\0b"))
    assert "cannot be read: File name too long" in refusal(Path("x" * 5000))


def test_a_mistake_of_the_reader_is_not_taken_for_one_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match="mine"), opened(path):
        raise ValueError("mine")


def test_text_comes_without_its_mark_and_broken_letters_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_bytes(b"\xef\xbb\xbfa\xff")
    assert read_text(path, 10, NOTE) == "a\ufffd"
