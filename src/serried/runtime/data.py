"""Training data: real text as bytes, and which bytes each sample of each step is.

Sample i of step s is a pure function of the seed, s and i, so the global batch and its
order are the same whatever the layout:

    global batch of a step   | sample 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
    dp 2, 2 microbatches     | rank 0: mb 0 | mb 1  | rank 1: mb 0 | mb 1 |
"""

from __future__ import annotations

import hashlib
import sysconfig
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Corpus:
    """Holds the files of a text and where each ends; bytes are read when they are wanted."""

    files: tuple[Path, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, path: Path | None) -> Corpus:
        """Finds the files under ``path``, sorted; None means the standard library's sources.

        Raises InputError when nothing stands there.
        """
        files = tuple(_standard_library() if path is None else _files_under(path))
        return cls(files, tuple(accumulate(file.stat().st_size for file in files)))

    @property
    def num_bytes(self) -> int:
        """Bytes in all files together."""
        return self.ends[-1] if self.ends else 0

    def require(self, seq_len: int, path: Path | None) -> None:
        """Raises InputError when the text is too short for one sample of ``seq_len``."""
        if self.num_bytes <= seq_len:
            raise InputError(
                "{path} holds {found} bytes of text; a sequence of {seq_len} takes {least}",
                path=path or "the standard library",
                found=self.num_bytes,
                seq_len=seq_len,
                least=seq_len + 1,
            )

    def sample(self, *, seed: int, step: int, index: int, length: int) -> Bytes:
        """Returns sample ``index`` of ``step``: ``length`` bytes from a place the seed picks."""
        key = hashlib.blake2b(f"{seed}/{step}/{index}".encode(), digest_size=8).digest()
        return self._read(int.from_bytes(key, "big") % (self.num_bytes - length + 1), length)

    def batch(self, *, seed: int, step: int, samples: range, length: int) -> NDArray[np.int64]:
        """Returns ``samples`` of ``step``: shape (samples, length)."""
        rows = [self.sample(seed=seed, step=step, index=i, length=length) for i in samples]
        return np.stack(rows).astype(np.int64)

    def _read(self, place: int, length: int) -> Bytes:
        """Returns ``length`` bytes from ``place`` on, over the ends of files where it must."""
        parts: list[bytes] = []
        number = bisect_right(self.ends, place)
        while length:
            first = self.ends[number - 1] if number else 0
            part = _read_file(self.files[number], place - first, length)
            wanted = min(length, self.ends[number] - place)
            if len(part) < wanted:
                raise InputError("{path} became shorter during the run", path=self.files[number])
            parts.append(part[:wanted])
            place, length, number = place + wanted, length - wanted, number + 1
        return np.frombuffer(b"".join(parts), dtype=np.uint8)


def _read_file(file: Path, place: int, length: int) -> bytes:
    try:
        with file.open("rb") as opened:
            opened.seek(place)
            return opened.read(length)
    except OSError as error:
        raise InputError(
            "{path} cannot be read any more: {reason}", path=file, reason=error.strerror
        ) from error


def _standard_library() -> list[Path]:
    """Returns the library's top-level modules: real text that is on every machine."""
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


def _files_under(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(each for each in path.rglob("*") if each.is_file())
    if not path.exists():
        raise InputError("{path} does not exist; data is a file or a folder of text", path=path)
    return [path]
