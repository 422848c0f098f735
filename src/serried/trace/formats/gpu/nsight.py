"""Nsight Systems' exports as activity: the SQLite file of ``nsys export --type sqlite``.

    StringIds                     id, value                        every name, once
    CUPTI_ACTIVITY_KIND_KERNEL    start end deviceId streamId correlationId globalPid demangledName
    CUPTI_ACTIVITY_KIND_MEMCPY    … bytes copyKind
    CUPTI_ACTIVITY_KIND_MEMSET    … bytes
    CUPTI_ACTIVITY_KIND_RUNTIME   start end globalTid correlationId nameId
    NVTX_EVENTS                   start end text textId globalTid  the program's own ranges
    TARGET_INFO_…                 the host, its GPUs, when the session began

Times are nanoseconds since the session began. A report is of one node, so it may hold several
processes: each that drove a GPU is a rank. Which rank is not said; a file with one process has the
number that its name says (``rank3.sqlite``), else they are numbered in order of files, devices and
processes. Ranges called ``step 3``, ``iteration 3`` or ``ProfilerStep#3`` are steps.

The file is opened for reading only, and of it only these plain tables are asked: a view or a
virtual table of such a name, which could compute without end, is refused.

Source: the schema of Nsight Systems 2023.1 to 2025.3, User Guide, "SQLite Schema Reference".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from serried.errors import InputError
from serried.finding import Finding, said
from serried.trace.formats.event_file import natural
from serried.trace.formats.gpu.columns import GrowingActivity
from serried.trace.formats.gpu.job import gpu_trace
from serried.trace.formats.gpu.torch_profiler import rank_of
from serried.trace.gpu.activity import CallKind, GpuRank, GpuTrace, OperationKind
from serried.trace.gpu.kind import kind_of
from serried.user_file import opened

if TYPE_CHECKING:
    import sqlite3

TOOL = "Nsight Systems"
REPORTS = (".nsys-rep", ".sqlite", ".sqlite3", ".db")
"""How its files end: its own reports, and what it exports of them."""
_MAGIC = b"SQLite format 3\x00"
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "NVTX_EVENTS"
_PROCESS = ~0xFFFFFF
"""What a thread's number and its process's have alike."""
_WAYS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_STEP = re.compile(r"(?:ProfilerStep|step|iteration|iter)[ _#:=]*(\d{1,9})", re.IGNORECASE)
_VERSION = re.compile(r"_v\d+(_ptsz)?$")
_NAMED = re.compile(r"rank[_-]?(\d{1,7})", re.IGNORECASE)
_NAME_LETTERS = 1 << 16
_HOST_LETTERS = 255

Row = tuple[object, ...]


def is_nsight(path: Path) -> bool:
    """Tells whether ``path`` is an SQLite file, as Nsight Systems exports."""
    if path.suffix not in REPORTS[1:] or not path.is_file():
        return False
    with opened(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC


def nsight_trace(paths: Sequence[Path]) -> GpuTrace:
    """Returns the trace of one job's exports, of a node each.

    Raises InputError for a file that is none, that is damaged, or in which no GPU did anything.
    """
    by_name = sorted(paths, key=lambda path: (natural(path.name), str(path)))
    found = [(path, _processes(path)) for path in by_name]
    total = sum(len(processes) for _, processes in found)
    named = [_NAMED.search(path.name) for path, _ in found]
    numbers = [int(match[1]) for match in named if match]
    ranks: list[GpuRank] = []
    is_named = total == len(found) == len({*numbers})
    for path, processes in found:
        for process in processes:
            number = numbers[len(ranks)] if is_named else len(ranks)
            ranks.append(process.rank(number, path))
    guess = said("Nsight Systems names no rank: they are numbered in order of files and devices")
    findings = [] if is_named or total == 1 else [Finding("ranks", (guess,))]
    return gpu_trace(TOOL, ranks, findings)


class _Process:
    """Holds what one process did, while it is read."""

    def __init__(self, path: Path) -> None:
        self.columns = GrowingActivity(path)
        self.first_device = 1 << 30
        self.host = ""
        self.gpu = ""
        self.began_ns = 0

    def rank(self, number: int, path: Path) -> GpuRank:
        return rank_of(
            self.columns, number, path, host=self.host, gpu=self.gpu, base_ns=self.began_ns
        )


def _processes(path: Path) -> list[_Process]:
    """Returns the processes of a file that drove a GPU, by device and number."""
    with opened(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InputError(
                "{path} is no SQLite file; nsys export --type sqlite writes one", path=path
            )
    import sqlite3

    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as file:
            return _Export(path, file).processes()
    except sqlite3.Error as error:
        raise InputError("{path} cannot be read: {reason}", path=path, reason=error) from error


class _Export:
    """Reads the tables of one file."""

    def __init__(self, path: Path, file: sqlite3.Connection) -> None:
        self._path = path
        self._file = file
        file.execute("PRAGMA trusted_schema=OFF")
        self._tables = self._plain_tables()
        self._names = {
            key: str(value)[:_NAME_LETTERS] for key, value in self._rows("StringIds", "id", "value")
        }
        self._found: dict[int, _Process] = defaultdict(lambda: _Process(path))

    def processes(self) -> list[_Process]:
        """Returns the processes that drove a GPU."""
        self._kernels()
        self._moves(_COPIES)
        self._moves(_FILLS)
        for process in [
            key for key, each in self._found.items() if not each.columns.num_operations
        ]:
            del self._found[process]
        if not self._found:
            raise InputError(
                "{path} holds no kernel and no copy of a GPU; record with nsys profile "
                "--trace=cuda,nvtx, then nsys export --type sqlite",
                path=self._path,
            )
        self._calls()
        self._ranges()
        self._about()
        ordered = sorted(self._found.items(), key=lambda each: (each[1].first_device, each[0]))
        return [process for _, process in ordered]

    def _plain_tables(self) -> dict[str, frozenset[str]]:
        """Returns the columns of each table; nothing of views and virtual tables."""
        wanted = (_KERNELS, _COPIES, _FILLS, _CALLS, _RANGES, "StringIds")
        about = ("TARGET_INFO_GPU", "TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_SESSION_START_TIME")
        found = {}
        for name, kind, text in self._file.execute("SELECT name, type, sql FROM sqlite_master"):
            if name not in (*wanted, *about):
                continue
            if kind != "table" or not str(text).upper().startswith("CREATE TABLE"):
                raise InputError(
                    "{path} holds {name} as no plain table, so it is no export of Nsight Systems",
                    path=self._path,
                    name=name,
                )
            columns = self._file.execute(f"PRAGMA table_info({name})")
            found[name] = frozenset(str(column[1]) for column in columns)
        return found

    def _rows(self, table: str, *columns: str) -> Iterator[Row]:
        """Yields columns of a table, NULL for those it lacks; nothing where there is no table."""
        if (known := self._tables.get(table)) is None:
            return iter(())
        chosen = ", ".join(f'"{each}"' if each in known else "NULL" for each in columns)
        # Names of serried's own code, which the file was just found to have.
        return iter(self._file.execute(f"SELECT {chosen} FROM {table}"))  # nosec B608

    def _name(self, key: object) -> str:
        return self._names.get(key, "") if isinstance(key, int) else str(key or "")[:_NAME_LETTERS]

    def _kernels(self) -> None:
        columns = "start", "end", "globalPid", "deviceId", "streamId", "correlationId"
        names = "demangledName", "shortName"
        for start, end, process, device, stream, number, full, short in self._rows(
            _KERNELS, *columns, *names
        ):
            name = self._name(full) or self._name(short) or "kernel"
            self._operation(name, kind_of(name), start, end, process, device, stream, number, -1)

    def _moves(self, table: str) -> None:
        columns = "start", "end", "globalPid", "deviceId", "streamId", "correlationId"
        for start, end, process, device, stream, number, size, way in self._rows(
            table, *columns, "bytes", "copyKind"
        ):
            name = f"Memcpy {_WAYS.get(_whole(way), 'Unknown')}" if table == _COPIES else "Memset"
            kind = OperationKind.MEMORY
            self._operation(name, kind, start, end, process, device, stream, number, _whole(size))

    def _operation(
        self,
        name: str,
        kind: OperationKind,
        start: object,
        end: object,
        process: object,
        device: object,
        stream: object,
        correlation: object,
        size: int,
    ) -> None:
        if not isinstance(start, int) or not isinstance(end, int):
            return
        mine = self._found[_whole(process, 0)]
        mine.first_device = min(mine.first_device, _whole(device, 0))
        mine.columns.operation(
            name,
            kind,
            start,
            end,
            device=_whole(device, 0),
            stream=_whole(stream, 0),
            correlation=_whole(correlation),
            size_bytes=size,
        )

    def _calls(self) -> None:
        columns = "start", "end", "globalTid", "correlationId", "nameId"
        for start, end, thread, correlation, name in self._rows(_CALLS, *columns):
            if (mine := self._of(thread)) is None:
                continue
            if isinstance(start, int) and isinstance(end, int):
                called = _VERSION.sub("", self._name(name)) or "call"
                number = _whole(correlation)
                mine.columns.call(called, CallKind.DRIVER, start, end, thread, number)

    def _ranges(self) -> None:
        columns = "start", "end", "globalTid", "text", "textId"
        for start, end, thread, text, key in self._rows(_RANGES, *columns):
            name = str(text)[:_NAME_LETTERS] if text else self._name(key)
            mine = self._of(thread)
            # A mark has no end.
            if mine is None or not name or not isinstance(start, int) or not isinstance(end, int):
                continue
            mine.columns.call(name, CallKind.RANGE, start, end, thread)
            if step := _STEP.fullmatch(name):
                mine.columns.step(int(step[1]), start, end)

    def _of(self, thread: object) -> _Process | None:
        """Returns the process of a thread; None for one that drove no GPU."""
        process = _whole(thread, 0) & _PROCESS
        # Exports of one process before 2021 number none.
        return self._found.get(process) or (self._found.get(0) if len(self._found) == 1 else None)

    def _about(self) -> None:
        hosts = [
            str(value)[:_HOST_LETTERS]
            for name, value in self._rows("TARGET_INFO_SYSTEM_ENV", "name", "value")
            if name == "Hostname"
        ]
        gpus = {_whole(key): str(name) for key, name in self._rows("TARGET_INFO_GPU", "id", "name")}
        began = [_whole(at) for (at,) in self._rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")]
        for each in self._found.values():
            each.host = next(iter(hosts), "")
            each.gpu = gpus.get(each.first_device, next(iter(gpus.values()), ""))
            each.began_ns = max(0, next(iter(began), 0))


def _whole(value: object, otherwise: int = -1) -> int:
    return value if isinstance(value, int) and abs(value) < 2**62 else otherwise
