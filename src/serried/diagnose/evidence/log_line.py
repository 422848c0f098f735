"""A line of a log without what launchers put before it, and whose it is.

    2026-04-22T21:34:20Z 3: [default3]:[rank11]: RuntimeError: x
    └── container        │  │          └── torch: global rank
                         │  └── torchrun --tee: rank within the node
                         └── srun --label: task

>>> line = log_line("[default3]:[rank11]: RuntimeError: x", "console.log", 7)
>>> line.text, line.speaker.rank
('RuntimeError: x', 11)
>>> log_line("(Worker pid=41, ip=10.0.0.7) Killed", "driver.log", 1).speaker.host
'10.0.0.7'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from html import unescape

from serried.diagnose.evidence.json_line import carried
from serried.diagnose.evidence.quote import NOBODY, Numbering, Quote, Speaker
from serried.diagnose.evidence.told_rank import LONGEST_HEAD, told_rank

_COLOUR = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|(?<!\w)\[(?:0|1|2|3[0-7]|4[0-7]|9[0-7]|38;5;\d{1,3})(?:;\d{1,3})*m"
)
"""A colour's code, whole or without the escape that a web page drops."""
_BARE_COLOUR = "[0m"
_QUOTED = re.compile(r"(?:> ?)+")
"""What a mail or a thread puts before a line that it quotes."""
_FRAME = re.compile(r"\s*[│┃║] ?(.*?)\s*[│┃║]\s*$")
"""A line within a box, as programs draw one around a message."""
_ESCAPED = re.compile(r"\\([_*\[\]()<>#])")
"""A sign that somebody escaped, as Markdown's editors do."""
_ENTITY = re.compile(r"&(?:gt|lt|quot|amp|#39|#x27|nbsp);")
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_CONTAINER = re.compile(rf"({_STAMP})\s+(?:std(?:out|err)\s+[FP]\s)?(?=\S)")
_GLOBAL = re.compile(r"\[(?:rank|RANK)[: ]?\s?(\d+)\][: ]\s?|[rR]ank\s?(\d+):\s", re.ASCII)
_NUMBERED = re.compile(
    r"\[(\d{1,5})\]:? ?(?=Traceback \(most recent|\s+File \"|"
    r"(?:\w+\.){0,6}\w*(?:Error|Exception): )"
)
"""What launchers of MPI and of torch's early years put before a rank's traceback."""
_LOCAL = re.compile(r"\[default(\d+)\]:\s?")
_MPI = re.compile(
    r"\[(?:\d+,)?(?:mpirank:)?(\d+)(?:,[\w.\-]+)?\]<std\w+>:\s?|"
    r"\((?:[\w.\-]+,? )?rank=(\d+),? pid=\d+[^)]*\)\s?|"
    r"\([\w.]+\[rank=(\d+)\] pid=\d+[^)]*\)\s?"
)
_TENSOR = re.compile(
    r"\(\w*?_TP(\d+)(?:_EP\d+)? pid=\d+\)\s?|\[[\d:. \-]+(?: DP\d+)? TP(\d+)(?: EP\d+)?\]\s?"
)
"""What servers of models put before a line; there tensor ranks alone count the ranks of a node."""
_TASK = re.compile(r"\s?(\d{1,5}):\s(?=\S|\s|$)")
_TORCHX = re.compile(r"[A-Za-z][\w.\-]*/(\d{1,4}) (?:\[(\d{1,4})\]:\s?|(?=\[[a-z]+\d+\]:))")
"""What TorchX puts before a line: a role, the number of its node, and there that of the rank."""
_RAY = re.compile(r"\([\w.<>:\-* ()]*?pid=(\d+)(?:, ip=([\d.]+))?\)\s?")
_POD = re.compile(r"\[pod/([\w.\-]+)/[\w.\-]+\]\s|([\w.\-]*[\d\-][\w.\-]*)\s+\|\s")
_HOST = re.compile(r"((?:[A-Za-z][\w.]*-\d[\w.\-]*|\d+\.\d+\.\d+\.\d+)):\s")
_SYSLOG = re.compile(
    r"[A-Z][a-z]{2}\s+\d{1,2} \d\d:\d\d:\d\d (\S{1,80}) [\w.\-/]{1,60}(?:\[\d+\])?: "
)
_LINE_NUMBER = re.compile(
    r"\[?\d+\]?\s+(?=\[rank)|\d{1,8}\t|std(?:err|out): |\d{1,7}\.\d{1,3}s\t\d{1,7}\t"
)
"""A line's number or its stream; before the number the seconds, as services of notebooks print."""
_GROUP = re.compile(
    r"(?:ProcessGroup\w+\.cpp:\d+\] |what\(\):\s+)"
    r"\[(?:PG (?:ID )?(?P<group>\d{0,9})[^\]]*)?Rank (?P<rank>\d{1,9})\]"
)
_INNER = re.compile(r"\[rank(\d{1,7})\]:\s?")
_PROGRESS = re.compile(r"%|it/s|s/it|examples|ran for \d")
"""What stands before a rank's own line because another message shares it, not a launcher's word."""
_DATE = re.compile(_STAMP)
_PARTED = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
"""A date and the time of a second, its fraction, and its zone."""
_GLOG = re.compile(r"(?:^|[\[\s])[EWIF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)(\.\d{1,6})?")
NO_YEAR = 1972
"""The year of a time whose line tells none, as glog's do; one with a 29th of February."""
MOST_PREFIXES = 6
FEWEST_TABS = 4
"""Tabs beyond the spaces of a line from which on they stand for these, as a table's cells do."""


