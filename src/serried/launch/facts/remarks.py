"""Remarks on a file that its owner should read: each told once, and no more than people read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serried.finding import Sentence, said
from serried.limits import REMARKS


class Remarks:
    """Gathers remarks in their order; what says the same as one before is left out.

    >>> remarks = Remarks()
    >>> remarks.add(said("line {n} is odd", n=3), said("line {n} is odd", n=3))
    >>> [str(each) for each in remarks]
    ['line 3 is odd']
    """

    def __init__(self, remarks: Iterable[Sentence] = ()) -> None:
        self._told: dict[str, Sentence] = {}
        self.add(*remarks)

    def add(self, *remarks: Sentence) -> None:
        """Adds remarks; once there are too many, says so and leaves out the others."""
        for each in remarks:
            if len(self._told) > REMARKS.most:
                return
            if len(self._told) == REMARKS.most:
                each = said(
                    "there are more than {limit} such remarks, and the others are left out",
                    limit=REMARKS.most,
                )
            self._told.setdefault(str(each), each)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self._told.values())

    def __len__(self) -> int:
        return len(self._told)
