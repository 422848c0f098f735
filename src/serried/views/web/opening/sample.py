"""A sample of a file: its name, how large it is, and its first bytes, unpacked where it is packed.

All that is recognised is recognised from samples, so that a file of a terabyte takes as long to
recognise as one of a kilobyte, and a browser sends no more than this of what nobody can read.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from serried.limits import SAMPLE_BYTES
from serried.user_file import opened

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Sample:
    """Holds what is known of a file before it is read."""

    name: str
    """The name, with the folders between it and what was opened."""
    size_bytes: int
    head: bytes
    """The first bytes as they lie on the disk."""

    @property
    def is_packed(self) -> bool:
        """Whether it is packed by gzip."""
        return self.head.startswith(GZIP)

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all of the file."""
        return len(self.head) >= self.size_bytes

    @cached_property
    def start(self) -> bytes:
        """The first bytes of what it holds, unpacked; none where its packing is damaged."""
        if not self.is_packed:
            return self.head
        unpacker = zlib.decompressobj(wbits=31)
        try:
            return unpacker.decompress(self.head, SAMPLE_BYTES.most)
        except zlib.error:
            return b""

    @cached_property
    def text(self) -> str | None:
        """The first bytes as text, without a letter that the sample cuts; None where it is none."""
        start = self.start.removeprefix(b"\xef\xbb\xbf")
        if b"\0" in start:
            return None
        text = start.decode("utf-8", "replace").rstrip("\ufffd")
        # A log may hold a stray byte; where every tenth letter is none, it is no text at all.
        return None if text.count("\ufffd") * 10 > len(text) else text


def sample_of(path: Path, name: str = "", most_bytes: int = SAMPLE_BYTES.most) -> Sample:
    """Returns a sample of a file; raises InputError where it cannot be read."""
    with opened(path) as file:
        head = file.read(most_bytes)
        return Sample(name or path.name, max(path.stat().st_size, len(head)), head)
