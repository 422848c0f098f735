"""Megatron-LM's printed timers: totals of a step, by timer and rank, without time stamps.

     iteration       10/     100 | … | elapsed time per iteration (ms): 822.4 | … |
    (min, max) time across ranks (ms):                                   --timing-log-option minmax
        forward-compute ................................: (161.60, 166.45)
    max time across ranks (ms):                                                              max
        forward-compute ................................: 166.45
    times across ranks (ms):                                                                 all
      forward-compute:
         rank  0: 161.60

One rank prints, after every ``--log-interval`` iterations; the numbers are means over those.
Only iteration 1 is printed before its interval is over: its totals are divided by the whole
interval though they are of one step, so they are left out. The oldest form, ``time (ms) |
forward-compute: 193.77 | …``, is of the printing rank alone.

Nothing tells when a timer ran, so no timeline and no bubble follows from such a log.

Source: megatron-core 0.16.1, core/timers.py; Megatron-LM 001b00c, training/training.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.limits import TIMER_LINE
from serried.trace.formats.two_runs import of_two_runs

_LOGS = ("*.log", "*.out", "*.txt")
_HEADS = {
    b"(min, max) time across ranks (ms):": "minmax",
    b"max time across ranks (ms):": "max",
    b"times across ranks (ms):": "all",
}
_NUMBER = rb"(\d{1,12}(?:\.\d{1,9})?)"
_NAME = rb"([A-Za-z][\w./-]{0,80})"
# "    forward-compute ......: (161.60, 166.45)"
_MINMAX = re.compile(_NAME + rb" \.*: \(" + _NUMBER + rb", " + _NUMBER + rb"\)\s*$")
_MAX = re.compile(_NAME + rb" \.*: " + _NUMBER + rb"\s*$")
# "  forward-compute:", also behind what a launcher puts before it: "[default0]:  forward-compute:".
_TITLE = re.compile(rb"(?:^|[\]:])\s{2,}" + _NAME + rb":\s*$")
_RANK = re.compile(rb"\brank +(\d{1,7}): " + _NUMBER + rb"\s*$")
# "time (ms) | forward-compute: 193.77 | backward-compute: 301.25 | …"
_OLD = re.compile(rb"time \(ms\) \|(.*)")
_OLD_TIME = re.compile(_NAME + rb": " + _NUMBER)
# " iteration       10/     100 | consumed samples: …"
_ITERATION = re.compile(rb"\biteration +(\d{1,12})/ *\d{1,12} \|")
_OF_ITERATION = {
    "elapsed_ms": re.compile(rb"elapsed time per iteration \(ms\): " + _NUMBER),
    "tflops": re.compile(rb"throughput per GPU \(TFLOP/s/GPU\): " + _NUMBER),
    "samples": re.compile(rb"global batch size: *(\d{1,12})\b"),
}
# "world size: 8, data-parallel size: 2, … pipeline-model-parallel size: 4"
_SIZE = re.compile(
    rb"(world|data-parallel|context-parallel|[a-z]{1,20}-model-parallel) size: (\d{1,7})"
)
_AXES = {
    **{b"data-parallel": "dp", b"context-parallel": "cp"},
    **{b"tensor-model-parallel": "tp", b"pipeline-model-parallel": "pp"},
}
# "  seq_length ............ 4096"
_ARGUMENT = re.compile(rb"\bseq_length \.{2,} (\d{1,9})\s*$")
_ONCE = frozenset(
    {
        *("load-checkpoint", "save-checkpoint", "save-checkpoint-non-persistent", "evaluate"),
        *("model-and-optimizer-setup", "train/valid/test-data-iterators-setup"),
    }
)
"""Timers that are printed by themselves, when they ran, and are of no step."""


@dataclass(frozen=True)
class TimerBlock:
    """Holds one printing of the timers, in milliseconds of a mean step."""

    iteration: int
    least: Mapping[str, float]
    """The times of the quickest rank; empty for forms that do not say it."""
    most: Mapping[str, float]
    """The times of the slowest rank, or of the printing one."""
    by_rank: Mapping[str, Mapping[int, float]]
    """The times of every rank that ran the timer; empty for all forms but ``all``."""


@dataclass(frozen=True)
class Iteration:
    """Holds one line of the log: a mean step since the line before."""

    number: int
    elapsed_ms: float
    tflops: float | None
    """TFLOP/s of one GPU, as Megatron counts them."""
    samples: int | None
    """The global batch size."""


@dataclass(frozen=True)
class TimerLog:
    """Holds what a log says of a job's steps."""

    path: Path
    form: str
    iterations: tuple[Iteration, ...]
    blocks: tuple[TimerBlock, ...]
    """Those whose numbers are of a whole interval."""
    sizes: Mapping[str, int]
    """By axis, where the log has Megatron's own line about them."""
    world_size: int | None
    seq_length: int | None
    findings: tuple[Finding, ...] = ()


