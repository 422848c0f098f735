"""Training data: real text as bytes, read from its files when it is wanted, and in which order.

text               | training                                   | held out for validation |
samples            | in the order of SampleOrder, all epochs     | each once               |

global batch       | sample n | n+1 | n+2 | n+3 | n+4 | n+5 | n+6 | n+7 |
2 microbatches     | 0                          | 1                     |
dp 2               | rank 0         | rank 1    | rank 0    | rank 1    |
"""

from __future__ import annotations

import hashlib
import sysconfig
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.finding import said
from serried.runtime.job.parallel import require_even_batch

Bytes = NDArray[np.uint8]

LOOKED_AT = 8192
"""Bytes at the start of a file that tell whether it is text: as git, by a byte of zero."""


ROUNDS = 4
"""Four rounds of a Feistel network give a permutation that looks random (Luby and Rackoff 1988)."""


@dataclass(frozen=True)
class SampleOrder:
    """Says where each sample of a run begins in a text of ``length`` bytes or tokens.

    Every sequence comes once an epoch, shuffled by the seed, as numbers count over the whole run:

        text         | sequence 0 | sequence 1 | … | sequence n-1 | a rest shorter than one
        number       0 1 2 … n-1 | n … 2n-1 | …
        epoch            0       |     1    | …       each in an order of its own

    The n-th sample is a pure function of the seed and n: no list of n places is kept, no layout
    or batch size changes it, and a run goes on at any number as if it had read all before.

    A sample is ``seq_len`` of them and the one after, which is the next sample's first.

    >>> order = SampleOrder(length=41, seq_len=8, seed=0)
    >>> order.num_sequences, sorted(order.place(number) for number in range(5))
    (5, [0, 8, 16, 24, 32])
    """

    length: int
    seq_len: int
    seed: int

    @property
    def num_sequences(self) -> int:
        """How many samples an epoch has."""
        return (self.length - 1) // self.seq_len

    def place(self, number: int) -> int:
        """Returns the place at which sample ``number`` of the run begins."""
        epoch, place = divmod(number, self.num_sequences)
        rest = (self.length - 1) % self.seq_len
        # Epochs are cut at different places, so that the rest at the end is read by some.
        shift = _drawn(f"{self.seed}/{epoch}/shift") % (rest + 1) if epoch else 0
        return shift + self.seq_len * self._shuffled(epoch, place)

    def _shuffled(self, epoch: int, place: int) -> int:
        """Returns what stands at ``place`` of an epoch's permutation of all sequences.

        A Feistel network permutes 2^(2 half) numbers; those that fall outside walk on until
        they are inside, which keeps it a permutation.
        """
        half = max(1, ((self.num_sequences - 1).bit_length() + 1) // 2)
        mask = (1 << half) - 1
        while True:
            left, right = place >> half, place & mask
            for turn in range(ROUNDS):
                drawn = _drawn(f"{self.seed}/{epoch}/{turn}/{right}")
                left, right = right, left ^ (drawn & mask)
            place = left << half | right
            if place < self.num_sequences:
                return place


@dataclass(frozen=True)
class BatchShare:
    """Says which samples of each global batch a data parallel rank reads, in the pipeline's order.

    >>> [BatchShare(8, microbatches=2, dp=2, rank=rank).numbers(0) for rank in range(2)]
    [[0, 1, 4, 5], [2, 3, 6, 7]]

    A microbatch of all ranks together has the same samples for any dp. Raises InputError where
    the batch cannot be shared out evenly.
    """

    global_batch_size: int
    """Samples in a step, over all ranks."""
    microbatches: int
    """Parts of a rank's share that run one by one."""
    dp: int
    rank: int
    """The rank's place on dp."""

    def __post_init__(self) -> None:
        require_even_batch(self.global_batch_size, dp=self.dp, microbatches=self.microbatches)

    @property
    def microbatch_size(self) -> int:
        """Samples in one microbatch on this rank."""
        return self.global_batch_size // (self.dp * self.microbatches)

    def numbers(self, first: int) -> list[int]:
        """Returns the run's numbers of this rank's samples in the batch that begins at ``first``.

        The pipeline takes them in this order, ``microbatch_size`` at a time.
        """
        size = self.microbatch_size
        begins = range(first + self.rank * size, first + self.global_batch_size, self.dp * size)
        return [begin + row for begin in begins for row in range(size)]


def _drawn(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Corpus:
    """Holds the files of a text and where each ends; bytes are read when they are wanted."""

    files: tuple[Path, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, path: Path | None) -> Corpus:
        """Finds the text files under ``path``, sorted; None means the standard library's sources.

        Binary files of a folder are passed over. Raises InputError when nothing stands there,
        or a file that is not text.
        """
        files = tuple(_standard_library() if path is None else _files_under(path))
        return cls(files, tuple(accumulate(file.stat().st_size for file in files)))

    size: ClassVar[int] = 256
    """One more than the largest byte."""

    @property
    def num_tokens(self) -> int:
        """Tokens in all files: a byte is one."""
        return self.num_bytes

    @property
    def num_bytes(self) -> int:
        """Bytes in all files together."""
        return self.ends[-1] if self.ends else 0

    def require(self, seq_len: int, path: Path | None, *, held_out: int = 0) -> None:
        """Raises InputError when the text is too short for a sample and those held out."""
        name = path or said("the standard library")
        if self.num_bytes <= seq_len:
            raise InputError(
                "{path} holds {found} bytes of text; a sequence of {seq_len} takes {least}",
                path=name,
                found=self.num_bytes,
                seq_len=seq_len,
                least=seq_len + 1,
            )
        if self.num_bytes <= (held_out + 1) * seq_len:
            raise InputError(
                "{path} holds {found} bytes of text; {held_out} sequences of {seq_len} for "
                "validation, and one to train on, take {least}; hold out at most {fits}",
                path=name,
                found=self.num_bytes,
                held_out=held_out,
                seq_len=seq_len,
                least=(held_out + 1) * seq_len + 1,
                fits=(self.num_bytes - 1) // seq_len - 1,
            )

    def order(self, *, seq_len: int, seed: int, held_out: int = 0) -> SampleOrder:
        """Returns the order of samples from all but the last ``held_out`` sequences."""
        return SampleOrder(self.num_bytes - held_out * seq_len, seq_len, seed)

    def batch(self, places: Iterable[int], length: int) -> Bytes:
        """Returns ``length`` bytes from each of ``places``: shape (places, length)."""
        return np.stack([self.read(place, length) for place in places])

    def read(self, place: int, length: int) -> Bytes:
        """Returns ``length`` bytes from ``place`` on, over the ends of files where it must.

        Raises InputError when a file has gone or become shorter.
        """
        parts: list[bytes] = []
        number = bisect_right(self.ends, place)
        while length:
            first = self.ends[number - 1] if number else 0
            wanted = min(length, self.ends[number] - place)
            part = _read_file(self.files[number], place - first, wanted)
            if len(part) < wanted:
                raise InputError("{path} became shorter during the run", path=self.files[number])
            parts.append(part)
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
        files = sorted(each for each in path.rglob("*") if each.is_file())
        return [file for file in files if _zero_in(file) is None]
    if not path.exists():
        raise InputError("{path} does not exist; data is a file or a folder of text", path=path)
    if not path.is_file():
        raise InputError(
            "{path} is neither a file nor a folder; data is a file or a folder of text", path=path
        )
    # A folder may hold other files beside text; a file that is named itself was meant to be read.
    zero = _zero_in(path)
    if zero is not None:
        raise InputError(
            "{path} is not text: its byte {place} is zero; data is a file of text, or a folder "
            "whose binary files are passed over",
            path=path,
            place=zero,
        )
    return [path]


def _zero_in(file: Path) -> int | None:
    """Returns where the first byte of zero stands near the start of ``file``; None in text."""
    try:
        with file.open("rb") as opened:
            place = opened.read(LOOKED_AT).find(0)
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=file, reason=error.strerror
        ) from error
    return None if place < 0 else place
