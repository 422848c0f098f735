"""What following a shell script told: the commands it would start, and the files it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from serried.finding import Sentence, said
from serried.launch.facts.remarks import Remarks
from serried.launch.facts.words import Array, Field, Line, Value
from serried.launch.shell.slurm import SlurmRequest

DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
TOLD = ("WORLD_SIZE", "NNODES", "NPROC_PER_NODE", *DEVICES)
"""Variables from which a command that starts ranks takes how many."""


@dataclass(frozen=True)
class StartedCommand:
    """Holds one command that the script would start: its words, and what stands around it.

    ``wrappers`` are the words of commands that start it on other nodes (``srun …``), outer
    first; ``variables`` is what the script had set then of those in ``TOLD``.
    """

    fields: tuple[Field, ...]
    line: Line
    variables: Mapping[str, Value | Array]
    wrappers: tuple[tuple[Field, ...], ...] = ()
    job: SlurmRequest | None = None


@dataclass
class Story:
    """Gathers what a script would do."""

    runs: list[StartedCommand] = field(default_factory=list)
    files: dict[str, Value] = field(default_factory=dict)
    """Files that the script writes by heredoc or echo, by name."""
    notes: Remarks = field(default_factory=Remarks)
    not_given: list[str] = field(default_factory=list)
    """Scripts that it starts and that are not given beside it."""
    not_read: list[str] = field(default_factory=list)
    """Those among them that it sources."""
    not_named: list[Sentence] = field(default_factory=list)
    """Why scripts that it starts have no name in the file."""
    end: Line | None = None
    """Where ``exit`` ended it last, if it did."""
    variables: Mapping[str, Value | Array] = field(default_factory=dict)
    """What is set at the end."""
    job: SlurmRequest | None = None
    """The Slurm job that the file itself is, if it has #SBATCH lines."""

    def note(self, line: Line, remark: Sentence) -> None:
        """Adds a remark about ``line``, once."""
        self.notes.add(
            said("{file} line {line}: {remark}", file=line.file, line=line, remark=remark)
        )
