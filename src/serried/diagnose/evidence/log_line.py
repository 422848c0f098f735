"""A line of a log without what launchers put before it, and whose it is.

>>> line = log_line("[default3]:[rank11]: RuntimeError: x", "console.log", 7)
>>> line.text, line.speaker.rank
('RuntimeError: x', 11)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from serried.diagnose.evidence.quote import NOBODY, Quote, Speaker

_RANK = re.compile(r"^(?:\[default\d+\]:)?\[rank(\d+)\]:\s?")


@dataclass(frozen=True)
class LogLine:
    """Holds one line: its text without prefixes, its speaker, and the line as it stands."""

    text: str
    speaker: Speaker
    quote: Quote


def log_line(raw: str, source: str, number: int) -> LogLine:
    """Returns a line taken apart."""
    quote = Quote(source, number, raw)
    found = _RANK.match(raw)
    if not found:
        return LogLine(raw, NOBODY, quote)
    return LogLine(raw[found.end() :], Speaker(int(found[1])), quote)