@dataclass(frozen=True)
class LogLine:
    """Holds one line: its text without prefixes, its speaker, and the line as it stands."""

    text: str
    speaker: Speaker
    quote: Quote
    time: float | None = None
    """Seconds since 1970, where the line tells a date; in the year 1972 where it tells no year."""
    carriers: int = 0
    """How many prefixes were taken off that tell no rank: times, hosts, quoting."""
    is_named: bool = False
    """Whether a prefix tells a rank."""


def log_line(raw: str, source: str, number: int, default: Speaker = NOBODY) -> LogLine:
    """Returns a line taken apart; ``default`` is whose file it is, where its name tells that."""
    text = _COLOUR.sub("", raw) if "\x1b" in raw or _BARE_COLOUR in raw else raw
    text = unescape(text) if _ENTITY.search(text) else text
    text = _as_printed(text)
    speaker, time, carriers, is_named = default, None, 0, False
    for _ in range(MOST_PREFIXES):
        if text.lstrip().startswith('{"') and (held := carried(text)):
            text, rank, stamp = held
            time = time if time is not None or not stamp else _time(stamp)
            if rank is not None:
                speaker = replace(speaker, rank=rank, numbering=Numbering.GLOBAL)
                is_named = True
            carriers += 1
            continue
        taken = _prefix(text, speaker)
        if taken is None:
            break
        length, told = taken
        is_carrier = told is speaker or (told.host, told.pid) != (speaker.host, speaker.pid)
        carriers, is_named = carriers + is_carrier, is_named or not is_carrier
        speaker = told
        time = time if time is not None else _time(text[:length])
        text = text[length:]
    if speaker.global_rank is None and (named := _INNER.search(text[:LONGEST_HEAD])):
        speaker = replace(speaker, rank=int(named[1]), numbering=Numbering.GLOBAL)
        if not _PROGRESS.search(text[: named.start()]):
            text = text[named.end() :]
    if speaker.rank is None and (inside := _GROUP.search(text)):
        within = Numbering.SUBGROUP if int(inside["group"] or 0) else Numbering.GROUP
        speaker = replace(speaker, rank=int(inside["rank"]), numbering=within)
    if speaker.rank is None and (own := told_rank(text)) is not None:
        speaker = replace(speaker, rank=own[0], numbering=own[1])
    if time is None and (dated := _DATE.search(text[:80])):
        time = _time(dated[0])
    if time is None and (stamped := _GLOG.search(text[:80])):
        time = _time(f"{NO_YEAR}-{stamped[1]:0>2}-{stamped[2]} {stamped[3]}{stamped[4] or ''}")
    return LogLine(text, speaker, Quote(source, number, raw), time, carriers, is_named)


