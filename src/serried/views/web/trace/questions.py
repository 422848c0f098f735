"""What the page asks of a trace, read from the words of an address: moments, ranks, wishes."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.measure.find import Wish
from serried.views.web.wire.query import Words, read_count, read_word

# It matches '7' and '0-3'; nine digits keep the numbers far below what an array index holds.
_RUN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_MOMENT = re.compile(r"-?\d{1,18}", re.ASCII)


def read_moments(words: Words) -> tuple[int, int]:
    """Reads ``from`` and ``to``, in whole nanoseconds; raises InputError for no stretch of time."""
    texts = read_word(words, "from"), read_word(words, "to")
    if not all(_MOMENT.fullmatch(text) for text in texts) or int(texts[1]) <= int(texts[0]):
        raise InputError(
            "from '{begin}' to '{end}' is no stretch of time; one reads from=1000000 to=2000000, "
            "in nanoseconds",
            begin=texts[0][:40],
            end=texts[1][:40],
        )
    return int(texts[0]), int(texts[1])


def read_moment(words: Words, name: str) -> int:
    """Reads a moment in whole nanoseconds, 0 where it is not given.

    Raises InputError for anything else.
    """
    text = read_word(words, name) or "0"
    if not _MOMENT.fullmatch(text):
        raise InputError(
            "{name}={value} is not a moment; one reads in whole nanoseconds, such as 1000000",
            name=name,
            value=text[:40],
        )
    return int(text)


def read_ranks(words: Words, world_size: int) -> NDArray[np.int64]:
    """Reads ``ranks``: runs joined by commas; all ranks where it is not given.

    >>> read_ranks({"ranks": ["0-2,9"]}, 16).tolist()
    [0, 1, 2, 9]

    Raises InputError for another form, and for ranks outside the world.
    """
    text = read_word(words, "ranks")
    if not text:
        return np.arange(world_size)
    found = [_RUN.fullmatch(run) for run in text.split(",")]
    runs = [(int(run[1]), int(run[2] or run[1])) for run in found if run]
    # The bound is checked before a run is spelt out: 0-999999999 must not fill the memory.
    if len(runs) < len(found) or any(max(run) >= world_size for run in runs):
        raise InputError(
            "'{text}' are no ranks of {world}; some read 0-{last} or 0,{last}",
            text=text[:40],
            world=world_size,
            last=world_size - 1,
        )
    return np.unique(np.concatenate([np.arange(first, last + 1) for first, last in runs]))


def read_wish(words: Words) -> Wish:
    """Reads which spans are looked for; raises InputError for a word that is not of its form."""
    return Wish(
        kinds=_kinds(read_word(words, "kinds")),
        rank=read_count(words, "rank"),
        node=read_count(words, "node"),
        stage=read_count(words, "stage"),
        microbatch=read_count(words, "microbatch"),
        step=read_count(words, "step"),
        name=read_word(words, "called"),
    )


def _kinds(text: str) -> frozenset[ActionKind] | None:
    names = [name for name in text.split(",") if name]
    unknown = next((name for name in names if name not in ActionKind.__members__), None)
    if unknown is not None:
        raise InputError(
            "'{name}' is no kind of action; there are {kinds}",
            name=unknown[:40],
            kinds=", ".join(ActionKind.__members__),
        )
    return frozenset(ActionKind[name] for name in names) or None
