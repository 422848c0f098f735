"""Lines that a terminal broke at its width, put together again.

    failed (exitcode: -9) local_ra|       as wide as any line here
    nk: 5 (pid: 77) of binary: p          goes on

A text was copied from a terminal where several lines are exactly as wide as the widest, and each of
them goes on in a line that does not begin like a message of its own.

>>> rows = ["x" * 55 + "local_ra", "nk: 5", "step 1", "y" * 55 + "Watchdog", " caught", "step 2"]
>>> [(number, text[-12:]) for number, text in unwrapped(rows)]
[(0, 'ocal_rank: 5'), (2, 'step 1'), (3, 'chdog caught'), (5, 'step 2')]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

NARROWEST = 60
"""Letters below which no terminal is taken to be."""
FEWEST = 2
"""Lines that must be as wide as the widest."""
MOST_PARTS = 60
NEAR = 24
"""Letters that a line between whose words a text was broken lacks at most."""
_QUOTED = re.compile(r"(?:> ?)+")
SAME_HEAD = 8
"""Letters that two messages share at their beginning, as a program or its carrier puts them."""
_BEGINS = re.compile(
    r"\s*(?:\[rank|\[[EWIF]\b|\[\d{4}-|[EWIF]\d{4} |\d{4}-\d\d-\d\d|Traceback|terminate called|"
    r"File \"|frame #|\d+%\||(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b|ERROR|WARNING|INFO|"
    r"srun: |slurmstepd: |Thread |Process \d+: |#\d+ |[^()]+ \([^()]+:\d+\)\s*$)|[\s~^]*$"
)
_ENDS = ("  ", "│", "|", "┃", "╮", "╯", "=" * 8, "*" * 8, "-" * 8, "^" * 4)
"""How a line ends that is as wide by itself: padded, in a box, a rule, marks below code."""
_TABLE = re.compile(r"\s*\S+(?: \S+)*(?: {2,}\S+(?: \S+)*){2,}\s*$")
"""A row of a table: three columns, which spaces keep apart."""
_BAR = re.compile(r"%\||it/s|s/it")


def unwrapped(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Returns lines with what was broken off them, each with the place of its first part."""
    widest = max(map(len, lines), default=0)
    full = sum(len(line) == widest for line in lines)
    if widest < NARROWEST or full < FEWEST or _are_of_words(lines, widest, full):
        return list(enumerate(lines))
    whole: list[tuple[int, str]] = []
    place = 0
    while place < len(lines):
        first, text, parts = place, lines[place], 1
        while parts < MOST_PARTS and _goes_on(lines, place, widest):
            place, parts = place + 1, parts + 1
            text += _QUOTED.sub("", lines[place], count=1)
        whole.append((first, text))
        place += 1
    return whole


def _are_of_words(lines: Sequence[str], widest: int, full: int) -> bool:
    """Tells whether lines were broken between words, so that few are as wide as the widest."""
    broken = at_space = 0
    for line, following in pairwise(lines):
        following = following.lstrip("> ") if line.startswith(">") else following
        word = following.lstrip().partition(" ")[0]
        is_near = widest - NEAR <= len(line) < widest < len(line) + 1 + len(word)
        broken += is_near and not _BEGINS.match(following)
        at_space += len(line) == widest and (line[-1] == " " or following[:1] == " ")
    return broken >= full or (broken > 0 and not at_space)


def _goes_on(lines: Sequence[str], place: int, widest: int) -> bool:
    line = lines[place]
    if len(line) != widest or line.endswith(_ENDS) or place + 1 == len(lines):
        return False
    following = lines[place + 1]
    following = _QUOTED.sub("", following, count=1) if line.startswith(">") else following
    is_alike = following[:SAME_HEAD] == line[:SAME_HEAD]
    is_bar = _BAR.search(line) and "[rank" not in line and ".cpp:" not in line
    is_table = _TABLE.match(line) and _TABLE.match(following)
    return not (is_alike or is_bar or is_table or _BEGINS.match(following))
