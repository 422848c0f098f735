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
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, cast

from serried.diagnose.evidence.columns import uncolumned
from serried.diagnose.evidence.escaped import unescaped
from serried.diagnose.evidence.log_line import LogLine, log_line
from serried.diagnose.evidence.quote import NOBODY, Numbering, Speaker
from serried.diagnose.evidence.wrapped import unwrapped
from serried.finding import said
from serried.trace.model.progress import Listener, unheard
from serried.user_file import opened

BLOCK = 1 << 20
"""Bytes that are looked through at a time."""
LONGEST_LINE = 1 << 13
"""Bytes of one line that are read; what a longer one holds beyond is passed over: no sentence of
torch's is as long, and patterns may take time that grows with the square of a line."""
LEFT_OUT = b" ... "
HALF = (LONGEST_LINE - len(LEFT_OUT)) // 2
"""Bytes that are read of a longer line at either end: an error may follow a bar without an end."""
TOLD_EVERY = 1 << 28
"""Unpacked bytes after which progress is told."""
MOST_SHAPES, LONGEST_SHAPE = 20_000, 2_000
"""Shapes of lines that are remembered, and how long one may be: at most 40 MB."""
SHORT = 1 << 18
"""Bytes of a log that may be a copy from a terminal, whose width broke its lines."""
OFTEN = 500
"""Times that a shape of lines is shown with its neighbours; a warning may come with every step."""
BEFORE, AFTER = 3, 6
"""Lines kept around one that tells something, for what is told in several lines."""

