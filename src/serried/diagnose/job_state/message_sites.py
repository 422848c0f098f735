"""Which message a rank waits in, and with whom, where no dump holds it: by the lines of stacks.

    recv_forward (train.py:118)        x = irecv(...); x.wait(): C++, of which Python shows nothing
    gloo: Timed out … for recv         a receive, then; and by its function's name, or by the word
                                       prev in its line, of the stage before

A helper that sends both ways tells nothing of its own; then who called it is looked at, and so on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.program import Site, directions, operation_of, site_of, towards
from serried.diagnose.job_state.state import MESSAGES

_NAMED = re.compile(r"(?<![a-z])i?(send|recv)(?![a-z])", re.IGNORECASE)

_TAG = re.compile(r"(?<![A-Za-z])tag(?![A-Za-z])")


class MessageSites:
    """Tells the message that each rank waits in by its stack, and the stage it goes to.

    >>> at = {rank: (Frame("recv_forward", "train.py", 118),) for rank in (1, 2)}
    >>> sites = MessageSites(at, {1: "recv"}, {}, {"pp": 4})
    >>> sites.operation(1), sites.peer(1), sites.peer(2)
    ('recv', 0, 1)
    """

    def __init__(
        self,
        stacks: Mapping[int, tuple[Frame, ...]],
        gave_up: Mapping[int, str],
        texts: Mapping[Site, str],
        axes: Mapping[str, int],
    ) -> None:
        self._texts = texts
        self._stages = axes.get("pp", 1)
        self._stride = _stride(axes)
        self._unsure: set[int] = set()
        self._operations = {
            rank: op
            for rank, stack in stacks.items()
            if (op := operation_of(stack) or self._told(rank, stack, gave_up.get(rank)))
        }
        self._callers: dict[Site, set[Site]] = defaultdict(set)
        told = {r for r, op in self._operations.items() if op in MESSAGES} - self._unsure
        stacks = {rank: stack for rank, stack in stacks.items() if rank in told}
        for stack in stacks.values():
            lines = [site for site, _ in _lines(stack)]
            for inner, outer in pairwise(lines):
                self._callers[inner].add(outer)
        self._at: dict[int, Site] = {}
        ways: dict[tuple[Site, str], int] = {}
        seen: dict[tuple[Site, str], set[int]] = defaultdict(set)
        for rank, stack in stacks.items():
            if (found := self._line(stack)) is not None:
                self._at[rank], way = found
                seen[self._at[rank], self._operations[rank]].add(self._stage(rank))
                if way is not None:
                    ways[self._at[rank], self._operations[rank]] = way
        self._way_at = directions(seen, self._stages - 1, ways) if self._stages > 1 else {}

    def operation(self, rank: int) -> str | None:
        """Returns the collective or message that a rank's stack waits in; None where none shows.

        Where a name holds both messages, and nothing tells for which of them it waits, its peer is
        not told either.
        """
        return self._operations.get(rank)

    def peer(self, rank: int) -> int | None:
        """Returns the rank that a rank's message goes to or comes from; None where unknown."""
        site, op = self._at.get(rank), self._operations.get(rank)
        way = self._way_at.get((site, op)) if site and op else None
        if way is None or not 0 <= self._stage(rank) + way < self._stages:
            return None
        return rank + way * self._stride

    def may_have_tag(self, rank: int) -> bool:
        """Tells whether the line of a rank's message gives it a tag, or is not known."""
        text = self._texts.get(self._at.get(rank, ("", 0)), "tag")
        return _TAG.search(text) is not None

    def _told(self, rank: int, stack: tuple[Frame, ...], gave_up: str | None) -> str | None:
        """Returns the message that the user's own line waits in, as gloo's words or names tell."""
        if not stack or not stack[0].is_users:
            return None
        for site, function in _lines(stack):
            text = f"{function} {self._texts.get(site, '')}"
            named: set[str] = {word.lower() for word in _NAMED.findall(text.replace("_", " "))}
            if named and gave_up:
                return gave_up if gave_up in named else None
            if named:
                self._unsure |= {rank} if len(named) > 1 else set()
                return min(named)
        return None

    def _line(self, stack: tuple[Frame, ...]) -> tuple[Site, int | None] | None:
        """Returns the line that tells where a message goes, from the innermost on, and its way.

        Where none does, that is the innermost that is called from one line only.
        """
        alone = None
        for site, function in _lines(stack):
            text = self._texts.get(site, "")
            is_told = site == site_of(stack) or _NAMED.search(text.replace("_", " "))
            if (way := towards(f"{function} {text if is_told else ''}")) is not None:
                return site, way
            if alone is None and len(self._callers[site]) < 2:
                alone = site
        return None if alone is None else (alone, None)

    def _stage(self, rank: int) -> int:
        return rank // self._stride % self._stages


def _lines(stack: tuple[Frame, ...]) -> Iterator[tuple[Site, str]]:
    """Yields the user's lines of a stack with their functions, from the innermost on."""
    for place, frame in enumerate(stack):
        if frame.is_users and (site := site_of(stack[place:])) is not None:
            yield site, frame.function


def _stride(axes: Mapping[str, int]) -> int:
    """Returns how far apart the ranks of two neighbouring stages are."""
    stride = 1
    for axis, size in axes.items():
        if axis == "pp":
            break
        stride *= size
    return stride
