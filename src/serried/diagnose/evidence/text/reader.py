"""All readers of text together: from a log's lines to the signs that they state.

Lines that a terminal cut are joined first: what follows a message of torch's without a prefix of
its own, while that message has no end, belongs to it.

>>> from serried.diagnose.evidence.log_line import log_line
>>> rows = ["[rank6]:[E429 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 6] Proce",
...         "ssGroupNCCL's watchdog got stuck for 480 seconds without making progress"]
>>> signs = list(text_signs(log_line(row, "x", n) for n, row in enumerate(rows, 1)))
>>> [(sign.kind, sign.speaker.rank, sign.quote.line) for sign in signs]
[('heartbeat', 6, 1)]
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.accounting import accounting_signs
from serried.diagnose.evidence.text.aside import KEPT, Asides
from serried.diagnose.evidence.text.cluster import cluster_signs
from serried.diagnose.evidence.text.collectives.checks import check_signs
from serried.diagnose.evidence.text.collectives.gloo import gloo_signs
from serried.diagnose.evidence.text.collectives.nccl_calls import call_signs
from serried.diagnose.evidence.text.collectives.ras import RasReport
from serried.diagnose.evidence.text.collectives.schedule_order import order_signs
from serried.diagnose.evidence.text.collectives.stalls import StallReport
from serried.diagnose.evidence.text.collectives.watchdog import timeouts
from serried.diagnose.evidence.text.data import data_signs
from serried.diagnose.evidence.text.launch import LaunchReport
from serried.diagnose.evidence.text.machine.cuda import cuda_signs
from serried.diagnose.evidence.text.machine.kernel import kernel_signs
from serried.diagnose.evidence.text.machine.network import network_signs
from serried.diagnose.evidence.text.machine.storage import storage_signs
from serried.diagnose.evidence.text.marked import marked_signs
from serried.diagnose.evidence.text.pods import PodLines, pod_signs
from serried.diagnose.evidence.text.progress import PROGRESS_KINDS, progress_signs
from serried.diagnose.evidence.text.python import RepeatedTraceback, Tracebacks
from serried.diagnose.evidence.text.startup import OpenStart, startup_signs
from serried.diagnose.evidence.text.torchrun import FailureSummary, exits
from serried.diagnose.evidence.torn import untorn

_READERS = (
    progress_signs,
    timeouts,
    check_signs,
    gloo_signs,
    exits,
    cluster_signs,
    accounting_signs,
    pod_signs,
    kernel_signs,
    cuda_signs,
    startup_signs,
    storage_signs,
    network_signs,
    data_signs,
    order_signs,
    call_signs,
)
_OPENS = re.compile(
    r"ProcessGroup|[Ww]atchdog (?:caught|thread)|Work[A-Z]+\(|CollectiveFingerPrint|"
    r"is running collective:\s*$|Detected mismatch between|gloo/|\bgloo |onitoredBarrier|\[PG |"
    r"Error: *$|DDP expects same model|"
    r"Received a dump signal due to a\s*$|"
    r"NVRM: The NVIDIA GPU|"
    r"noticed that process rank \d+ with PID \S+ on node"
)
_STARTS = re.compile(
    r"\s*(?:\[|[EWIF]\d{4} |\d{4}-\d\d-\d\d|Traceback|terminate called|File \"|frame #|\d+%|#\d|"
    r"[A-Z]\w+:)"
)
_HALF_SAID = re.compile(r"(?:exception|failure was|timeout|Error): *$")
_REST = re.compile(
    r"\s*(?:\[(?:PG \w|Rank \d|[\w./\-]+\.cc:\d)|Work|(?:CUDA|HIP|NCCL|XPU|NPU) [eE]rror\b)"
)
"""A message of torch's within another: what was caught, after the words that announce it."""
_BARE_ERROR = re.compile(r"Error: *$")
_OPEN = re.compile(r"Work[A-Z]\w*\([^()]*(?:\(ms\)[^()]*)?$|\[PG [^\]]*$")
"""A collective or a group whose bracket is not closed yet."""
_OUTCOME = re.compile(r"\s*(?:ran for|timed out in|raised the following)\b")
_GROUP = re.compile(r"\s*\[PG [^\[\]]*Rank \d+\]\s*$")
"""The group of a collective that somebody wrote on a line of its own."""
_PADDED = re.compile(r" {2,}[│┃║]\s*$")
"""The end of a line in a frame, which has room left, so that no word is cut."""
_WORD = re.compile(r"\s*\S+")
MOST_PARTS = 20
"""Lines that are joined to one: a mismatch of two calls has some 900 letters."""
_DIGITS = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ZERO = re.compile(r"(?<![\d.])0(?!\d|\.\d)")
MOST_SHAPES = 20_000
"""Shapes of lines, numbers left out, that are remembered to say nothing."""
MOST_UNDATED = 1000
"""Signs that wait for the next dated line, which says when they were at the latest."""
MOST_OF_A_KIND = 20_000
"""Signs of one kind that are kept of one file; each rank of a large job says a few."""


