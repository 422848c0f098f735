"""What a file is, told from its first bytes; its name is asked only where nothing else tells.

    first bytes   serried\\x01  PAR1  SQLite format 3  \\x80 pickle  \\n.. Perfetto     binary
    JSON          its schema, or the keys of its outermost object
    text          stacks, Paddle's records and logs, hostfiles, logs, launch files

What is none of these is refused with what it seems to be, and a command that would help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import PurePath

from serried.errors import InputError
from serried.limits import LAUNCH_BYTES
from serried.views.web.opening.authored import Authored, authored
from serried.views.web.opening.json_head import outer_keys
from serried.views.web.opening.kinds import Kind
from serried.views.web.opening.refused import own_document, unknown
from serried.views.web.opening.sample import Sample

BINARY = (
    (b"serried\x01", Kind.RECORDING),
    (b"PAR1", Kind.PARQUET),
    (b"SQLite format 3\x00", Kind.NSIGHT),
)
"""How files begin that are no text."""

SCHEMAS: Mapping[str, Kind] = {
    "trace": Kind.STORE,
    "check": Kind.CHECK,
    "plan": Kind.PLAN,
    "diagnosis": Kind.DIAGNOSIS,
    "groups": Kind.GROUPS,
    "planned-step": Kind.BESIDE,
    "retimed-step": Kind.BESIDE,
    "collection": Kind.BESIDE,
}
"""Documents of serried that can be opened, by the middle of ``serried.NAME/1``."""

LOG_SUFFIXES = (".log", ".out", ".err")
"""How texts are called that are logs where nothing in them tells."""

SUFFIXES = (".names", ".traffic", ".guard", ".failed", ".neighbours", ".pings")
"""How files end that lie beside the recording of a rank."""

_SCHEMA = re.compile(r"serried\.([a-z-]+)/\d+")
_MODEL = {"model_type", "architectures", "num_hidden_layers", "n_layer", "n_layers"}
_LOGGED = {"loss", "step", "level", "levelname", "severity", "message", "msg", "event"}
_LINES = re.compile(r"\{[^\n]*\}[ \t]*\r?\n[ \t]*(?:\{|\Z)")
"""How a log of JSON begins: an object a line, with a key of ``_LOGGED``."""
_PADDLE_LOG = re.compile(r"Profiler Info: Job \(\d|Schedule Profiler start at step \d")
_PADDLE_RECORD = re.compile(r'^\{[^\n]*"cat": ?"(?:virtual )?pipeline timeline"')
_LOG_LINE = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d|\d\d:\d\d:\d\d[.,\] ]|\[(?:default|rank ?)?\d+\]:|"
    r"\biteration\s+\d+/|Traceback \(most recent|NCCL (?:INFO|WARN)|^[IWEF]\d{4} |"
    r"\b(?:INFO|WARNING|ERROR|CRITICAL|FATAL)\b|^\w*(?:Error|Exception)\b.*: |"
    r"\bsteps?\b[ =:]+\d+.*\bloss\b|NVRM: |\bloss\b[ =:]+\d|^\[ ?\d+\.\d+\] ",
    re.M,
)
_KEY_LETTERS = 1 << 18
"""Letters of JSON in which the outermost keys are looked for."""
_SIGN_LETTERS = 1 << 16
"""Letters of a text in which words of trouble are looked for."""
_MOSTLY = 0.3
"""The share of lines that look like a log's, from which on a text is one and no launch file."""


def kind_of(sample: Sample, *, is_alone: bool = True) -> Kind:
    """Returns what a file is; raises InputError, saying what would help, for anything else.

    A file that is opened ``is_alone`` may be a launch file that its reader refuses, and says why.

    >>> kind_of(Sample("x", 22, b"node1 slots=8")), kind_of(Sample("y", 9, b'[{"ph": "X", "ts": 1'))
    (<Kind.HOSTFILE: 'hostfile'>, <Kind.EVENTS: 'events'>)
    """
    if sample.size_bytes == 0:
        raise InputError("{file} is empty", file=sample.name)
    if sample.is_packed and not sample.start:
        raise InputError("{file} is packed by gzip, but damaged at its start", file=sample.name)
    text = sample.text
    kind = _binary(sample) if text is None else _text(sample, text, is_alone=is_alone)
    if kind is None and sample.name.endswith(SUFFIXES):
        return Kind.BESIDE
    if kind is None:
        raise unknown(sample)
    return kind


# ----------------------------------------------------------------------- bytes


def _binary(sample: Sample) -> Kind | None:
    start = sample.start
    for mark, kind in BINARY:
        if start.startswith(mark):
            return kind
    if start[:1] == b"\x80" and start[1:2] <= b"\x05" and b"entries" in start:
        return Kind.DUMP
    return Kind.PERFETTO if _is_perfetto(start) else None


