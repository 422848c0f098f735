"""Files of a job that are no logs: guards' files, dumps, stacks, states, and the job's groups.

Each is known by what it holds. A file that is damaged or means harm is named and left out; the
others are read all the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serried.diagnose.collect.collecting import SCHEMA
from serried.diagnose.evidence.dumps.flight_recorder import looks_like_dump, read_dump
from serried.diagnose.evidence.file_rank import file_rank
from serried.diagnose.evidence.records.guard_file import SUFFIX as GUARD_SUFFIX
from serried.diagnose.evidence.records.guard_file import is_guard_file
from serried.diagnose.evidence.records.left import (
    BESIDE,
    FAILED_SUFFIX,
    STACKS_SUFFIX,
    GuardedRank,
    read_guarded_rank,
)
from serried.diagnose.evidence.stacks.stack import ThreadStack
from serried.diagnose.evidence.stacks.text import (
    breaks_off,
    looks_like_stacks,
    main_stack,
    stacks_of,
)
from serried.diagnose.job_state.given import given_groups, looks_like_groups
from serried.diagnose.job_state.left_behind import LeftBehind
from serried.diagnose.job_state.program import operation_of
from serried.errors import InputError
from serried.finding import Sentence, said
from serried.limits import DUMP_BYTES, GROUPS_BYTES, STACK_BYTES
from serried.user_file import opened, read_bytes, read_text

HEAD = 4096
CRASHED = b"Fatal Python error: "
"""What Python says first of a signal that ends it, above its stacks."""


@dataclass
class JobFiles:
    """Takes files of a job one by one."""

    left: LeftBehind = field(default_factory=LeftBehind)
    notes: list[Sentence] = field(default_factory=list)
    num_taken: int = 0

    def take(self, path: Path, name: str) -> bool:
        """Takes in a file that is no log, and tells whether it was one; names what is damaged."""
        if not path.is_file():  # a pipe is read once, as a log
            return False
        with opened(path) as file:
            head = file.read(HEAD)
        try:
            taken = self._take(path, name, head)
        except InputError as error:
            self.notes.append(Sentence(error.template, error.values))
            return True
        self.num_taken += taken
        return taken

    def _take(self, path: Path, name: str, head: bytes) -> bool:
        if is_guard_file(head):
            self._keep_guarded(read_guarded_rank(path), name)
            return True
        if path.suffix in BESIDE and path.with_suffix(GUARD_SUFFIX).is_file():
            # Read with the guard's file; how a rank failed or crashed is read as a log is, too.
            return path.suffix != FAILED_SUFFIX and not _holds_crash(path)
        if looks_like_dump(head):
            data = read_bytes(path, DUMP_BYTES.most, said("a flight-recorder dump"))
            self.left.dumps.append(read_dump(data, name, str(path.parent)))
            return True
        if head.lstrip()[:1] == b"{":
            return self._document(path, name)
        text = head.decode("utf-8", "replace")
        is_log = path.name.endswith(".log") or "stderr" in path.name
        # Where its name tells no rank, its lines may: it is read as a log that holds stacks.
        if looks_like_stacks(text) and not is_log and (rank := file_rank(name)) is not None:
            whole = read_text(path, STACK_BYTES.most, said("stacks of threads"))
            self._keep_stack(rank, whole, name)
            if breaks_off(whole):
                odd = said("{name} breaks off within a stack; what came before was read", name=name)
                self.notes.append(odd)
            return True
        return False

    def _keep_guarded(self, rank: GuardedRank, name: str) -> None:
        """Keeps what a guard left of a rank, unless the last of it is cut off; says what is."""
        if rank.file.is_cut_off:
            self.notes.append(
                said(
                    "{name} breaks off before what its rank did last, and was left out: copy it "
                    "anew from where the job ran",
                    name=name,
                )
            )
            return
        self.left.guarded.append(rank)
        if rank.stack.is_cut_off:
            self.notes.append(
                said(
                    "{name} breaks off within a stack: where its rank stood last is not known",
                    name=rank.stacks_name,
                )
            )

    def _document(self, path: Path, name: str) -> bool:
        if path.stat().st_size > GROUPS_BYTES.most:
            return False
        text = read_text(path, GROUPS_BYTES.most, said("the groups of a job"))
        try:
            document: Any = json.loads(text)
        except (ValueError, RecursionError):
            if path.suffix == ".json" and not _is_of_lines(text):
                odd = said("{name} breaks off or is damaged: it is no whole JSON", name=name)
                self.notes.append(odd)
            return False
        if isinstance(document, dict) and document.get("schema") == SCHEMA:
            self._note_absent_hosts(document)
            return True
        if looks_like_groups(document):
            self.left.given = given_groups(document, name)
            return True
        if "proc" in path.name and isinstance(document, dict):
            states = {k: v for k, v in document.items() if str(k).isdigit() and isinstance(v, str)}
            self.left.process_states |= {int(rank): state for rank, state in states.items()}
            return bool(states)
        return False

    def _note_absent_hosts(self, collection: dict[str, Any]) -> None:
        """Notes of whom ``serried collect`` got nothing; what ssh said of that is no job's log."""
        hosts = collection.get("hosts")
        told = hosts.values() if isinstance(hosts, dict) else ()
        for each in told:
            if isinstance(each, dict) and each.get("problem"):
                absent = said(
                    "nothing of host {host} is here: it sent nothing whole as the evidence was "
                    "collected",
                    host=str(each.get("host")),
                )
                self.notes.append(absent)

    def _keep_stack(self, rank: int, text: str, name: str) -> None:
        found = main_stack(list(stacks_of(text, name)))
        if found is None:
            return
        known = self.left.stacks.get(rank)
        # Of several stacks of one rank that which shows an operation tells most.
        if known is None or _worth(found) > _worth(known):
            self.left.stacks[rank] = found


def _holds_crash(path: Path) -> bool:
    """Tells whether a guard's stacks hold those of a crash, whose words are a log's."""
    if path.suffix != STACKS_SUFFIX or path.stat().st_size > STACK_BYTES.most:
        return False
    return CRASHED in read_bytes(path, STACK_BYTES.most, said("stacks of threads"))


def _is_of_lines(text: str) -> bool:
    """Tells whether each line is a document of its own, as logs in JSON have it."""
    try:
        json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return True


def _worth(stack: ThreadStack) -> tuple[bool, int]:
    return operation_of(stack.frames) is not None, len(stack.frames)
