"""How a host is reached: a shared folder, ssh, or srun within a Slurm job.

    here    python3 - …                                              this machine, a shared folder
    ssh     ssh -o BatchMode=yes node7 python3 - …                   torchrun's hosts, a hostfile
    srun    srun --jobid 41 --overlap --nodelist node7 … python3 -   the nodes of a Slurm job

Each command gets the packing program on standard input and gives a tar on standard output.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.errors import EnvironmentProblem, InputError
from serried.finding import said
from serried.limits import LAUNCH_BYTES
from serried.user_file import read_text

HERE = "here"
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:-]*")
_SLOTS = re.compile(r":\d+$|\s.*$")


@dataclass(frozen=True)
class Asked:
    """Says what is collected: the folders on each host, and how much at most."""

    folders: tuple[str, ...]
    most_file_mb: float = 16.0
    most_host_mb: float = 512.0

    def words(self) -> tuple[str, ...]:
        """Returns the arguments of the packing program."""
        return ("-", f"{self.most_file_mb:g}", f"{self.most_host_mb:g}", *self.folders)


@dataclass(frozen=True)
class Source:
    """Holds one host, and the command that packs what lies on it."""

    host: str
    command: tuple[str, ...]

    def shown(self) -> str:
        """Returns the command as it would be typed."""
        return f"{shlex.join(self.command)} < packing.py"


def here(asked: Asked) -> Source:
    """Returns this machine, with the folders that it sees."""
    return Source(HERE, (sys.executable, *asked.words()))


def by_ssh(hosts: Sequence[str], asked: Asked) -> tuple[Source, ...]:
    """Returns hosts that ssh reaches without asking for a password.

    Raises InputError for a name that is none: it would be an option of ssh's.
    """
    remote = shlex.join(("python3", *asked.words()))
    return tuple(Source(host, (*SSH, _host(host), remote)) for host in hosts)


def by_srun(hosts: Sequence[str], job: str, asked: Asked) -> tuple[Source, ...]:
    """Returns the nodes of a running Slurm job; a step beside the job's own runs on each."""
    if not re.fullmatch(r"\d+(_\d+)?", job):
        raise InputError("'{job}' is not the number of a Slurm job", job=job)
    step = ("srun", "--jobid", job, "--overlap", "--nodes=1", "--ntasks=1", "--quiet")
    return tuple(
        Source(host, (*step, "--nodelist", _host(host), "python3", *asked.words()))
        for host in hosts
    )


def nodes_of(job: str, run: Callable[[Sequence[str]], str] | None = None) -> tuple[str, ...]:
    """Returns the nodes of a Slurm job, as Slurm itself lists them.

    Raises EnvironmentProblem where Slurm does not answer, InputError where it knows no such job.
    """
    ask = run or _answer
    listed = os.environ.get("SLURM_JOB_NODELIST", "")
    if os.environ.get("SLURM_JOB_ID") != job or not listed:
        listed = ask(("squeue", "--noheader", "--jobs", job, "--format", "%N")).strip()
    if not listed:
        raise InputError("Slurm knows no running job {job}", job=job)
    return tuple(ask(("scontrol", "show", "hostnames", listed)).split())


def hosts_in(path: Path) -> tuple[str, ...]:
    """Returns the hosts of a hostfile: one a line, slots after a blank or a colon left out.

    Raises InputError where it cannot be read, or names none.
    """
    lines = read_text(path, LAUNCH_BYTES.most, said("a hostfile")).splitlines()
    rows = (line.partition("#")[0].strip() for line in lines)
    hosts = tuple(dict.fromkeys(_SLOTS.sub("", row) for row in rows if row))
    if not hosts:
        raise InputError("{path} names no host; write one a line", path=path)
    return hosts


def _host(name: str) -> str:
    if not _HOST.fullmatch(name):
        raise InputError("'{name}' is not the name of a host", name=name)
    return name


def _answer(command: Sequence[str]) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentProblem(
            "Slurm does not answer to {command}; run this where sinfo works, or name the hosts "
            "with --hosts",
            command=shlex.join(command),
        ) from error