def timer_log(places: Sequence[object]) -> TimerLog | None:
    """Returns the log of timers among ``places``, files or folders; None where there is none.

    Raises InputError for two such logs, and for one whose timers cannot be read.
    """
    paths = [path for each in places if isinstance(each, Path) for path in _candidates(each)]
    found = [path for path in paths if _holds_timers(path)]
    if len(found) > 1:
        raise InputError(
            "{paths} each hold Megatron's timers; give the log of one job",
            paths=listed(found, limit=3, last="and"),
        )
    return read_timer_log(found[0]) if found else None


def require_time_stamps(paths: Sequence[Path]) -> None:
    """Raises InputError where ``paths`` hold a log of timers, of which no timeline can be made."""
    for each in paths:
        for path in _candidates(each):
            if _holds_timers(path):
                raise InputError(
                    "{path} holds Megatron's timers, totals of a step without time stamps, so no "
                    "timeline can be made of it; serried trace stats says what they tell",
                    path=path,
                )


def _candidates(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted({each for name in _LOGS for each in path.glob(name) if each.is_file()})
    # Any name will do, but for the endings of files that other readers take.
    return [path] if path.is_file() and path.suffix not in {".json", ".gz", ".parquet"} else []


def _holds_timers(path: Path) -> bool:
    """Tells whether a file has a heading of timers, reading it a piece at a time."""
    wanted = (*_HEADS, b"time (ms) |")
    try:
        with path.open("rb") as file:
            before = b""
            while piece := file.read(1 << 20):
                if any(each in before + piece for each in wanted):
                    return True
                # A heading may lie across two pieces; none is longer than this.
                before = piece[-64:]
    except OSError:
        return False  # a reader that wants this file says why it cannot be read
    return False


def read_timer_log(path: Path) -> TimerLog:
    """Reads one log in linear time; raises InputError when it holds no time of a timer."""
    reading = _Reading()
    try:
        with path.open("rb") as file:
            # A longer line comes in parts, so that one without end does not fill the memory.
            for line in iter(lambda: file.readline(TIMER_LINE.most), b""):
                reading.take(line)
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=path, reason=error.strerror
        ) from error
    blocks = tuple(_whole(reading))
    if not blocks:
        raise InputError(
            "{path} holds no whole interval of Megatron's timers; run past --log-interval "
            "iterations with --timing-log-level 1 or 2",
            path=path,
        )
    return TimerLog(
        path=path,
        form=reading.form,
        iterations=tuple(reading.iterations),
        blocks=blocks,
        sizes=reading.sizes,
        world_size=reading.world_size,
        seq_length=reading.seq_length,
        findings=(_second_run(path, *reading.second_run),) if reading.second_run else (),
    )


def _second_run(path: Path, line: int, before: int, number: int) -> Finding:
    evidence = said(
        "{path} holds two runs, or one that was started again: in line {line} iteration {number} "
        "comes after {before}; all count alike",
        path=path,
        line=line,
        number=number,
        before=before,
    )
    return of_two_runs(evidence)


def _whole(reading: _Reading) -> Iterator[TimerBlock]:
    """Yields the blocks of whole intervals: not those of a first line that came early."""
    numbers = [each.number for each in reading.iterations]
    # Iterations 1, 10, 20: the first line came early. Iterations 1, 2, 3: each has its own.
    early = numbers[0] if len(numbers) > 1 and numbers[0] == 1 and numbers[1] != 2 else None
    for block in reading.blocks:
        if not _ONCE.issuperset(block.most) and block.iteration != early:
            least = {name: min(times.values()) for name, times in block.by_rank.items()}
            most = {name: max(times.values()) for name, times in block.by_rank.items()}
            yield TimerBlock(block.iteration, block.least | least, block.most | most, block.by_rank)


