"""What nobody foresaw, told in one sentence, with the traceback kept for whoever mends it.

A user's mistake is an ``InputError`` long before this. What reaches here is a mistake of
serried's own, a machine without memory, or a file system that refuses; none of them is answered
with a traceback.
"""

from __future__ import annotations

import platform
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from serried.errors import EnvironmentProblem, SerriedError
from serried.version import __version__

LIMIT_LETTERS = 200
"""How much of what an error says of itself is told in one sentence."""
LIMIT_FILES = 50
"""Written by one process; a server may meet the same mistake in every request."""
SECRET = "--token"

_files: dict[str, Path] = {}
"""The file for each place in the program where a mistake was met."""


def mishap_of(error: BaseException, asked: Sequence[str]) -> SerriedError:
    """Returns the sentence for an error that nobody foresaw; ``asked`` is what was asked for.

    Writes the traceback to a file of the system's folder for such files, where that can be had.
    The sentence is an EnvironmentProblem: no other input is known to work.
    """
    # Too little memory, a full disk or missing rights are no mistakes of serried's own.
    if isinstance(error, MemoryError):
        return EnvironmentProblem("there is not enough memory here for what was asked")
    if isinstance(error, OSError) and error.strerror:
        where = f" ({error.filename})" if error.filename else ""
        return EnvironmentProblem(
            "the system refuses: {reason}{where}", reason=error.strerror, where=where
        )
    what = f"{type(error).__name__}: {error}"[:LIMIT_LETTERS].replace("\n", " ")
    kept = _kept(error, asked)
    if kept is None:
        return EnvironmentProblem(
            "this is a mistake in serried, not in what was asked ({what}); SERRIED_TRACEBACK=1 "
            "prints where it happens: please report that with the command",
            what=what,
        )
    return EnvironmentProblem(
        "this is a mistake in serried, not in what was asked ({what}); {file} says where it "
        "happens: please report it with that file",
        what=what,
        file=kept,
    )


def _kept(error: BaseException, asked: Sequence[str]) -> Path | None:
    """Returns the file for this mistake, written now or before; None where none can be."""
    place = str(traceback.extract_tb(error.__traceback__)[-1:])
    if place not in _files and len(_files) < LIMIT_FILES:
        try:
            with tempfile.NamedTemporaryFile(
                "w", prefix="serried-mistake-", suffix=".txt", delete=False, encoding="utf-8"
            ) as file:
                file.write(_report(error, asked))
                _files[place] = Path(file.name)
        except (OSError, ValueError):
            return None
    return _files.get(place)


def _report(error: BaseException, asked: Sequence[str]) -> str:
    """Returns what a report needs: versions, what was asked for without its token, and where."""
    # A token is given as `--token WORD` or as `--token=WORD`; both are left out.
    before = ("", *asked)
    words = (
        "…" if was == SECRET or word.startswith(SECRET + "=") else word
        for was, word in zip(before, asked, strict=False)
    )
    head = (
        f"serried {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"asked: {' '.join(words)}",
        "",
    )
    return "\n".join((*head, *traceback.format_exception(error)))
