r"""A pickle that may hold plain values only: read without importing or calling anything.

A pickle is a program; one that was made to do harm asks for a function by name and calls it. What
torch's flight recorder writes needs neither, so every instruction is looked at before any is
followed: those that push values and build lists, tuples and dicts pass, and all others are
refused by name. The unpickler that follows has no way to look up a name either.

>>> read_plain_pickle(b"\x80\x02}X\x01\x00\x00\x00aK\x01s.", "fr_trace_0")
{'a': 1}
>>> read_plain_pickle(b"cposix\nsystem\n(S'ls'\ntR.", "fr_trace_0")  # doctest: +ELLIPSIS
Traceback (most recent call last):
serried.errors.InputError: fr_trace_0 asks for posix.system, which no dump does; a pickle may ...
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any

from serried.errors import InputError

# Instructions that only push values and build lists, tuples and dicts, with what follows each, up
# to 500 at a time. A memo's number of four bytes must end on a zero byte, for an unpickler makes
# room for every number below the largest.
_PLAIN = re.compile(
    rb"(?:[()\]}Naeltdsu012\x85-\x89\x8f\x90\x94]|[Kqh\x80].|M..|r...\x00|[jJ]....|"
    rb"[G\x95].{8}){1,500}",
    re.DOTALL,
)
_COUNTED = dict.fromkeys(b"XTB\x8b", 4) | dict.fromkeys(b"UC\x8c\x8a", 1)
_COUNTED |= dict.fromkeys(b"\x8d\x8e", 8)
"""Instructions that push text, bytes or a long number: how many bytes tell its length."""

_WITH_NUMBER = b"KMhqrjJG\x80\x95"
_IMPORTS = b"ci"
_STACKED = b"\x93"
"""An import by the two texts that were pushed last."""
_TEXT = re.compile(rb"\x8c.([\w.]{1,80})", re.DOTALL)
_STOP = ord(".")


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("a persistent object")


def read_plain_pickle(data: bytes, name: str) -> Any:
    """Returns what a pickle of plain values holds; ``name`` is the file's, for errors.

    Raises InputError for one that asks for anything else, or that is cut off.
    """
    _require_plain(data, name)
    try:
        return _Plain(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, ArithmeticError, LookupError, MemoryError) as error:
        raise _damaged(name) from error
    except (AttributeError, TypeError, ValueError) as error:
        raise _damaged(name) from error


def _require_plain(data: bytes, name: str) -> None:
    """Walks over all instructions; raises InputError for one that does more than build values."""
    at, end = 0, len(data)
    while at < end and data[at] != _STOP:
        if found := _PLAIN.match(data, at):
            at = found.end()
        elif (width := _COUNTED.get(data[at])) is not None:
            at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
        elif data[at] in _WITH_NUMBER and (end - at < 9 or data[at] != ord("r")):
            raise _damaged(name)
        else:
            raise _refused(data, at, name)
    if at >= end:
        raise _damaged(name)


def _damaged(name: str) -> InputError:
    return InputError("{path} breaks off or is damaged: it is no whole dump", path=name)


def _on_stack(before: bytes) -> str:
    """Returns the module and the name that were pushed last, as far as they are plain to see."""
    words = [each.decode("ascii", "replace") for each in _TEXT.findall(before[-400:])]
    return ".".join(words[-2:]) or "a program"


def _refused(data: bytes, at: int, name: str) -> InputError:
    wanted = _on_stack(data[:at]) if data[at] in _STACKED else f"0x{data[at]:02x}"
    if data[at] in _IMPORTS:
        words = data[at + 1 : at + 201].split(b"\n", 2)[:2]
        wanted = ".".join(word.decode("utf-8", "replace") for word in words)
    return InputError(
        "{path} asks for {wanted}, which no dump does; a pickle may run any program, so it was "
        "not read",
        path=name,
        wanted="".join(letter for letter in wanted if letter.isprintable())[:80],
    )