def _is_perfetto(start: bytes) -> bool:
    """Tells whether bytes are packets of field 1, one after another, as far as they reach."""
    at, count = 0, 0
    while at < len(start) and count < 64:
        if start[at] != 0x0A:
            return False
        length, shift, at = 0, 0, at + 1
        while at < len(start):
            byte, at = start[at], at + 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 35:
                break
        at += length
        count += 1
    return count > 1 or (count == 1 and len(start) > 8)


# ----------------------------------------------------------------------- text


def _text(sample: Sample, text: str, *, is_alone: bool) -> Kind | None:
    begin = text.lstrip()
    if _PADDLE_RECORD.match(begin):
        return Kind.PADDLE_RECORDS
    keys = outer_keys(begin[:_KEY_LETTERS]) if begin[:1] in ("{", "[") else {}
    if keys:
        return _json(sample, begin, keys)
    written = authored(text)
    if written in (Authored.HTML, Authored.PAGE):
        return None
    if written is None and (kind := _logged(text)):
        return kind
    launch = _launch(sample, text)
    may_be_log = written is None and not begin.startswith("#!")
    if may_be_log and launch is not LaunchText.READ and _tells_of_trouble(text):
        return Kind.LOG
    if launch in (LaunchText.READ, LaunchText.BARE) or (launch is LaunchText.REFUSED and is_alone):
        return Kind.LAUNCH
    is_called_log = PurePath(sample.name).suffix in LOG_SUFFIXES
    return Kind.LOG if may_be_log and is_called_log else None


def _logged(text: str) -> Kind | None:
    """Returns what a text is that a tool or a job wrote; None where its lines do not tell."""
    for kind, is_one in _TEXTS:
        if is_one(text):
            return kind
    is_script = text.lstrip().startswith("#!")
    return Kind.LOG if not is_script and _log_share(text) > _MOSTLY else None


def _json(sample: Sample, text: str, keys: Mapping[str, str | None]) -> Kind | None:
    if schema := _SCHEMA.fullmatch(keys.get("schema") or ""):
        if schema[1] not in SCHEMAS:
            raise own_document(sample, schema[1])
        return SCHEMAS[schema[1]]
    if "traceEvents" in keys or {"schemaVersion", "deviceProperties"} <= keys.keys():
        return Kind.EVENTS
    if {"ph", "ts"} <= keys.keys() or {"ph", "name"} <= keys.keys():
        return Kind.EVENTS
    if "entries" in keys or "comm_lib_version" in keys:
        return Kind.DUMP
    if "groups" in keys:
        return Kind.GROUPS
    if text[0] == "{" and _launch(sample, text) in (LaunchText.READ, LaunchText.BARE):
        return Kind.LAUNCH
    if keys.keys() & _MODEL:
        return Kind.MODEL
    if keys.keys() & _LOGGED and _LINES.match(text):
        return Kind.LOG
    return Kind.BESIDE if keys and all(key.isdecimal() for key in keys) else None


def _is_stacks(text: str) -> bool:
    from serried.diagnose.evidence.stacks.text import looks_like_stacks

    return looks_like_stacks(text) and _log_share(text) < _MOSTLY


def _is_hostfile(text: str) -> bool:
    from serried.launch.formats import hostfile

    return hostfile.is_one(text)


_TEXTS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    (Kind.PADDLE_LOG, lambda text: bool(_PADDLE_LOG.search(text))),
    (Kind.STACKS, _is_stacks),
    (Kind.HOSTFILE, _is_hostfile),
)


def _log_share(text: str) -> float:
    """Returns the share of lines that look like a log's."""
    lines = [line for line in text.split("\n")[:400] if line.strip()]
    return sum(bool(_LOG_LINE.search(line[:400])) for line in lines) / max(1, len(lines))


class LaunchText(Enum):
    """Says whether a text is a launch file."""

    READ = auto()
    BARE = auto()
    """It starts something, and says no size of it."""
    REFUSED = auto()
    """It is one in part, or beside one, and its reader says what is wrong with it."""
    NONE = auto()


def _tells_of_trouble(text: str) -> bool:
    """Tells whether a diagnosis would find something in a text."""
    from serried.diagnose.evidence.log_file import LONGEST_LINE
    from serried.diagnose.evidence.log_line import log_line
    from serried.diagnose.evidence.text.reader import text_signs

    rows = text[:_SIGN_LETTERS].splitlines()
    lines = (log_line(row[:LONGEST_LINE], "", number) for number, row in enumerate(rows, 1))
    return next(iter(text_signs(lines)), None) is not None


def _launch(sample: Sample, text: str) -> LaunchText:
    """Tells whether a text is a launch file, which is small enough to be looked at as a whole."""
    if sample.size_bytes > LAUNCH_BYTES.most or not sample.is_whole or sample.is_packed:
        return LaunchText.NONE
    from serried.launch import recognise

    try:
        reading = recognise.reading_of(text, sample.name, {})
    except InputError as error:
        return LaunchText.NONE if recognise.UNKNOWN in error.values else LaunchText.REFUSED
    return LaunchText.READ if reading.facts.claims else LaunchText.BARE
