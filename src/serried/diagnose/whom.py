"""Ranks and speakers in prose, as the sentences of a diagnosis name them.

>>> print(named((3, 0, 4)), "/", named((7,)), "/", named(range(512)))
ranks 0, 3 and 4 / rank 7 / ranks 0-511
"""

from __future__ import annotations

from collections.abc import Iterable

from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.errors import listed
from serried.finding import Sentence, said

MOST_RUNS = 12
"""Runs of ranks that are written out; a longer list ends in an ellipsis."""
SHORTEST_RUN = 4
"""Ranks in a row that are written as a range."""

_NUMBERED = {
    Numbering.GLOBAL: said("rank {rank}"),
    Numbering.LOCAL: said("local rank {rank}"),
    Numbering.NODE: said("local rank {rank}"),
    Numbering.TASK: said("task {rank}"),
    Numbering.STAGE: said("pipeline rank {rank}"),
    Numbering.GROUP: said("rank {rank} (as its group counts)"),
    Numbering.SUBGROUP: said("rank {rank} (as its group counts)"),
}


def named(ranks: Iterable[int]) -> Sentence:
    """Returns ``rank 7``, ``ranks 0, 3 and 4`` or ``ranks 0-511``; in words for no rank."""
    numbers = sorted(set(ranks))
    if not numbers:
        return said("no rank")
    runs = _runs(numbers)
    several = said("ranks {ranks}", ranks=listed(runs, limit=MOST_RUNS, last="and"))
    return said("rank {rank}", rank=numbers[0]) if len(numbers) == 1 else several


def speaker_named(speaker: Speaker) -> Sentence:
    """Returns who says something as exactly as the log tells.

    >>> print(speaker_named(Speaker(3, Numbering.LOCAL, host="node-1")))
    local rank 3 on node-1
    >>> print(speaker_named(Speaker()))
    a rank that the log does not name
    """
    if speaker.rank is not None:
        who = Sentence(_NUMBERED[speaker.numbering].template, {"rank": speaker.rank})
    elif speaker.gpu is not None:
        who = said("the process on GPU {gpu}", gpu=speaker.gpu)
    elif speaker.pid is not None:
        who = said("process {pid}", pid=speaker.pid)
    elif speaker.host:
        return said("a process on {host}", host=speaker.host)
    else:
        return said("a rank that the log does not name")
    return said("{who} on {host}", who=who, host=speaker.host) if speaker.host else who


def _runs(numbers: list[int]) -> list[str]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [word for run in runs for word in _words(run)]


def _words(run: list[int]) -> list[str]:
    if len(run) < SHORTEST_RUN:
        return [str(number) for number in run]
    return [f"{run[0]}-{run[-1]}"]
