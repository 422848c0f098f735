"""What is said of a file that the page opens nowhere: what it is, and the command that takes it.

model.zip is a zip archive; unpack it first (unzip model.zip) and open what comes out
loss.csv holds a table of losses, which no tab shows; serried diagnose LOG reads losses from a …
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.limits import LAUNCH_BYTES
from serried.views.web.opening.authored import Authored, authored, columns_of, is_of_losses
from serried.views.web.opening.json_head import outer_keys
from serried.views.web.opening.sample import Sample

OPENS = said(
    "launch files, hostfiles, a model's config.json, recordings and stores, traces of "
    "torch.profiler, Chrome, Perfetto, Nsight Systems and Paddle, logs, flight-recorder dumps, and "
    "JSON of serried check, plan, diagnose and groups"
)
"""What can be opened, as a sentence lists it."""

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

PACKED: tuple[tuple[bytes, Sentence, str], ...] = (
    (b"PK\x03\x04", said("a zip archive"), "unzip {name}"),
    (b"\x28\xb5\x2f\xfd", said("packed by zstd"), "zstd -d {name}"),
    (b"BZh", said("packed by bzip2"), "bunzip2 {name}"),
    (b"\xfd7zXZ\x00", said("packed by xz"), "unxz {name}"),
)
"""What archives begin with, what they are, and what unpacks them."""

FOREIGN: tuple[tuple[bytes, Sentence], ...] = (
    (b"\x89PNG", said("a picture")),
    (b"\xff\xd8\xff", said("a picture")),
    (b"%PDF", said("a PDF")),
    (b"\x7fELF", said("a program")),
    (b"\x89HDF", said("an HDF5 file")),
    (b"\x93NUMPY", said("an array of NumPy")),
)
"""What others' files begin with, and what they are."""

LOSSES = "serried diagnose LOG", said("losses from the log of a job")
BUSBW = "serried collective all-reduce --busbw FILE", said("what serried check --busbw FILE writes")
"""Commands that read the same from another file, and from which."""

_CHECKPOINT = re.compile(rb"PK\x03\x04.{26}[^\0]{1,99}/(?:data\.pkl|\.format_version)", re.S)
_TAR = 257, b"ustar"
_EVENTS = b"brain.Event:"
"""What TensorBoard's files of events say in their first record."""
_EVENTS_WITHIN = 64
_CLUSTER = re.compile(r"^(?:gpus_per_node|nodes_per_domain|nic)\s*=", re.M)
_LETTERS = 1 << 18
_PRINTED_BY = re.compile(r"`(serried [^`]+)`")


def unknown(sample: Sample) -> InputError:
    """Returns what is said of a file that serried opens nowhere."""
    if sample.text is None:
        return _of_bytes(sample)
    return _of_text(sample, sample.text)