def _as_printed(text: str) -> str:
    """Returns a line without what pages and boxes put around and between its letters."""
    framed = None if text.isascii() else _FRAME.match(text)
    text = framed[1] if framed else text
    text = text.replace("\t", " ") if text.count("\t") > FEWEST_TABS + text.count(" ") else text
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def moment_of(text: str) -> float | None:
    """Returns the seconds since 1970 that a text tells; in the year 1972 where it tells no year.

    >>> moment_of("2026-04-22 21:34:20,5 step 4") - moment_of("[2026-04-22T21:34:20Z] step 3")
    0.5
    """
    if found := _PARTED.search(text):
        second = _second(found[1] + (found[3] or ""))
        return second if second is None or not found[2] else second + float("0." + found[2])
    if found := _GLOG.search(text):
        second = _second(f"{NO_YEAR}-{found[1]:0>2}-{found[2]} {found[3]}")
        return second if second is None or not found[4] else second + float("0" + found[4])
    return None


@lru_cache(maxsize=256)
def _second(text: str) -> float | None:
    """Returns the time of a whole second, of which a log has many lines."""
    return _time(text)


def _prefix(text: str, speaker: Speaker) -> tuple[int, Speaker] | None:
    """Returns the length of a prefix and what it tells of the speaker, None where none stands."""
    if found := _GLOBAL.match(text):
        rank = int(found[1] or found[2])
        return found.end(), replace(speaker, rank=rank, numbering=Numbering.GLOBAL)
    if (found := _NUMBERED.match(text)) and speaker.rank is None:
        return found.end(), replace(speaker, rank=int(found[1]), numbering=Numbering.GLOBAL)
    if found := _LOCAL.match(text):
        if speaker.rank is not None and speaker.numbering is Numbering.GLOBAL:
            return found.end(), speaker
        return found.end(), replace(speaker, rank=int(found[1]), numbering=Numbering.LOCAL)
    if found := _MPI.match(text):
        rank = int(found[1] or found[2] or found[3])
        return found.end(), replace(speaker, rank=rank, numbering=Numbering.GLOBAL)
    if found := _TORCHX.match(text):
        speaker = replace(speaker, task=int(found[1]))
        if found[2] is None or speaker.rank is not None:
            return found.end(), speaker
        return found.end(), replace(speaker, rank=int(found[2]), numbering=Numbering.LOCAL)
    if (found := _TENSOR.match(text)) and speaker.rank is None:
        rank = int(found[1] or found[2])
        return found.end(), replace(speaker, rank=rank, numbering=Numbering.LOCAL)
    if found := _RAY.match(text):
        host = found[2] or speaker.host
        return found.end(), replace(speaker, pid=int(found[1]), host=host)
    if found := _CONTAINER.match(text) or _LINE_NUMBER.match(text) or _QUOTED.match(text):
        return found.end(), speaker
    if found := _TASK.match(text):
        speaker = replace(speaker, task=int(found[1]))
        if speaker.rank is not None:
            return found.end(), speaker
        return found.end(), replace(speaker, rank=speaker.task, numbering=Numbering.TASK)
    if found := _POD.match(text):
        return found.end(), replace(speaker, host=found[1] or found[2])
    if found := _SYSLOG.match(text):
        return found.end(), replace(speaker, host=found[1])
    if found := _HOST.match(text):
        return found.end(), replace(speaker, host=found[1])
    return None


def _time(text: str) -> float | None:
    found = _DATE.search(text)
    if not found:
        return None
    try:
        whole = datetime.fromisoformat(found[0].replace(",", "."))
        return (whole if whole.tzinfo else whole.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return None
