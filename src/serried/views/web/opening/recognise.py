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
from serried.finding import Sentence, said
from serried.limits import LAUNCH_BYTES
from serried.views.web.opening.json_head import outer_keys
from serried.views.web.opening.kinds import Kind
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

COMMANDS: Mapping[str, str] = {
    "trace-stats": "serried serve RUN",
    "recorded-step": "serried serve RUN",
    "trace-compare": "serried serve RUN RUN",
    "gpu-stats": "serried serve PROFILE",
    "search": "serried search",
    "tuning": "serried tune",
    "busbw": "serried collective all-reduce --busbw FILE",
    "efficiency": "serried plan --calibration FILE",
    "schedule": "serried schedule",
    "collective": "serried collective",
    "watch": "serried diagnose --watch LOGS",
}
"""What shows other documents of serried, by the middle of their schema; of the rest the schema says
what prints them."""

LOG_SUFFIXES = (".log", ".out", ".err")
"""How texts are called that are logs where nothing in them tells."""

SUFFIXES = (".names", ".traffic", ".guard", ".failed", ".neighbours", ".pings")
"""How files end that lie beside the recording of a rank."""

FOREIGN: tuple[tuple[bytes, Sentence, str], ...] = (
    (b"PK\x03\x04", said("a zip archive"), "unzip {name}"),
    (b"\x28\xb5\x2f\xfd", said("packed by zstd"), "zstd -d {name}"),
    (b"BZh", said("packed by bzip2"), "bunzip2 {name}"),
    (b"\xfd7zXZ\x00", said("packed by xz"), "unxz {name}"),
    (b"\x89PNG", said("a picture"), ""),
    (b"%PDF", said("a PDF"), ""),
    (b"\x7fELF", said("a program"), ""),
    (b"\x89HDF", said("an HDF5 file"), ""),
    (b"\x93NUMPY", said("an array of NumPy"), ""),
)
"""What others' files begin with, what they are, and what would help."""

_SCHEMA = re.compile(r"serried\.([a-z-]+)/\d+")
_PRINTED_BY = re.compile(r"`(serried [^`]+)`")
_CHECKPOINT = re.compile(rb"PK\x03\x04.{26}[^\0]{1,99}/(?:data\.pkl|\.format_version)", re.S)
_SOURCE = re.compile(r"^(?:import \w|from [\w.]+ import |(?:async )?def \w|class \w|```)", re.M)
_SOURCE_LINES = 2
"""So many lines of Python, or of code in a text, make it none that a job logged."""
_TAR = 257, b"ustar"
_MODEL = {"model_type", "architectures", "num_hidden_layers", "n_layer", "n_layers"}
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


def unknown(sample: Sample) -> InputError:
    """Returns what is said of a file that serried opens nowhere."""
    start = sample.start
    if start[:1] == b"\x80" and b"device_traces" in start and b"segments" in start:
        return _foreign(sample, said("a memory snapshot of PyTorch"), "")
    if _CHECKPOINT.match(start):
        return _foreign(sample, said("a checkpoint of PyTorch"), "")
    for mark, what, command in FOREIGN:
        if start.startswith(mark):
            return _foreign(sample, what, command)
    if start[_TAR[0] :].startswith(_TAR[1]):
        return _foreign(sample, said("a tar archive"), "tar -xf {name}")
    if _is_safetensors(start):
        return InputError(
            "{file} holds weights, which no tab shows; serried plan --model {file} plans a model "
            "by its config.json",
            file=sample.name,
        )
    if sample.name.endswith(".nsys-rep"):
        return InputError(
            "{file} is Nsight Systems' own report; nsys export --type sqlite {file} makes a file "
            "that serried opens",
            file=sample.name,
        )
    if sample.text is None:
        return InputError(
            "{file} is binary and nothing that serried reads; serried opens {kinds}",
            file=sample.name,
            kinds=OPENS,
        )
    if sample.text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        return InputError(
            "{file} is a page of HTML, as serried report writes one; open it in your browser",
            file=sample.name,
        )
    if sample.size_bytes > LAUNCH_BYTES.most:
        return InputError(
            "{file} is text, but no log, and a launch file holds at most {limit} MB; serried opens "
            "{kinds}",
            file=sample.name,
            limit=LAUNCH_BYTES.most >> 20,
            kinds=OPENS,
        )
    return InputError(
        "{file} is text, but nothing that serried reads; serried opens {kinds}",
        file=sample.name,
        kinds=OPENS,
    )


