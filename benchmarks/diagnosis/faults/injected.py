"""Runs one job with its fault, ends it once it stands still, and asks what it left for the root.

fault ──> ranks, forked from one process that has torch ──> evidence/ ──> serried diagnose
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.faults import links, throttle
from benchmarks.diagnosis.faults.fault import CAUSES, HEALTHY, Fault
from benchmarks.diagnosis.faults.standing import FULL, STILL_S
from serried.diagnose.evidence.records.guard_file import RUNS, read_guard_file
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.errors import InputError
from serried.views.diagnose.document import diagnosis_document

STARTING_S, LONGEST_S = 120.0, 90.0
"""How long ranks may take to begin, and then the job until it ended or stands."""
SETTLED_S = 3 * STILL_S
"""How long a rank must not have gone on for the job to count as standing."""
DISK_BYTES = 64 << 10
PRELOADED = [
    "serried.api",
    "serried.runtime.run.preload",
    "benchmarks.diagnosis.faults.campaign",
    "benchmarks.diagnosis.faults.slowed",
    "benchmarks.diagnosis.faults.standing",
]
"""What every rank needs: loaded once, or it takes each rank more than a second of a processor."""


@dataclass(frozen=True)
class Outcome:
    """Holds a fault and what was said of it."""

    fault: Fault
    answer: dict[str, Any]

    @property
    def named(self) -> tuple[int, ...]:
        """The ranks at fault, as the first finding has it."""
        return tuple(self.answer["ranks"] or ())

    @property
    def is_right(self) -> bool:
        """Whether just the ranks at fault are named; of a link its other end may be, too.

        Of a run without a fault nothing at all may be told.
        """
        if self.fault.kind in HEALTHY:
            return not self.named and self.is_cause_right
        if self.fault.kind == "slow link":
            return self.fault.rank in self.named and len(self.named) <= 2
        return self.named == self.fault.roots

    @property
    def is_cause_right(self) -> bool:
        """Whether what is said to have gone wrong is what went wrong."""
        return self.answer["kind"] in CAUSES[self.fault.kind]

    @property
    def said(self) -> str:
        """What was said of it, with its kind."""
        return f"{self.answer['kind']}: {self.answer['verdict']}"

    @property
    def accuses(self) -> bool:
        """Whether an innocent rank is named, by any finding."""
        said = {rank for each in self.answer["findings"] for rank in each["ranks"] or ()}
        near = (
            {self.fault.rank - 1, self.fault.rank + 1} if self.fault.kind == "slow link" else set()
        )
        return not said <= {*self.fault.roots, *near}


def outcome_of(fault: Fault, folder: Path) -> Outcome:
    """Runs a fault; what the job leaves lies in ``folder`` afterwards."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="serried-fault-") as work:
        place = Path(work)
        slow = links.hosts(fault.world_size, fault.rank) if fault.kind == "slow link" else None
        held = throttle.group(place) if fault.kind == "throttled" else nullcontext()
        with _disk(place / "disk"), slow or nullcontext([]) as hosts, held:
            ranks = _started(fault, folder, place, hosts)
            try:
                _await(ranks, folder, is_slow=fault.is_recorded)
            finally:
                for rank in ranks:
                    rank.kill()
                for rank in ranks:
                    rank.join()
    return Outcome(fault, answer_of(folder))


def answer_of(folder: Path) -> dict[str, Any]:
    """Returns what serried says of what a job left."""
    return diagnosis_document(diagnosed(gather([folder])))


def _started(
    fault: Fault, folder: Path, work: Path, hosts: Sequence[str]
) -> list[ForkServerProcess]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    ranks = [
        context.Process(
            target=_be_rank,
            args=(fault, rank, folder, work, hosts[rank] if hosts else ""),
            daemon=True,
        )
        for rank in range(fault.world_size)
    ]
    for rank in ranks:
        rank.start()
    return ranks


def _be_rank(fault: Fault, rank: int, folder: Path, work: Path, host: str) -> None:
    """Is one rank: a process with the variables that a launcher would set."""
    if host:
        links.move_to(host)
    count = str(fault.world_size)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": count, "LOCAL_RANK": str(rank)}
    os.environ |= {"LOCAL_WORLD_SIZE": count, "OMP_NUM_THREADS": "1", "MASTER_PORT": work.name}
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    import torch

    from benchmarks.diagnosis.faults.slowed import run_slowed
    from benchmarks.diagnosis.faults.standing import run_standing

    torch.set_num_threads(1)
    (run_slowed if fault.is_recorded else run_standing)(fault, rank, folder, work)


def _await(ranks: list[ForkServerProcess], folder: Path, *, is_slow: bool) -> None:
    """Waits until all ranks ended, or those that have not do not go on any more.

    Raises TimeoutError where not all begin: such a run tells nothing.
    """
    until = time.monotonic() + STARTING_S
    pattern = "rank-*.spans" if is_slow else "rank-*.guard"
    while len(list(folder.rglob(pattern))) < len(ranks):
        if time.monotonic() > until:
            raise TimeoutError(f"not all {len(ranks)} ranks began within {STARTING_S:.0f} s")
        time.sleep(0.1)
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        alive = [rank for rank, process in enumerate(ranks) if process.exitcode is None]
        if not alive or (not is_slow and all(_stands(folder, rank) for rank in alive)):
            return
        time.sleep(0.1)


def _stands(folder: Path, rank: int) -> bool:
    try:
        file = read_guard_file(folder / f"rank-{rank:05d}.guard")
    except InputError:
        return False
    idle_s = (time.monotonic_ns() - file.moved_ns) / 1e9
    return file.ended == RUNS and file.num_begun > 0 and idle_s > SETTLED_S


@contextmanager
def _disk(place: Path) -> Iterator[None]:
    """Mounts a disk that a checkpoint does not fit on; else its files lie on /dev/full."""
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(place)
    is_mounted = not libc.mount(b"tmpfs", where, b"tmpfs", 0, f"size={DISK_BYTES}".encode())
    if not is_mounted:
        (place / FULL).symlink_to("/dev/full")
    try:
        yield
    finally:
        if is_mounted:
            libc.umount2(where, 2)