def text_signs(lines: Iterable[LogLine]) -> Iterator[Sign]:
    """Yields the signs of one file's lines, in their order."""
    told: Counter[str] = Counter()
    progress: dict[str, Sign] = {}
    for sign in _signs(lines):
        if sign.kind in PROGRESS_KINDS:  # a long job says so thousands of times; the last counts
            progress[sign.kind] = sign
            continue
        told[sign.kind] += 1
        if told[sign.kind] > MOST_OF_A_KIND:
            continue
        yield from progress.values()
        progress.clear()
        yield sign
    yield from progress.values()


def _signs(lines: Iterable[LogLine]) -> Iterator[Sign]:
    tracebacks = Tracebacks()
    summary, start = FailureSummary(), OpenStart()
    reports = (
        summary.read,
        start.read,
        RasReport().read,
        StallReport().read,
        LaunchReport().read,
        tracebacks.read,
    )
    repeated, pods = RepeatedTraceback(), PodLines()
    silent: set[str] = set()
    asides = Asides()
    clock: float | None = None
    undated: list[Sign] = []
    for line in map(pods.own, map(repeated.own, _joined(untorn(lines)))):
        if line.time is not None or len(undated) > MOST_UNDATED:
            clock = line.time if line.time is not None else clock
            yield from (replace(sign, before=line.time) for sign in undated)
            undated.clear()
        is_aside = asides.holds(line)
        for sign in _of_line(line, silent, reports):
            if is_aside and sign.kind not in KEPT:
                continue
            if line.time is not None:
                yield sign
            else:
                undated.append(replace(sign, after=clock))
    yield from undated
    at_end = (*tracebacks.cut(), *summary.cut(), *start.cut())
    yield from (replace(sign, after=clock) for sign in at_end)


def _of_line(
    line: LogLine, silent: set[str], reports: Iterable[Callable[[LogLine], Iterator[Sign]]]
) -> Iterator[Sign]:
    # A job repeats its lines with other numbers; what said nothing once is not asked again. A code
    # of 0 says nothing, any other may.
    shape = _DIGITS.sub("0", _ZERO.sub("none", line.text))
    if shape not in silent:
        signs = [sign for read in _READERS for sign in read(line)]
        yield from signs or marked_signs(line)
        if not signs and len(silent) < MOST_SHAPES:
            silent.add(shape)
    for read in reports:
        yield from read(line)


def _joined(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Yields lines with what a terminal cut off them; what was joined is not told twice."""
    ahead: deque[LogLine] = deque()
    coming = iter(lines)
    while True:
        if not ahead and (line := next(coming, None)):
            ahead.append(line)
        if not ahead:
            return
        line = ahead.popleft()
        parts = [line]
        for _ in range(MOST_PARTS if _OPENS.search(line.text) else 0):
            if not ahead and (following := next(coming, None)):
                ahead.append(following)
            if not ahead or not _continues(line, parts, ahead[0]):
                break
            parts.append(ahead.popleft())
            line = _together(line, parts[-2], parts[-1])
        yield _by_words(parts) if _are_of_words(parts) else line


def _continues(line: LogLine, parts: list[LogLine], following: LogLine) -> bool:
    """Tells whether a line goes on in the next one; ``parts`` are those that it consists of."""
    if _is_kernel(line):
        return "NVRM:" in following.text and not following.text.startswith("[")
    whole = line.text.rstrip()
    is_carried_alike = following.carriers == line.carriers and not following.is_named
    if not following.text or not is_carried_alike:
        return False
    if _HALF_SAID.search(whole) and _REST.match(following.text):
        return True
    if _GROUP.match(following.text):
        return "Work" in whole and "[PG " not in whole
    if _BARE_ERROR.search(whole) or _STARTS.match(following.text):
        return False
    if "Watchdog caught" in whole:
        return "before timing out" not in whole
    if _OPEN.search(whole) or _OUTCOME.match(following.text):
        return True
    return not whole.endswith((".", ")")) and not _would_fit(parts, following)


def _would_fit(parts: list[LogLine], following: LogLine) -> bool:
    """Tells whether the next word had room in the line before it, so that no width broke it off."""
    widths = [_width(part) for part in parts]
    word = _WORD.match(following.text)
    return widths[-1] + 1 + len(word[0].strip() if word else "") <= max(widths)


def _width(part: LogLine) -> int:
    """Returns how wide a line was printed, without the frame of a box."""
    return len(part.quote.text.rstrip(" │┃║"))


def _together(line: LogLine, last: LogLine, following: LogLine) -> LogLine:
    text = following.text
    if _is_kernel(line):
        text = text.replace("NVRM:", "")
    is_cut = len(line.text) > 60 and not text[:1].isspace() and not _PADDED.search(last.quote.text)
    whole = f"{line.text}{text.rstrip()}" if is_cut else f"{line.text.rstrip()} {text.strip()}"
    return replace(line, text=whole)


def _are_of_words(parts: list[LogLine]) -> bool:
    """Tells whether a line was broken between words, not at a width, where it cuts them."""
    widths = {_width(part) for part in parts[:-1]}
    return len(widths) > 1 and not _is_kernel(parts[0])


def _by_words(parts: list[LogLine]) -> LogLine:
    return replace(parts[0], text=" ".join(part.text.strip() for part in parts))


def _is_kernel(line: LogLine) -> bool:
    return "NVRM:" in line.text
