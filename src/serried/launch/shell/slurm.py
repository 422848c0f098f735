"""What Slurm is asked for: nodes, tasks and GPUs, from #SBATCH lines and ``srun`` options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from serried.finding import Sentence, said
from serried.launch.facts.whole_number import count
from serried.launch.facts.words import Field, Line, Piece, Value, known
from serried.launch.shell.split import split

SHORT = {"N": "nodes", "n": "ntasks", "G": "gpus"}
LONG = {
    "nodes": "nodes",
    "ntasks": "ntasks",
    "ntasks-per-node": "ntasks_per_node",
    "tasks-per-node": "ntasks_per_node",
    "gpus-per-node": "gpus_per_node",
    "gres": "gpus_per_node",
    "gpus": "gpus",
    "gpus-per-task": "gpus_per_task",
}
"""Slurm's option -> what it says."""

VARIABLES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "ntasks_per_node": ("SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"),
    "gpus_per_node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "gpus_per_task": ("SLURM_GPUS_PER_TASK",),
    "gpus": ("SLURM_GPUS",),
}


@dataclass(frozen=True)
class SlurmRequest:
    """Holds what one job or step asks for; each figure is a word with its place."""

    asked: Mapping[str, tuple[str, Field]] = field(default_factory=dict)
    """What it says -> the option as written, and its value."""
    notes: tuple[Sentence, ...] = ()
    is_given: bool = False
    """Tells whether there was any #SBATCH line at all."""

    def number(self, name: str) -> int | None:
        """Returns a figure as a whole number, or None when it is not given or is no number."""
        if name not in self.asked:
            return None
        text = self.asked[name][1].text or ""
        # '4' and '4-4' are numbers of nodes; '2-4' is a range that Slurm settles.
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
        if not found or found[2] not in (None, found[1]):
            return None
        # '--nodes=0' stands where whoever submits it gives a number.
        return count(found[1]) or None

    def over(self, outer: SlurmRequest | None) -> SlurmRequest:
        """Returns this step's figures, those of the job around it where it says nothing."""
        if outer is None:
            return self
        # A step on nodes of its own has tasks of its own: 'srun -N 1' in a job of 16 tasks does not
        # start 16.
        kept = {
            name: value
            for name, value in outer.asked.items()
            if not (name == "ntasks" and {"ntasks_per_node", "nodes"} & set(self.asked))
        }
        return SlurmRequest({**kept, **self.asked}, (), self.is_given or outer.is_given)


def job_of(text: str, name: str, place: Callable[[int], Line] | None = None) -> SlurmRequest:
    """Returns what the #SBATCH lines of a script ask for; those after a command do not count.

    ``place`` gives the line of the letter at a position, for text that a script wrote.

    >>> job = job_of("#!/bin/bash\\n#SBATCH -N 4 --gres=gpu:a100:8  # nodes\\necho", "x.sh")
    >>> job.number("nodes"), job.number("gpus_per_node")
    (4, 8)
    """
    asked: dict[str, tuple[str, Field]] = {}
    notes: list[Sentence] = []
    is_given = is_over = False
    position = 0
    writes = "<<" in text
    for number, row in enumerate(text.split("\n"), 1):
        line = place(position) if place else Line(name, number)
        position += len(row) + 1
        if row.startswith("#SBATCH"):
            if is_over:
                # Below '<<' it may belong to a job that this script writes.
                notes += [] if writes else [_too_late(line, row)]
                continue
            is_given = True
            options = re.split(r"\s#", row[len("#SBATCH") :])[0]
            asked |= figures(split((Piece(options, line),)))[0]
        elif row.strip() and not row.lstrip().startswith("#"):
            is_over = True
    return SlurmRequest(asked, tuple(notes), is_given)


def _too_late(line: Line, row: str) -> Sentence:
    return said(
        "{file} line {line}: '{row}' stands after a command, so Slurm does not read it",
        file=line.file,
        line=line,
        row=row.split("#SBATCH")[1].split("#")[0].strip(),
    )


