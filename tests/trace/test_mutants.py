"""Damaged files of every tool are read, or refused in one sentence: never anything else."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from serried.errors import SerriedError
from serried.trace.analysis import analyse
from serried.trace.megatron_timers import timer_log
from serried.trace.reading import read_trace
from serried.trace.timer_statistics import measure_timers

TRACES = Path(__file__).parents[1] / "goldens" / "traces"
ODD = (
    *(b"-1", b"0", b"-0.0", b"1.5", b"1e308", b"1e999", b"NaN", b"-Infinity", b"9" * 24),
    *(b"4294967296", b"9223372036854775808", b"null", b"true", b'""', b"{}", b"[]", b"[" * 12),
    *(b"\xff\xfe", b"\x00", b'"\\ud800"'),
)
"""What stands in the place of bytes and numbers."""

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


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


SAMPLES: dict[str, Callable[[], bytes]] = {
    "workerlog.0": (TRACES / "paddle" / "chunk" / "workerlog.0").read_bytes,
    "rank0.json": (TRACES / "kineto" / "rank0.json").read_bytes,
    "rank1.json.gz": (TRACES / "kineto" / "rank1.json.gz").read_bytes,
    "pp4.json": megatronapp,
    "benchmark-data-0-pipeline-0-tensor-0.json": megascan,
    "table.parquet": (TRACES / "straggler_analysis" / "trace-ST.parquet").read_bytes,
    "all.log": (TRACES / "megatron_timers" / "all.log").read_bytes,
    "minmax.log": (TRACES / "megatron_timers" / "minmax.log").read_bytes,
    "trace_step1": ndtimeline,
    "profile_record_tmp_file_for_rank_0": dynamic,
}


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


def packed(name: str, draw: random.Random) -> bytes:
    """Returns a damaged sample; a gzipped one is mostly damaged within."""
    whole = SAMPLES[name]()
    if name.endswith(".gz") and draw.random() < 0.7:
        return gzip.compress(damaged(gzip.decompress(whole), draw), 1)
    return damaged(whole, draw)


def read(folder: Path) -> None:
    """Reads and measures what ``folder`` holds, as ``serried trace stats`` does."""
    log = timer_log([folder])
    if log is not None:
        measure_timers(log)
        return
    found = analyse(read_trace([folder]))
    if found.statistics.steps:
        found.table().grouped(["rank"])


def hold(name: str, seeds: range, folder: Path) -> None:
    for seed in seeds:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / name).write_bytes(packed(name, random.Random(f"{name} {seed}")))
        try:
            read(folder)
        except SerriedError as refused:
            said = str(refused)
            assert "\n" not in said and len(said) < 2000, (seed, said)


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    hold(name, range(4), tmp_path / "mutant")


@pytest.mark.soak
@pytest.mark.parametrize("name", SAMPLES)
def test_thousands_of_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    hold(name, range(2000), tmp_path / "mutant")
