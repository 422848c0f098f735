"""Reads whatever a user has of a job that hung, failed or was slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from serried.diagnose.evidence.log_file import LogFile
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.reader import text_signs
from serried.diagnose.gathered import Evidence
from serried.diagnose.steps.recording import recordings_in
from serried.finding import Sentence, said
from serried.trace.model.progress import Listener, unheard


def gather(places: Sequence[Path], hear: Listener = unheard) -> Evidence:
    """Returns the evidence that lies in files and folders, each recognised by what it holds.

    ``hear`` is told of long reading as it goes on.

    Raises InputError for a place that is not there or cannot be read.
    """
    recorded = recordings_in(places)
    files = [file for place in places for file in _files(place) if file not in recorded.files]
    signs: list[Sign] = []
    num_lines = 0
    notes: list[Sentence] = []
    for file in files:
        log = LogFile(file, file.name, hear)
        signs += text_signs(log.lines())
        num_lines += log.num_lines
        notes += _odd(log)
    return Evidence(
        tuple(signs),
        recordings=recorded.recordings,
        sources=tuple(map(str, [*files, *sorted(recorded.files)])),
        num_lines=num_lines,
        notes=(*recorded.notes, *notes),
    )


def _files(place: Path) -> list[Path]:
    return sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]


def _odd(log: LogFile) -> list[Sentence]:
    if log.is_sealed:
        return [
            said(
                "{name} is packed by zstd, which Python unpacks from 3.14 on; unpack it (zstd -d) "
                "and give what comes out",
                name=log.name,
            )
        ]
    if log.is_binary:
        return [said("{name} holds no text, so it was not read as a log", name=log.name)]
    if log.is_damaged:
        return [
            said("{name} breaks off within its packing; what came before was read", name=log.name)
        ]
    return []
