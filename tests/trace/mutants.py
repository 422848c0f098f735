"""Samples of every trace format, and what damages them: bytes, lines, columns and kinds of file."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from serried.trace.clocks.pings import ping_file, ping_heading, ping_line
from serried.trace.formats.reading import read_trace
from serried.trace.store.folder import write_store
from tests.trace.recorded_run import Clock, Run

TRACES = Path(__file__).parents[1] / "goldens" / "traces"
ODD = (
    *(b"-1", b"0", b"-0.0", b"1.5", b"1e308", b"1e999", b"NaN", b"-Infinity", b"9" * 24),
    *(b"4294967296", b"9223372036854775808", b"null", b"true", b'""', b"{}", b"[]", b"[" * 12),
    *(b"\xff\xfe", b"\x00", b'"\\ud800"'),
)
"""What stands in the place of bytes and numbers."""
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 2**31, 2**63, 10**30, 1e308, float("nan"), float("-inf")),
    *("", "0", "\x00", "\ud800", "x" * 4_000, [], {}, [[]], {"a": 1}, [None], [-1], ["rank"]),
)
"""What stands in the place of a value of JSON."""

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
Files = dict[str, bytes]
"""A folder's files by their names in it."""


def _golden(*names: str) -> Callable[[Path], Files]:
    return lambda _: {Path(name).name: (TRACES / name).read_bytes() for name in names}


def _written(name: str, make: Callable[[], bytes]) -> Callable[[Path], Files]:
    return lambda _: {name: make()}


