"""The lines of a log that may tell something, read as a stream in bounded memory.

A log of a long job holds gigabytes of progress and a few lines of trouble. Blocks are looked
through for words of trouble, and only lines that hold one, with their neighbours, are taken apart:

    bytes -> unpacked -> blocks -> lines around a telling word -> LogLine

>>> import gzip, tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp(), "rank_3.log.gz")
>>> _ = path.write_bytes(gzip.compress(b"step 1\\n" * 90 + b"ValueError: x\\n"))
>>> log = LogFile(path, "rank_3.log.gz")
>>> [(line.quote.line, line.speaker.rank) for line in log.lines() if "Error" in line.text]
[(91, 3)]
>>> log.num_lines
91
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from serried.diagnose.evidence.log_line import LogLine, log_line
from serried.diagnose.evidence.quote import NOBODY, Numbering, Speaker
from serried.user_file import opened

BLOCK = 1 << 20
"""Bytes that are looked through at a time."""
LONGEST_LINE = 1 << 16
"""Bytes of one line that are read; what a longer one holds beyond is passed over."""
BEFORE, AFTER = 3, 6
"""Lines kept around one that tells something, for what is told in several lines."""

_TELLING = re.compile(
    rb"rror|ERROR|xception|arning|WARN|Traceback|  File |imeout|imed out|TIMEOUT|ailed|FAILED|"
    rb"ailure|FAILURE|ill|KILL|Xid|NVRM|SIG|signal|ProcessGroup|WorkNCCL|OOM|oom|emory|"
    rb"onnect|refused|reset|No space|max_epochs|heckpoint|Saving|saving|MISMATCH|mismatch|"
    rb"[nN]a[nN]\b|NAN\b|\b[Ii]nf\b|abort|Abort|ssert|fault|Fault|Bus |lost|Lost|dead|"
    rb"CANCELLED|cancel|evict|Evict|preempt|Preempt|ncclS|ncclI|ncclR|ncclU|desync|stuck|hang|"
    rb"Send[FB]|Recv[FB]|SEND_|RECV_|thermal|Thermal|Validat|validat|"
    rb"epoch|panic|exit code|exitcode|launched up to|slow|straggler|Unable|denied|"
    rb"sec/step|elapsed time per|gloo|nforce|ran for|Rank |Watchdog|opCount|ulprit|missing ranks|"
    rb"group info|STRAGGLER|traggler|xited|OUT_OF|xit [cC]ode|SXid|\bXID\b"
)
_UNPACKERS: dict[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
ZSTD = b"\x28\xb5\x2f\xfd"
_WIDE = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_FILE_RANK = re.compile(r"(?:^|[^a-z])(?:global_?)?rank[_\-]?(\d+)(?!\d)", re.IGNORECASE)
_TORCHRUN_LOG = re.compile(r"attempt_\d+/(\d+)/(?:stdout|stderr)\.log$")


class LogFile:
    """Reads one log: which lines may tell something, and what was odd about the file."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.num_lines = 0
        self.num_bytes = 0
        self.is_binary = False
        self.is_damaged = False
        """Whether its packing broke off; what came before was read."""

    def lines(self) -> Iterator[LogLine]:
        """Yields the lines around each telling word, in their order.

        Raises InputError where the file cannot be read.
        """
        speaker = file_speaker(str(self.path))
        with opened(self.path) as file:
            for first, texts in self._blocks(file):
                for number, text in _around(first, texts):
                    yield log_line(text, self.name, number, speaker)

    def _blocks(self, file: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
        head = file.read(4096)
        file.seek(0)
        if _is_binary(head):
            self.is_binary = True
            return
        stream = cast(io.BufferedReader, _unpacked(file, head))
        wide = _WIDE.get(head[:2])
        decoder = codecs.getincrementaldecoder(wide)("replace") if wide else None
        rest, number = b"", 1
        while block := self._read(stream):
            self.num_bytes += len(block)
            if decoder:
                block = decoder.decode(block).lstrip("\ufeff").encode()
            if number == 1 and b"\0" in block[:4096]:
                self.is_binary = True
                return
            if block.endswith(b"\r"):  # perhaps half of \r\n, whose other half comes next
                block += self._read(stream)
            lines = (rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            rest = lines.pop()[:LONGEST_LINE]
            self.num_lines = number + len(lines) - 1
            yield number, lines
            number += len(lines)
        if rest:
            self.num_lines = number
            yield number, [rest]

    def _read(self, stream: io.BufferedReader) -> bytes:
        """Returns a block, or what comes before a place where the packing breaks off."""
        parts, size = [], 0
        try:
            while size < BLOCK and (part := stream.read1(BLOCK - size)):
                parts.append(part)
                size += len(part)
        except (EOFError, OSError, zlib.error, lzma.LZMAError):
            self.is_damaged = True
        return b"".join(parts)


def file_speaker(path: str) -> Speaker:
    """Returns whose log a file is by its name.

    >>> file_speaker("logs/rank_12.stderr.log").rank
    12
    >>> file_speaker("none_x/attempt_0/3/stderr.log").numbering
    <Numbering.LOCAL: 'local'>
    """
    if found := _TORCHRUN_LOG.search(path):
        return Speaker(int(found[1]), Numbering.LOCAL)
    found = _FILE_RANK.search(path.rsplit("/", 1)[-1])
    return Speaker(int(found[1])) if found else NOBODY


def _around(first: int, lines: list[bytes]) -> Iterator[tuple[int, str]]:
    """Yields the lines with a telling word and their neighbours within a block."""
    shown = 0
    for place, line in enumerate(lines):
        if _TELLING.search(line, 0, LONGEST_LINE):
            for near in range(max(shown, place - BEFORE), min(place + AFTER + 1, len(lines))):
                yield first + near, lines[near][:LONGEST_LINE].decode("utf-8", "replace")
            shown = max(shown, min(place + AFTER + 1, len(lines)))


def _unpacked(file: BinaryIO, head: bytes) -> object:
    for mark, unpacker in _UNPACKERS.items():
        if head.startswith(mark):
            return unpacker(file)
    return file


def _is_binary(head: bytes) -> bool:
    if head.startswith(tuple(_UNPACKERS)) or head[:2] in _WIDE:
        return False
    return b"\0" in head
