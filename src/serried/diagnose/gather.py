"""Reads whatever a user has of a job that hung, failed or was slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from serried.diagnose.evidence.log_line import LogLine, log_line
from serried.diagnose.evidence.watchdog import timeouts
from serried.diagnose.gathered import Evidence
from serried.user_file import opened


def gather(places: Sequence[Path]) -> Evidence:
    """Returns the evidence that lies in files and folders, each recognised by what it holds.

    Raises InputError for a place that is not there or cannot be read.
    """
    files = [file for place in places for file in _files(place)]
    lines = [line for file in files for line in _lines(file)]
    signs = tuple(sign for line in lines for sign in timeouts(line))
    return Evidence(signs, sources=tuple(map(str, files)), num_lines=len(lines))


def _files(place: Path) -> list[Path]:
    return sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]


def _lines(file: Path) -> Iterator[LogLine]:
    with opened(file) as stream:
        for number, raw in enumerate(stream, 1):
            yield log_line(raw.decode("utf-8", "replace").rstrip("\r\n"), file.name, number)