OPENS = said(
    "launch files, hostfiles, a model's config.json, recordings and stores, traces of "
    "torch.profiler, Chrome, Perfetto, Nsight Systems and Paddle, logs, flight-recorder dumps, and "
    "JSON of serried check, plan, diagnose and groups"
)
"""What can be opened, as a sentence lists it."""


def _foreign(sample: Sample, what: Sentence, command: str) -> InputError:
    if not command:
        return InputError(
            "{file} is {what}, which serried does not read; serried opens {kinds}",
            file=sample.name,
            what=what,
            kinds=OPENS,
        )
    return InputError(
        "{file} is {what}; unpack it first ({command}) and open what comes out",
        file=sample.name,
        what=what,
        command=command.format(name=sample.name),
    )


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


def _is_safetensors(start: bytes) -> bool:
    return (
        len(start) > 9 and 1 < int.from_bytes(start[:8], "little") < 1 << 27 and start[8:9] == b"{"
    )


# ----------------------------------------------------------------------- text


def _text(sample: Sample, text: str, *, is_alone: bool) -> Kind | None:
    begin = text.lstrip()
    if _PADDLE_RECORD.match(begin):
        return Kind.PADDLE_RECORDS
    keys = outer_keys(begin[:_KEY_LETTERS]) if begin[:1] in ("{", "[") else {}
    if keys:
        return _json(sample, begin, keys)
    for kind, is_one in _TEXTS:
        if is_one(text):
            return kind
    if not begin.startswith("#!") and _log_share(text) > _MOSTLY:
        return Kind.LOG
    launch = _launch(sample, text)
    is_source = len(_SOURCE.findall(text[:_SIGN_LETTERS])) >= _SOURCE_LINES
    if launch is not LaunchText.READ and not is_source and _tells_of_trouble(text):
        return Kind.LOG
    if launch is LaunchText.READ or (launch is LaunchText.REFUSED and is_alone):
        return Kind.LAUNCH
    return Kind.LOG if PurePath(sample.name).suffix in LOG_SUFFIXES else None


def _json(sample: Sample, text: str, keys: Mapping[str, str | None]) -> Kind | None:
    if schema := _SCHEMA.fullmatch(keys.get("schema") or ""):
        return _own(sample, schema[1])
    if "traceEvents" in keys or {"schemaVersion", "deviceProperties"} <= keys.keys():
        return Kind.EVENTS
    if {"ph", "ts"} <= keys.keys() or {"ph", "name"} <= keys.keys():
        return Kind.EVENTS
    if "entries" in keys or "comm_lib_version" in keys:
        return Kind.DUMP
    if "groups" in keys:
        return Kind.GROUPS
    if text[0] == "{" and _launch(sample, text) is LaunchText.READ:
        return Kind.LAUNCH
    if keys.keys() & _MODEL:
        return Kind.MODEL
    return Kind.BESIDE if keys and all(key.isdecimal() for key in keys) else None


def _own(sample: Sample, name: str) -> Kind:
    """Returns what a document of serried's own is; raises InputError for one that no tab shows."""
    if name in SCHEMAS:
        return SCHEMAS[name]
    if command := COMMANDS.get(name) or _printed_by(name):
        raise InputError(
            "{file} is a document of serried ({schema}) that no tab shows; {command} shows it",
            file=sample.name,
            schema=f"serried.{name}",
            command=command,
        )
    raise InputError(
        "{file} is a document of serried ({schema}) that no tab shows; serried opens {kinds}",
        file=sample.name,
        schema=f"serried.{name}",
        kinds=OPENS,
    )


def _printed_by(name: str) -> str:
    """Returns the command that prints a document, as its schema says; "" where there is none."""
    from serried.schemas import json_schema

    try:
        told = _PRINTED_BY.search(json_schema(f"serried.{name}/1").get("description", ""))
    except InputError:
        return ""
    return told[1] if told else ""


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
        recognise.reading_of(text, sample.name, {})
    except InputError as error:
        return LaunchText.NONE if recognise.UNKNOWN in error.values else LaunchText.REFUSED
    return LaunchText.READ