_TELLING = re.compile(
    rb"[eE]rror|ERROR|xception|WARN|[wW]arning|Traceback|  File |[tT]ime(?:out|d out)|TIMEOUT|"
    rb"[fF]ail|FAIL|[kK]ill|KILL|XID|[xX]id |SXid|NVRM|SIG|signal|ProcessGroup|WorkNCCL|"
    rb"OOM|oom|OUT_OF|MEMORY|out of [GCdV]|(?:of|on|shared|allocate|illegal) memory|"
    rb"emory (?:limit|cgroup|access|usage)|onnect|refused|reset|No space|max_epochs|train_runtime|"
    rb"Loading|[sS]aving|about to be saved|MISMATCH|ismatch|[tT]okeniz|[bB]uilding|[pP]reprocess|"
    rb"\b(?:nan|NaN|Nan|NAN|inf|Inf)\b(?! iterations)|bort|ssert|(?<!de)[fF]ault|Bus |[lL]ost\b|"
    rb"\bdead|CANCELLED|vict|reempt|desync|stuck|Send[FB]|Recv[FB]|SEND_?[FB]|RECV_?[FB]|hermal|"
    rb"alidat|panic|[eE]xit[ _](?:[cC]ode|status)|xitcode|exited|Exited \(|unexpectedly|"
    rb"launched up to|managed by|"
    rb"receive grad|finished reduction|traggler|STRAGGLER|gloo|nforce|ran for|atchdog|"
    rb"opCount|ulprit|group info|clients joined|dump signal|Stalled|(?:ready|missing) ranks|"
    rb"/task:\d|RmInit|non-zero exit|imes out|\b(?:[hH]ang|hung|HANG)|issing rank|\b[dD]own\b|"
    rb"DOWN|"
    rb"fallen|hrottl|THROTTL|lowdown|nvalid|nsupported|nsufficient|slots|[uU]nable|[cC]annot|"
    rb"(?:an't|ould not) |[nN]ot (?:found|ready|respond|be |(?:yet )?(?:reach|join|arriv))|"
    rb"Back-off|"
    rb"reclaim|nreachable|nterrupt|"
    rb"[tT]erminat|scancel|uspend|blocked for|on-finite|OVERFLOW|undefined|smash|orrupt|dumped|"
    rb"No devices|crash|CRASH|maintenance|lockup|LOCKUP|FATAL|CRITICAL|Caching|slower|inished|"
    rb"EXIT (?:CODE|STRING)|SIGNAL|rev ff|ERR!|total_vm|already (?:checked|use)|_implementation|"
    rb"examples/s|rank < size|bad_alloc|truncated|straggl|slow node|relative performance|"
    rb"MPI_|completion status|HEARTBEAT|ancel|emap|etadata|agic bytes|adZip|HSA_|ptxas|"
    rb"verflow|isconnect|task timeout|Duplicate GPU|BackOff|Machine Check|running collective|"
    rb"lagging|world_rank=|returned nan|num_local_procs|node.rank|nproc|al_ranks=|low on resource|"
    rb"REEMPT|NotReady|NodeLost|JobState=|xitCode|^N(?:am|od)e: |^ +(?:Last )?State: |0/\d+ +Error|"
    rb"Etcd|have status|xceeds|"
    rb"raining (?:is )?(?:complete|done)|xiting program|after training|been shut|"
    rb"owering |Power key|\(total\)|per comm|NCOMPLETE|nresponsive|NodeStatus|"
    rb"of? heartbeat| KV cache|pile takes|ing weights|AdmissionError|DUE TO|\bD\w{0,4} +\w+_|"
    rb"bus bandwidth|OSU MPI|reported by process|endezvous|enqueued|all ranks|return[ _]code|"
    rb"denied|OpType=|socket interface|different status|"
    rb"\.py:\d{1,7}\)\s*$|Thread \S{1,30} \(|^ *Process \d+: |#\d{1,3} +0x[0-9a-f]+ in |"
    + "已杀死|段错误|store.based barrier|estart".encode()
)
_UNPACKERS: dict[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_UNSEEN = (("\u00a0".encode(), b" "), ("\u200b".encode(), b""))
"""Spaces of web pages that look like one space or like none."""
_ESCAPED, _LAID_OUT = b"\\n", b".py:"
"""What stands in lines that hold others, and in those that a logger laid out in columns."""
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"
TAR, TAR_AT = b"ustar", 257
_WIDE = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_FILE_RANK = re.compile(r"(?:^|[^a-z])(?:global_?)?rank[_\-]?(\d+)(?!\d)", re.IGNORECASE)
_TORCHRUN_LOG = re.compile(r"attempt_\d+/(\d+)/(?:stdout|stderr)\.log$")

Beside = Callable[[str, Speaker, int, list[bytes]], None]
"""Hears every block of a file: its name, whose it is, the number of the first line, the lines."""


class LogFile:
    """Reads one log: which lines may tell something, and what was odd about the file."""

    def __init__(
        self, path: Path, name: str, hear: Listener = unheard, beside: Sequence[Beside] = ()
    ) -> None:
        self.path = path
        self.name = name
        self._hear = hear
        self._beside = beside
        self.num_lines = 0
        self.num_bytes = 0
        self.is_binary = False
        self.is_sealed = False
        """Whether it is packed in a way that this Python cannot unpack."""
        self.is_archive = False
        """Whether it holds files, as zip and tar do, which are not unpacked here."""
        self.is_damaged = False
        """Whether its packing broke off; what came before was read."""

    def lines(self) -> Iterator[LogLine]:
        """Yields the lines around each telling word, in their order.

        Raises InputError where the file cannot be read.
        """
        speaker = file_speaker(str(self.path))
        shapes: dict[bytes, int] = {}
        with opened(self.path) as file:
            for first, texts in self._blocks(file):
                for listen in self._beside:
                    listen(self.name, speaker, first, texts)
                is_short = first == 1 and sum(map(len, texts)) < SHORT
                rows = _as_printed(texts)
                rows = _put_together(rows) if is_short else rows
                for place, text in _around(rows, shapes):
                    yield log_line(text, self.name, first + place, speaker)

    def _blocks(self, file: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
        head = file.read(4096)
        file.seek(0)
        if head.startswith(ZSTD) and _zstd() is None:
            self.is_sealed = True
            return
        if head.startswith(ZIP):
            self.is_archive = True
            return
        wide = _WIDE.get(head[:2]) or _wide_without_mark(head)
        if head[TAR_AT:].startswith(TAR):
            self.is_archive = True
            return
        if _is_binary(head) and not wide:
            self.is_binary = True
            return
        stream = cast(io.BufferedReader, _unpacked(file, head))
        decoder = codecs.getincrementaldecoder(wide)("replace") if wide else None
        rest, number = b"", 1
        while block := self._read(stream):
            self._count(len(block))
            if decoder:
                block = decoder.decode(block).lstrip("\ufeff").encode()
            if number == 1 and not rest and b"\0" in block[:4096]:
                self.is_archive = block[TAR_AT:].startswith(TAR)
                self.is_binary = not self.is_archive
                return
            if block.endswith(b"\r"):  # perhaps half of \r\n, whose other half comes next
                block += self._read(stream)
            lines = _plain(rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            rest = _shortened(lines.pop())
            if number == 1 and len(block) < SHORT and rest:  # its last line has no end
                lines, rest = [*lines, rest], b""
            self.num_lines = number + len(lines) - 1
            yield number, lines
            number += len(lines)
        if rest:
            self.num_lines = number
            yield number, [rest]

    def _count(self, num_bytes: int) -> None:
        """Counts bytes, and says so where a log is so long that a reader wonders."""
        before, self.num_bytes = self.num_bytes, self.num_bytes + num_bytes
        if self.num_bytes // TOLD_EVERY > before // TOLD_EVERY:
            self._hear(
                said(
                    "{gigabytes:.1f} GB of {name} are read",
                    gigabytes=self.num_bytes / 1e9,
                    name=self.name,
                )
            )

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


def _as_printed(lines: list[bytes]) -> list[tuple[int, bytes]]:
    """Returns lines with those that were escaped or laid out in columns as they were printed."""
    rows = list(enumerate(lines))
    if any(_ESCAPED in line for line in lines):
        rows = [(place, part) for place, line in rows for part in unescaped(line)]
    return uncolumned(rows) if any(_LAID_OUT in line for line in lines) else rows


def _put_together(lines: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Returns lines with what a terminal broke off them, as far as they may be such a copy."""
    rows = unwrapped([line.decode("utf-8", "replace") for _, line in lines])
    return [(lines[number][0], text.encode()) for number, text in rows]


def _around(rows: list[tuple[int, bytes]], shapes: dict[bytes, int]) -> Iterator[tuple[int, str]]:
    """Yields the lines with a telling word and their neighbours within a block."""
    shown = 0
    for index, (_, line) in enumerate(rows):
        if times := _times_told(_shortened(line), shapes):
            before, after = (BEFORE, AFTER) if times <= OFTEN else (0, 0)
            for place, near in rows[max(shown, index - before) : index + after + 1]:
                yield place, _shortened(near).decode("utf-8", "replace")
            shown = max(shown, min(index + after + 1, len(rows)))


def _times_told(line: bytes, shapes: dict[bytes, int]) -> int:
    """Returns how often a line of this shape was met, 0 for one without a telling word.

    A job repeats its lines with other digits, and a look-up costs a hundredth of a search.
    """
    shape = line.translate(None, b"0123456789")
    times = shapes.get(shape)
    if times == 0:
        return 0
    is_told = times is not None or _TELLING.search(line, 0, LONGEST_LINE) is not None
    times = (times or 0) + 1 if is_told else 0
    if shape in shapes or (len(shapes) < MOST_SHAPES and len(shape) < LONGEST_SHAPE):
        shapes[shape] = times
    return times


def _plain(block: bytes) -> bytes:
    """Returns text with spaces in place of those that web pages put for them."""
    for unseen, seen in _UNSEEN:
        if unseen in block:
            block = block.replace(unseen, seen)
    return block


def _shortened(line: bytes) -> bytes:
    """Returns a line with its middle left out where it is too long."""
    if len(line) <= LONGEST_LINE:
        return line
    return line[:HALF] + LEFT_OUT + line[-HALF:]


def _wide_without_mark(head: bytes) -> str | None:
    """Returns the encoding of two bytes a letter by its zeros, where no mark tells it."""
    for place, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, letters = head[place::2], head[1 - place :: 2]
        if len(head) > 8 and zeros.count(0) > 0.9 * len(zeros) and b"\0" not in letters:
            return name
    return None


def _unpacked(file: BinaryIO, head: bytes) -> object:
    for mark, unpacker in _UNPACKERS.items():
        if head.startswith(mark):
            return unpacker(file)
    zstd = _zstd() if head.startswith(ZSTD) else None
    return zstd(file) if zstd else file


def _zstd() -> Callable[[BinaryIO], object] | None:
    """Returns what unpacks zstd, which Python brings from 3.14 on."""
    try:
        opener: Callable[[BinaryIO], object] = import_module("compression.zstd").ZstdFile
    except ImportError:
        return None
    return opener


def _is_binary(head: bytes) -> bool:
    if head.startswith(ZSTD):
        return False
    if head.startswith(tuple(_UNPACKERS)) or head[:2] in _WIDE:
        return False
    return b"\0" in head