def _held(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def ndtimeline() -> bytes:
    names = ("forward-compute", "backward-compute", "forward-send", "backward-recv")
    events = [
        {
            **{"name": name, "ph": "X", "ts": 1000 * turn + 10 * at, "dur": 9},
            "args": {"rank": rank, "step": 1, "tp": 0, "pp": rank},
        }
        for rank in range(2)
        for turn in range(4)
        for at, name in enumerate(names)
    ]
    return json.dumps(events).encode()


def dynamic() -> bytes:
    lines = []
    for at, name in enumerate(("F0", "F1", "B0", "B1")):
        for phase, ts in (("B", 10 * at), ("E", 10 * at + 9)):
            named = {"name": name, "cat": "pipeline timeline", "ph": phase, "pid": 0}
            lines.append(json.dumps({**named, "tid": 1, "ts": 1_700_000_000_000 + ts}))
    return "\n".join(lines).encode()


def megatronapp() -> bytes:
    document = json.loads((TRACES / "megatronapp" / "pp4_iter10.json").read_text())
    events = document if isinstance(document, list) else document["traceEvents"]
    return json.dumps(events[:80]).encode()


def megascan() -> bytes:
    about = {"dp_rk": 0, "pp_rk": 0, "tp_rk": 0, "g_rk": 0}
    records: list[dict[str, object]] = [{"name": "iteration", "ph": "B", "rel_ts": 0}]
    for at, name in enumerate(("forward", "forward", "backward", "backward", "optimizer")):
        for phase, ts in (("B", 10 * at), ("E", 10 * at + 9)):
            records.append({"name": name, "ph": phase, "rel_ts": 1000 * ts, **about})
    return json.dumps(records).encode()


RUN = Run(pp=2, num_microbatches=2, num_steps=2)


def recordings(folder: Path) -> Files:
    """Returns the files of two ranks on two hosts, one of them with names and pings."""
    RUN.write(folder, clocks=[Clock("a"), Clock("b", ahead_ns=5_000)])
    files = _held(folder)
    pings = [ping_heading(run=RUN.name, rank=0), *(ping_line(1, (k, k, k, k + 9)) for k in (1, 5))]
    return {
        **files,
        "rank-00000.names": b'"load"\n"augment"\n',
        ping_file(0): "".join(pings).encode(),
    }


def restarted(folder: Path) -> Files:
    """Returns a run of which a later attempt lies below the first."""
    late = Run(pp=2, num_microbatches=2, num_steps=1)
    RUN.write(folder)
    late.write(folder / "restart-1", clocks=[Clock("a", late_ns=10**11, ahead_ns=10**11)] * 2)
    return {**_held(folder), "run-id": RUN.name.encode()}


def store(folder: Path) -> Files:
    """Returns a store of a run on two hosts."""
    RUN.write(folder / "run", clocks=[Clock("a"), Clock("b", ahead_ns=5_000)])
    write_store(read_trace([folder / "run"]), folder / "made.store")
    return _held(folder / "made.store")


SAMPLES: Mapping[str, Callable[[Path], Files]] = {
    "paddle": _golden("paddle/chunk/workerlog.0", "paddle/chunk/workerlog.1"),
    "paddle machines": lambda _: _held(TRACES / "paddle" / "multi"),
    "kineto": _golden("kineto/rank0.json"),
    "kineto, gzipped": _golden("kineto/rank0.json", "kineto/rank1.json.gz"),
    "megatronapp": _written("pp4.json", megatronapp),
    "megascan": _written("benchmark-data-0-pipeline-0-tensor-0.json", megascan),
    "straggler table": _golden("straggler_analysis/trace-ST.parquet"),
    "timers of all": _golden("megatron_timers/all.log"),
    "timers, minmax": _golden("megatron_timers/minmax.log"),
    "ndtimeline": _written("trace_step1", ndtimeline),
    "paddle dynamic": _written("profile_record_tmp_file_for_rank_0", dynamic),
    "recordings": recordings,
    "restarted": restarted,
    "store": store,
}

NEEDS_ARROW = ("straggler table", "store")


# ----------------------------------------------------------------------- what damages them


def damaged(whole: bytes, draw: random.Random) -> bytes:
    """Returns ``whole`` cut, doubled, turned round or overwritten at a few places."""
    text = bytearray(whole)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        if not text:
            break
        at = draw.randrange(len(text))
        end = min(len(text), at + draw.choice((1, 2, 5, 20, 200)))
        match draw.randrange(7):
            case 0:
                del text[at:end]
            case 1:
                text[at:at] = text[at:end]
            case 2:
                text[at] = draw.randrange(256)
            case 3:
                text = text[:at]
            case 4:
                text[at:end] = draw.choice(ODD)
            case 5:
                text[at:end] = bytes(reversed(text[at:end]))
            case _:
                numbers = list(_NUMBER.finditer(bytes(text[at : at + 400])))
                if numbers:
                    span = draw.choice(numbers).span()
                    text[at + span[0] : at + span[1]] = draw.choice(ODD)
    return bytes(text)


def without_lines(whole: bytes, draw: random.Random) -> bytes:
    """Returns text without every line of some word, or without a run of lines, or shuffled."""
    lines = whole.split(b"\n")
    match draw.randrange(3):
        case 0:
            words = re.findall(rb"[A-Za-z]{4,}", whole[:20_000]) or [b"none"]
            word = draw.choice(words)
            lines = [line for line in lines if word not in line]
        case 1:
            first = draw.randrange(len(lines))
            del lines[first : first + draw.randrange(1, 1 + len(lines))]
        case _:
            draw.shuffle(lines)
    return b"\n".join(lines)


def other_json(whole: bytes, draw: random.Random) -> bytes:
    """Returns a document, or lines of them, with values of other types, keys gone or doubled."""
    try:
        return json.dumps(_changed(json.loads(whole), draw)).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        pass
    lines = whole.split(b"\n")
    at = draw.randrange(len(lines))
    try:
        lines[at] = json.dumps(_changed(json.loads(lines[at]), draw)).encode()
    except (ValueError, RecursionError):
        return damaged(whole, draw)
    return b"\n".join(lines)


def _changed(document: Any, draw: random.Random) -> Any:
    """Changes one to three values somewhere within a document."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        here = document
        for _ in range(draw.randrange(1, 7)):
            if not isinstance(here, dict | list) or not here:
                return draw.choice(ODD_VALUES)
            key = draw.choice(list(here) if isinstance(here, dict) else range(len(here)))
            if draw.random() < 0.4 or not isinstance(here[key], dict | list) or not here[key]:
                break
            here = here[key]
        if isinstance(here, dict | list) and here:
            key = draw.choice(list(here) if isinstance(here, dict) else range(len(here)))
            if draw.random() < 0.2:
                del here[key]
            else:
                here[key] = draw.choice(ODD_VALUES)
    return document


def other_table(whole: bytes, draw: random.Random) -> bytes:
    """Returns a Parquet table with a column gone, renamed, of another type, or of odd values."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(pa.BufferReader(whole))
    for _ in range(draw.choice((1, 1, 2))):
        if not table.num_columns:
            break
        name = draw.choice(table.column_names)
        at = table.column_names.index(name)
        column = table.column(at)
        match draw.randrange(8):
            case 0:
                table = table.remove_column(at)
            case 1:
                names = [f"{each}_" if each == name else each for each in table.column_names]
                table = table.rename_columns(names)
            case 2:
                table = table.slice(0, draw.choice((0, 1, table.num_rows // 2)))
            case 3:
                table = table.set_column(at, name, _of_another_type(column, draw))
            case 4:
                table = pa.concat_tables([table, table])
            case 5:
                order = list(range(table.num_rows))
                draw.shuffle(order)
                table = table.take(pa.array(order, pa.int64()))
            case 6:
                table = table.append_column(draw.choice((name, "more")), column)
            case _:
                table = table.set_column(at, name, _with_odd_values(column, draw))
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def _of_another_type(column: Any, draw: random.Random) -> Any:
    """Returns a column of as many values of any type that Arrow has."""
    import pyarrow as pa

    types = (
        *(pa.string(), pa.large_string(), pa.binary(), pa.float64(), pa.float16(), pa.bool_()),
        *(pa.int8(), pa.int64(), pa.uint64(), pa.decimal128(38, 3), pa.timestamp("ns"), pa.null()),
        *(pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.date32(), pa.duration("us")),
    )
    kind = draw.choice(types)
    try:
        return column.cast(kind, safe=False)
    except (pa.ArrowException, ValueError):
        return pa.nulls(len(column), kind)


def _with_odd_values(column: Any, draw: random.Random) -> Any:
    """Returns a column with NULL, NaN or numbers that no trace has in some places."""
    import pyarrow as pa

    values = column.to_pylist()
    for _ in range(draw.choice((1, 3, len(values)))):
        if values:
            values[draw.randrange(len(values))] = draw.choice(
                (None, -1, -2, 0, 2**31 - 1, 2**62, -(2**62), float("nan"), 1e300, "Q", "", b"F")
            )
    for kind in (None, column.type, pa.float64(), pa.string()):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            continue
    return pa.nulls(len(values))


def mutant(name: str, files: Files, draw: random.Random) -> Files:
    """Returns a sample's files, one or two of them damaged, empty or gone."""
    found = dict(files)
    for chosen in draw.sample(sorted(found), k=min(len(found), draw.choice((1, 1, 1, 2)))):
        whole = found[chosen]
        if not whole:
            continue
        turn = draw.random()
        if turn < 0.03:
            found[chosen] = b""
        elif turn < 0.05 and len(found) > 1:
            del found[chosen]
        elif chosen.endswith(".parquet") and turn < 0.75:
            found[chosen] = other_table(whole, draw)
        elif chosen.endswith(".gz") and turn < 0.7:
            change = draw.choice((damaged, other_json))
            found[chosen] = gzip.compress(change(gzip.decompress(whole), draw), 1)
        elif chosen.endswith((".json", ".jsonl", ".names", "trace_step1", "_0")) and turn < 0.6:
            found[chosen] = other_json(whole, draw)
        elif turn < 0.7 and b"\n" in whole[:4_000] and not chosen.endswith(".spans"):
            found[chosen] = without_lines(whole, draw)
        elif chosen.endswith(".spans") and turn < 0.5:
            found[chosen] = other_header(whole, draw)
        else:
            found[chosen] = damaged(whole, draw)
    return found


def other_header(whole: bytes, draw: random.Random) -> bytes:
    """Returns a recording whose header says other things, in its place and with its length."""
    from serried.trace.model.record import HEADER_BYTES, MAGIC

    at = len(MAGIC) + 4
    size = int.from_bytes(whole[len(MAGIC) : at], "little")
    text = json.dumps(_changed(json.loads(whole[at : at + size]), draw)).encode()
    text = text[: HEADER_BYTES - at - 32]
    head = MAGIC + len(text).to_bytes(4, "little") + text
    return head + whole[len(head) : HEADER_BYTES] + whole[HEADER_BYTES:]


def laid_down(files: Files, folder: Path) -> None:
    """Writes files into ``folder``, which is made new."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
