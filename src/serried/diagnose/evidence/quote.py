"""A line of evidence with its place, and who said it.

>>> quote = Quote("rank_3.log", 17, "RuntimeError: Connection closed by peer")
>>> str(quote)
'rank_3.log:17: RuntimeError: Connection closed by peer'
>>> Speaker(rank=1, numbering=Numbering.GROUP).global_rank is None
True
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Quote:
    """Holds one line of a file as it stands there, and where: what a claim rests on."""

    source: str
    """The file's name, as it was given or within the folder that was."""
    line: int
    """Counted from 1; 0 for what is no line, such as an entry of a dump."""
    text: str

    @property
    def place(self) -> str:
        """The file, and the line where there is one: ``rank_3.log:17``."""
        return f"{self.source}:{self.line}" if self.line else self.source

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class Numbering(Enum):
    """Says what the number of a rank counts, for one number means different ranks."""

    GLOBAL = "global"
    """Over the whole job, as in ``[rank13]:``."""
    LOCAL = "local"
    """Over the ranks of one node, as torchrun's ``local_rank`` does."""
    NODE = "node"
    """Over the ranks of one node of several, where nothing tells which node it is."""
    GROUP = "group"
    """Inside one process group that may be the default one, as in ``[Rank 1]``."""
    SUBGROUP = "subgroup"
    """Inside a group other than the default one, as in ``[PG ID 2 PG GUID 3 Rank 1]``."""
    STAGE = "stage"
    """Over the stages of a pipeline."""
    TASK = "task"
    """Over the tasks of a launcher, as Slurm's do."""


@dataclass(frozen=True)
class Speaker:
    """Says whose line it is, as far as the line or its file tells."""

    rank: int | None = None
    numbering: Numbering = Numbering.GLOBAL
    host: str | None = None
    gpu: int | None = None
    pid: int | None = None
    task: int | None = None
    """The launcher's task that printed the line; it may be a whole node, whose ranks speak."""

    @property
    def global_rank(self) -> int | None:
        """The rank over the whole job, where that is what the number counts."""
        return self.rank if self.numbering is Numbering.GLOBAL else None


NOBODY = Speaker()
"""Says that neither the line nor its file tells whose it is."""
