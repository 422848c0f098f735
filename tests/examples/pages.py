"""The commands of the examples' pages, each run once as it is printed.

Pages are README.md and what each example opens with. A command runs in a folder of its page's,
where ``examples/`` is a copy with fewer rows, after those that stand above it. Three things are
changed: the port is a free one, DeepSpeed's first machine and its second are this one.
"""

from __future__ import annotations

import ast
import re
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import TimeoutExpired
from typing import NamedTuple

from tests.examples.launched import Shell

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = ("ddp.py", "fsdp2.py", "accelerate_.py", "deepspeed_.py", "serried_.py")
NUM_ROWS = 42
"""33 to train on and 9 to measure with: neither divides among two ranks, nor into batches of 8."""
TRACED = re.compile(r"^SERRIED_TRACE_DIR=(\S+) ")
COMMAND = re.compile(
    r"^ *((?:SERRIED_TRACE_DIR=\S+ )?(?:torchrun|accelerate|deepspeed|serried) .*)$"
)
STAYS = "serried serve "
"""How a command begins that does not end by itself: a test of the page runs it."""


def commands_of(text: str) -> list[str]:
    """Returns the commands of a page, in order, each in one line and without its remark."""
    lines = re.sub(r" *\\\n *", " ", text).splitlines()
    blocks = [found[1] for line in lines if (found := COMMAND.match(line))]
    cells = re.findall(r"`(serried groups [^`]*)`", text)
    return [" ".join(command.partition(" # ")[0].split()) for command in (*blocks, *cells)]


def pages() -> dict[str, list[str]]:
    """Returns the commands of each page."""
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    found = {"README.md": commands_of(readme)}
    for name in SCRIPTS:
        about = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
        found[name] = commands_of(about or "")
    return found


def plain(command: str) -> str:
    """Returns a command without the folder that it records into."""
    return TRACED.sub("", command)


class Ran(NamedTuple):
    """What a command printed, and where it saved and recorded."""

    said: str
    saved: Path
    traced: Path


class Commands:
    """Runs a page's commands when one is asked for, up to that one; each command once."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell = shell
        self.folder = folder
        self._ran: dict[str, Ran | Exception] = {}
        self._rest = {page: iter(commands) for page, commands in pages().items()}
        # Of a command that stands on two pages, the first, README, has the run.
        self._home = {
            plain(command): page
            for page, commands in reversed(pages().items())
            for command in commands
        }
        lines = (EXAMPLES / "reviews.csv").read_text(encoding="utf-8").splitlines()
        for page in self._rest:
            copy = self.at(page) / "examples"
            shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("__pycache__"))
            few = "\n".join(lines[: 1 + NUM_ROWS]) + "\n"
            (copy / "reviews.csv").write_text(few, encoding="utf-8")

    def at(self, page: str) -> Path:
        """Returns the folder that a page's commands run in."""
        return self.folder / page

    def ran(self, command: str) -> Ran:
        """Returns what came of a command; raises what went wrong, KeyError where no page has it."""
        page = self._home[command]
        while command not in self._ran:
            self._run(page, next(self._rest[page]))
        if isinstance(ran := self._ran[command], Exception):
            raise ran
        return ran

    def _run(self, page: str, command: str) -> None:
        if self._home[plain(command)] != page or command.startswith(STAYS):
            return
        folder = self.at(page)
        try:
            said = self._typed(command, folder)
        except (AssertionError, TimeoutExpired) as error:
            self._ran[plain(command)] = error
            return
        named = re.search(r"--out (\S+)", command)
        saved = folder / (named[1] if named else f"out-of-{len(self._ran)}")
        if not named and (folder / "out").exists():
            (folder / "out").rename(saved)
        traced = TRACED.match(command)
        self._ran[plain(command)] = Ran(said, saved, folder / (traced[1] if traced else "none"))

    def _typed(self, command: str, folder: Path) -> str:
        """Runs a command, on each machine that it is for; returns what the first one printed."""
        port = _free_port()
        here = command.replace("--master_addr worker-1", "--master_addr 127.0.0.1")
        here = re.sub(r"\bdeepspeed (?=--)", f"deepspeed --master_port {port} ", here)
        here = re.sub(r"\btorchrun (?=--)", f"torchrun --master-port {port} ", here)
        if "--node_rank 0" not in here:
            return self.shell.run(here, folder)
        there = here.replace("--node_rank 0", "--node_rank 1")
        with ThreadPoolExecutor(2) as machines:
            said, _ = machines.map(lambda command: self.shell.run(command, folder), (here, there))
        return said


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