@dataclass
class _Open:
    """Collects the block that lines are read into."""

    iteration: int
    least: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    by_rank: dict[str, dict[int, float]] = field(default_factory=dict)


class _Reading:
    """Takes a log's lines one by one; other ranks may print between them."""

    def __init__(self) -> None:
        self.form = ""
        self.iterations: list[Iteration] = []
        self.blocks: list[_Open] = []
        self.sizes: dict[str, int] = {}
        self.world_size: int | None = None
        self.seq_length: int | None = None
        self.second_run: tuple[int, int, int] | None = None
        """The first line whose iteration goes back, the iteration before it, and its own."""
        self._line = 1
        self._state = ""
        self._timer: str | None = None

    def take(self, line: bytes) -> None:
        """Takes the next line."""
        # A heading and an iteration line close whatever was open, wherever they come. Other lines
        # are times only while a block is open; sizes and arguments come before the first.
        if (head := next((each for each in _HEADS if each in line), None)) is not None:
            self._begin(_HEADS[head])
        elif (match := _ITERATION.search(line)) is not None:
            self._iteration(int(match[1]), line)
        elif (old := _OLD.search(line)) is not None:
            self._begin("one rank")
            self._most((name, time) for name, time in _OLD_TIME.findall(old[1]))
            self._state = ""
        elif self._state:
            self._times(line)
        elif (match := _ARGUMENT.search(line)) is not None:
            self.seq_length = int(match[1])
        elif b"world size: " in line:
            self._sizes(line)
        self._line += line.endswith(b"\n")

    def _begin(self, form: str) -> None:
        self._state, self._timer = form, None
        # What is printed before the first iteration is of the start: models, data, checkpoints.
        number = self.iterations[-1].number if self.iterations else 0
        self.blocks.append(_Open(number))
        if self.iterations or not self.form:
            self.form = form

    def _iteration(self, number: int, line: bytes) -> None:
        self._state = ""
        found = {name: pattern.search(line) for name, pattern in _OF_ITERATION.items()}
        elapsed, tflops, samples = found.values()
        if elapsed is not None:
            found_here = Iteration(
                number,
                float(elapsed[1]),
                None if tflops is None else float(tflops[1]),
                None if samples is None else int(samples[1]),
            )
            self._look_for_a_second_run(found_here)
            self.iterations.append(found_here)

    def _look_for_a_second_run(self, found: Iteration) -> None:
        """Keeps where iterations go back; the same one again may be another rank's line."""
        before = self.iterations[-1].number if self.iterations else found.number
        if self.second_run is None and found.number < before:
            self.second_run = (self._line, before, found.number)

    def _times(self, line: bytes) -> None:
        block = self.blocks[-1]
        # A line that fits no pattern is a warning, or of another rank that printed in between.
        if self._state == "minmax" and (match := _MINMAX.search(line)):
            name = match[1].decode()
            block.least[name], block.most[name] = float(match[2]), float(match[3])
        elif self._state == "max" and (match := _MAX.search(line)):
            block.most[match[1].decode()] = float(match[2])
        elif self._state == "all":
            self._time_of_rank(block, line)

    def _time_of_rank(self, block: _Open, line: bytes) -> None:
        if match := _RANK.search(line):
            if self._timer is not None:
                times = block.by_rank.setdefault(self._timer, {})
                times[int(match[1])] = float(match[2])
                block.most.setdefault(self._timer, 0.0)  # which is known when all ranks are
        elif match := _TITLE.search(line):
            self._timer = match[1].decode()

    def _most(self, times: Iterator[tuple[bytes, bytes]]) -> None:
        for name, time in times:
            self.blocks[-1].most[name.decode()] = float(time)

    def _sizes(self, line: bytes) -> None:
        for name, size in _SIZE.findall(line):
            if name == b"world":
                self.world_size = int(size)
            elif name in _AXES:
                self.sizes[_AXES[name]] = int(size)