def own_document(sample: Sample, name: str) -> InputError:
    """Returns what is said of a document of serried's own that no tab shows."""
    if command := COMMANDS.get(name) or _printed_by(name):
        return InputError(
            "{file} is a document of serried ({schema}) that no tab shows; {command} shows it",
            file=sample.name,
            schema=f"serried.{name}",
            command=command,
        )
    return InputError(
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


# ----------------------------------------------------------------------- bytes


def _of_bytes(sample: Sample) -> InputError:
    start = sample.start
    if start[:1] == b"\x80" and b"device_traces" in start and b"segments" in start:
        return _is_none(sample, said("a memory snapshot of PyTorch"))
    if _CHECKPOINT.match(start):
        return _is_none(sample, said("a checkpoint of PyTorch"))
    for mark, what, command in PACKED:
        if start.startswith(mark):
            return _packed(sample, what, command)
    if start[_TAR[0] :].startswith(_TAR[1]):
        return _packed(sample, said("a tar archive"), "tar -xf {name}")
    for mark, what in FOREIGN:
        if start.startswith(mark):
            return _is_none(sample, what)
    if _is_safetensors(start):
        return _weights(sample)
    if _EVENTS in start[:_EVENTS_WITHIN]:
        return _shown_by(sample, said("events of TensorBoard"), "tensorboard --logdir FOLDER")
    if sample.name.endswith(".nsys-rep"):
        return InputError(
            "{file} is Nsight Systems' own report; nsys export --type sqlite {file} makes a file "
            "that serried opens",
            file=sample.name,
        )
    return InputError(
        "{file} is binary and nothing that serried reads; serried opens {kinds}",
        file=sample.name,
        kinds=OPENS,
    )


def _is_safetensors(start: bytes) -> bool:
    return (
        len(start) > 9 and 1 < int.from_bytes(start[:8], "little") < 1 << 27 and start[8:9] == b"{"
    )


def _packed(sample: Sample, what: Sentence, command: str) -> InputError:
    return InputError(
        "{file} is {what}; unpack it first ({command}) and open what comes out",
        file=sample.name,
        what=what,
        command=command.format(name=sample.name),
    )


# ----------------------------------------------------------------------- text


def _of_text(sample: Sample, text: str) -> InputError:
    begin = text.lstrip()
    match authored(text):
        case Authored.HTML:
            return InputError(
                "{file} is a page of HTML, as serried report writes one; open it in your browser",
                file=sample.name,
            )
        case Authored.PAGE:
            return InputError(
                "{file} is a page of Markdown; open the launch file or command that stands in it",
                file=sample.name,
            )
        case Authored.TABLE:
            return _table(sample, columns_of(begin))
        case Authored.PROGRAM:
            return _is_none(sample, said("a program"))
        case Authored.SETTINGS if _CLUSTER.search(text):
            return _shown_by(sample, said("a cluster"), f"serried plan --cluster {sample.name}")
    keys = outer_keys(begin[:_LETTERS]) if begin[:1] in ("{", "[") else {}
    return _json(sample, keys) or _plain(sample)


def _table(sample: Sample, columns: tuple[str, ...]) -> InputError:
    heads = {name.lower() for name in columns}
    if any("busbw" in name for name in heads):
        return _read_elsewhere(sample, said("a table of bus bandwidths"), *BUSBW)
    if {"tp", "pp"} <= heads and "model" in heads:
        command = f"serried plan --calibrate {sample.name}"
        return _shown_by(sample, said("a table of steps"), command)
    if is_of_losses(columns):
        return _read_elsewhere(sample, said("a table of losses"), *LOSSES)
    return _is_none(sample, said("a table"))


def _json(sample: Sample, keys: Mapping[str, str | None]) -> InputError | None:
    if "log_history" in keys:
        return _read_elsewhere(sample, said("the state of a trainer"), *LOSSES)
    if {"tori", "tideal"} <= keys.keys():
        return _read_elsewhere(
            sample,
            said("figures of StragglerAnalysis"),
            "serried trace stats FILE",
            said("the table (.parquet) that they were worked out from"),
        )
    if "weight_map" in keys:
        return _weights(sample)
    if {"cells", "nbformat"} <= keys.keys():
        return _shown_by(sample, said("a notebook"), f"jupyter lab {sample.name}")
    if "text" in keys and sample.text and sample.text.lstrip().startswith("{"):
        command = f"serried train --data {sample.name}"
        return _shown_by(sample, said("text to train on"), command)
    return None


def _plain(sample: Sample) -> InputError:
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


# ----------------------------------------------------------------------- sentences


def _is_none(sample: Sample, what: Sentence) -> InputError:
    return InputError(
        "{file} is {what}, which serried does not read; serried opens {kinds}",
        file=sample.name,
        what=what,
        kinds=OPENS,
    )


def _shown_by(sample: Sample, what: Sentence, command: str) -> InputError:
    return InputError(
        "{file} holds {what}, which no tab shows; {command} takes it",
        file=sample.name,
        what=what,
        command=command,
    )


def _read_elsewhere(sample: Sample, what: Sentence, command: str, source: Sentence) -> InputError:
    return InputError(
        "{file} holds {what}, which no tab shows; {command} reads {source}",
        file=sample.name,
        what=what,
        command=command,
        source=source,
    )


def _weights(sample: Sample) -> InputError:
    return InputError(
        "{file} holds weights, which no tab shows; serried plan --model config.json plans a model "
        "by the config beside them",
        file=sample.name,
    )
