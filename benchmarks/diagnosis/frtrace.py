"""What torch's own analyser of flight-recorder dumps says, run as a process of its own.

``torchfrtrace`` of the torch that is installed (torch.distributed.flight_recorder) reads all
folders in one process, since importing torch takes seconds. On dumps of gloo it ends in a
KeyError: they leave out the groups' members, and ranks count their groups each for itself.

>>> named_ranks("missing ranks: {2, 3}\\nexpected ranks: {0, 1, 2, 3}")
(2, 3)
>>> named_ranks("Culprit rank 4; Error type: SIZE_OR_SYNTAX_MISMATCH")
(4,)
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

Word = tuple[tuple[int, ...] | None, str]
"""The ranks it names, None for none, and its outcome in a few words."""

NO_TORCH = "torch is not installed"
_MISSING = re.compile(r"missing ranks: \{([\d, ]+)\}")
_CULPRIT = re.compile(r"[Cc]ulprit rank (\d+)")
_PROGRAM = """
import contextlib, io, json, sys
from torch.distributed.flight_recorder.fr_trace import main
for folder in sys.argv[1:]:
    heard, failed = io.StringIO(), ""
    import logging
    logging.getLogger().handlers = [logging.StreamHandler(heard)]
    for name in list(logging.root.manager.loggerDict):
        logging.getLogger(name).handlers = [logging.StreamHandler(heard)]
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        try:
            main([folder])
        except BaseException as error:
            failed = f"{type(error).__name__}: {error}"
    print("\\x1e" + json.dumps([failed, heard.getvalue()]), flush=True)
"""
LONGEST_S = 600.0


def frtrace_words(folders: Sequence[Path]) -> list[Word]:
    """Returns what torchfrtrace says of each folder of dumps."""
    if find_spec("torch") is None:
        return [(None, NO_TORCH)] * len(folders)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, folders)],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    answers = [json.loads(part.splitlines()[0]) for part in done.stdout.split("\x1e")[1:]]
    answers += [["it did not start", ""]] * (len(folders) - len(answers))
    return [_word(failed, text) for failed, text in answers]


def named_ranks(text: str) -> tuple[int, ...] | None:
    """Returns the ranks that it names first, None where it names none."""
    if found := _CULPRIT.search(text):
        return (int(found[1]),)
    if found := _MISSING.search(text):
        return tuple(int(rank) for rank in found[1].split(","))
    return None


def _word(failed: str, text: str) -> Word:
    if failed:
        return None, failed
    ranks = named_ranks(text)
    return ranks, "names " + ", ".join(map(str, ranks)) if ranks else "names nobody"