def figures(words: Sequence[Field]) -> tuple[dict[str, tuple[str, Field]], int]:
    """Returns the figures among Slurm options, and how many words a known option ended at."""
    asked: dict[str, tuple[str, Field]] = {}
    at = last = 0
    while at < len(words):
        option, value, step = _option(words, at)
        if option and value is not None and (name := LONG.get(option)):
            # '--gres=gpu:8' counts GPUs, '--gres=nvme:1' does not.
            if option != "gres" or "gpu" in value.start:
                asked[name] = (f"--{option}", _count(option, value))
            last = at + step
        at += step
    return asked, last


def _option(words: Sequence[Field], at: int) -> tuple[str, Field | None, int]:
    """Reads ``--name=value``, ``--name value``, ``-N 4`` or ``-N4`` at ``at``."""
    word = words[at]
    start = word.start
    following = words[at + 1] if at + 1 < len(words) else None
    if start.startswith("--"):
        name, equals, _ = start[2:].partition("=")
        if equals:
            return name, word.tail(len(name) + 3), 1
        # Whether another option takes a value is not known, so the word behind it is looked at by
        # itself.
        return (name, following, 2) if name in LONG else (name, None, 1)
    short = SHORT.get(start[1:2]) if start.startswith("-") else None
    if short and len(start) == 2 and word.text == start:
        return short, following, 2
    if short and re.fullmatch(r"-\w=?\d+", word.text or start):
        return short, word.tail(3 if "=" in start else 2), 1
    return "", None, 1


def _count(option: str, value: Field) -> Field:
    """Returns the number of GPUs in ``gpu:a100:8`` or ``a100:8`` as a word of its own."""
    text = value.text
    if text is None or option not in ("gres", "gpus", "gpus-per-node", "gpus-per-task"):
        return value
    # 'gpu:a100:8' and 'gpu:8(S:0-1)' are eight, 'gpu' and 'gpu:a100' one; of 'nvme:1,gpu:2' the
    # second part counts. Other options take 'a100:8' or '8'.
    for part in text.split(","):
        name, *rest = re.sub(r"\(.*?\)", "", part).split(":")
        if option != "gres":
            gpus = rest[-1] if rest else name
        elif name == "gpu" or name.endswith("/gpu"):
            gpus = rest[-1] if rest and rest[-1].isdecimal() else "1"
        else:
            continue
        return Field(known(gpus, value.line, value.via))
    return value


def variables(job: SlurmRequest, by: str = "#SBATCH") -> dict[str, Value]:
    """Returns the variables that Slurm sets inside a job, those that options ``by`` it settle.

    The number of tasks follows from nodes and tasks per node where it is not given.
    """
    made: dict[str, Value] = {}
    for name, names in VARIABLES.items():
        if name in job.asked and job.number(name) is not None:
            option, value = job.asked[name]
            text = str(job.number(name))
            made |= {each: known(text, value.line, f"{by} {option}") for each in names}
    tasks = num_tasks(job)
    if tasks is not None and "SLURM_NTASKS" not in made:
        option, value = job.asked.get("ntasks_per_node", job.asked["nodes"])
        for each in VARIABLES["ntasks"]:
            made[each] = known(str(tasks), value.line, f"{by} {option}")
    return made


def num_tasks(job: SlurmRequest) -> int | None:
    """Returns how many tasks a step starts: as asked, else nodes x tasks per node (1)."""
    if "ntasks" in job.asked:
        return job.number("ntasks")
    # Tasks per node that are given but not known leave the number open; where none are given, there
    # is one.
    nodes = job.number("nodes")
    if nodes is None or ("ntasks_per_node" in job.asked and not job.number("ntasks_per_node")):
        return None
    return nodes * (job.number("ntasks_per_node") or 1)
