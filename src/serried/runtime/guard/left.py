"""What a rank leaves beside its operations: torch's flight recorder, how it failed, its neighbours.

    rank-00003.fr.json     collectives as C++ saw them, DDP's too     a thread of its own writes it
    rank-00003.failed      the exception that ended it
    rank-00003.neighbours  states of this host's other ranks: stopped, gone

Each is written under another name first and then moved into place, so none is ever half written; a
disk that will not take it is no reason to end a training.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

import torch

from serried.diagnose.evidence.records.process import state_of

FR_SUFFIX, FAILED_SUFFIX, NEIGHBOURS_SUFFIX = ".fr.json", ".failed", ".neighbours"
MOST_FR_BYTES = 32 << 20
"""The longest dump that is kept; two thousand entries, torch's own bound, take one megabyte."""
MOST_TEXT, MOST_LINE = 32 << 10, 400
_log = logging.getLogger("serried")


def leave_flight_record(path: Path) -> threading.Thread:
    """Starts to write torch's flight recorder, by a thread that may wait and holds nobody up."""

    def dump() -> None:
        module = torch._C._distributed_c10d
        for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
            call = getattr(module, name, None)
            if call is None:
                continue
            with suppress(Exception):
                raw = call()
                raw = raw if isinstance(raw, bytes) else str(raw).encode()
                # Before the first operation it says what there is of groups, and nothing more.
                if b'"entries"' in raw and len(raw) <= MOST_FR_BYTES:
                    leave(path, raw)
                    return

    thread = threading.Thread(target=dump, name="serried-guard-flight-record", daemon=True)
    thread.start()
    return thread


def leave_failure(path: Path, rank: int, step: int, error: BaseException) -> None:
    """Writes the exception that ended a rank as Python prints it, below a line that says when."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    first = f"# {at} rank {rank}, step {step}, wall_ns {time.time_ns()}\n"
    text = _cut("".join(traceback.format_exception(error)), MOST_TEXT)
    leave(path, (first + text).encode("utf-8", "replace"))


def leave_neighbours(path: Path, processes: dict[int, tuple[int, int]]) -> None:
    """Writes the state of this host's other ranks, given their pids and starts."""
    states = {str(rank): state_of(*process) for rank, process in processes.items()}
    leave(path, json.dumps({"wall_ns": time.time_ns(), "states": states}).encode())


def leave(path: Path, data: bytes) -> None:
    """Writes a file whole, or not at all; says why where the disk will not have it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        _log.warning("%s cannot be written: %s", path, error.strerror)
        with suppress(OSError):
            part.unlink()


def summary_of(error: BaseException) -> str:
    """Returns an exception in one line, with the innermost place in which it was raised."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines() or [""]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return _cut(text[0], MOST_LINE) + place


def _cut(text: str, most: int) -> str:
    """Returns a text's two ends where it is longer than ``most``: the last says what failed."""
    return text if len(text) <= most else f"{text[: most // 4]}\n…\n{text[-most // 2 :]}"
