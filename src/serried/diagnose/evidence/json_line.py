"""Lines that a logger or a container wrote as JSON, read as the text that they carry.

    {"log":"ValueError: x\\n","stream":"stderr","time":"2026-01-02T03:04:05Z"}     docker
    {"level":"error","rank":3,"msg":"ValueError: x"}                              a logger

>>> carried('{"level":"error","rank":3,"msg":"ValueError: x"}')
('ValueError: x', 3, None)
>>> carried("{'loss': 2.1}") is None
True
"""

from __future__ import annotations

import json

TEXTS = ("log", "message", "msg", "MESSAGE", "text", "textPayload", "exception_message", "event")
"""Fields that carry a text, the likeliest first."""
_NAMES = ("exception_type", "error_type", "exc_type")
_RANKS = ("rank", "global_rank", "RANK")
_TIMES = ("time", "ts", "timestamp", "@timestamp", "asctime")
_LEVELS = ("level", "levelname", "severity", "lvl")
_MARKED = frozenset(("ERROR", "FATAL", "CRITICAL"))
LONGEST_RANK = 10**7
MOST_DEPTH = 3
"""Records within records that are looked through for a text."""


def carried(text: str) -> tuple[str, int | None, str | None] | None:
    """Returns the text that a line carries, its rank and its time; None where it is no such line.

    A line that carries an error's name and message apart is read as Python prints both.
    """
    text = text.strip()
    if not text.startswith('{"') or not text.endswith("}"):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    said = _text(fields)
    if said is None:
        return None
    rank = next((v for name in _RANKS if type(v := fields.get(name)) is int), None)
    time = next((v for name in _TIMES if isinstance(v := fields.get(name), str)), None)
    is_rank = rank is not None and 0 <= rank < LONGEST_RANK
    return _named(fields, said.rstrip("\n")), rank if is_rank else None, time


def _text(fields: dict[str, object], depth: int = 0) -> str | None:
    """Returns the text of a record; an event within it tells more than that one was handled."""
    said = next((v for name in TEXTS if isinstance(v := fields.get(name), str)), None)
    inner = [value for value in fields.values() if isinstance(value, dict)]
    within = (_text(each, depth + 1) for each in inner if depth < MOST_DEPTH)
    told = next((text for text in within if text is not None), None)
    return said if told is None else told if said is None else f"{said}: {told}"


def _named(fields: dict[str, object], said: str) -> str:
    name = next((v for key in _NAMES if isinstance(v := fields.get(key), str)), None)
    if name:
        message = fields.get("exception_message")
        return f"{name}: {message if isinstance(message, str) else said}"
    level = next((v for key in _LEVELS if isinstance(v := fields.get(key), str)), "").upper()
    is_told = level in said.upper() or "Error" in said or said.startswith((" ", "Traceback"))
    return said if level not in _MARKED or is_told else f"{level} {said}"
