"""Diagnoses the recording of a long job, whose steps are read as a stream.

    python benchmarks/long_run.py [steps]

Four data-parallel ranks take 300,000 steps; one becomes slower by 30 % at two thirds of them.
`serried diagnose` runs as a process of its own, whose wall time and peak memory are printed with
its verdict. The peer is the same diagnosis of records that are read whole, as it was before, of a
tenth of the steps: its memory grows with the steps, the stream's hardly does.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serried.action import ActionKind
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter

RANKS, SLOW, FACTOR = 4, 2, 1.3
FORWARD_NS, BACKWARD_NS, OPTIMIZER_NS, BETWEEN_NS = 10_000_000, 20_000_000, 2_000_000, 1_000_000
WALL_NS = 1_700_000_000_000_000_000
PEERS_SHARE = 10
WHOLE = (
    "import sys; from pathlib import Path; from serried.diagnose.steps import long_run; "
    "long_run.LONG_BYTES = 1 << 60; "
    "from serried.views.cli.main import run; sys.exit(run(sys.argv[1:]))"
)
STREAM = "import sys; from serried.views.cli.main import run; sys.exit(run(sys.argv[1:]))"


class Took(NamedTuple):
    """Holds what a process took, and the first line that it printed."""

    seconds: float
    peak_mib: float
    verdict: str


def write(folder: Path, steps: int) -> None:
    """Records ``steps`` in which all ranks meet at the end of the backward."""
    folder.mkdir()
    sizes = {"tp": 1, "cp": 1, "pp": 1, "dp": RANKS, "ep": 1}
    job = TracedJob("megatron", RANKS, sizes, "tp-cp-ep-dp-pp", "unknown", 1)
    draws = np.random.default_rng(0)
    length = np.array([[FORWARD_NS], [BACKWARD_NS]]) * (
        1 + 0.02 * draws.normal(size=(steps, 2, RANKS))
    )
    length[2 * steps // 3 :, :, SLOW] *= FACTOR
    ready = length.sum(axis=1)
    met = ready.max(axis=1) + 500_000
    begins = np.concatenate([[0], np.cumsum(met + OPTIMIZER_NS + BETWEEN_NS)[:-1]])
    for rank in range(RANKS):
        writer = RecordWriter(folder, RecordHeader("bench", rank, job, "a", "a", 0, WALL_NS))
        columns = np.stack(
            [begins, begins + length[:, 0, rank], begins + ready[:, rank], begins + met], axis=1
        )
        for step, (begin, forward, there, end) in enumerate(columns.astype(int).tolist()):
            writer.add(ActionKind.F, begin, forward, 0, 0, step=step)
            writer.add(ActionKind.ALL_REDUCE, there, end, 0, step=step)
            writer.add(ActionKind.B, forward, end, 0, 0, step=step)
            writer.add(ActionKind.OPTIMIZER, end, end + OPTIMIZER_NS, step=step)
        writer.close()


def diagnosed(folder: Path, code: str, out: Path) -> Took:
    """Runs the diagnosis of ``folder`` as a process and returns what it took."""
    began = time.perf_counter()
    actions = [(os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    words = [sys.executable, "-c", code, "diagnose", str(folder)]
    pid = os.posix_spawn(sys.executable, words, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 1:
        raise SystemExit(f"no slow rank was found in {folder}")
    verdict = " ".join(out.read_text().split("\n\n")[0].split())
    return Took(time.perf_counter() - began, usage.ru_maxrss / 1024, verdict)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder / "long", steps)
        write(folder / "short", steps // PEERS_SHARE)
        stream = diagnosed(folder / "long", STREAM, folder / "out")
        whole = diagnosed(folder / "short", WHOLE, folder / "out")
    print(f"{steps:,} steps of {RANKS} ranks, read as a stream: ", end="")
    print(f"{stream.seconds:.1f} s, {stream.peak_mib:.0f} MiB at most")
    print(f"  {stream.verdict}")
    print(f"{steps // PEERS_SHARE:,} of them, read whole: ", end="")
    print(f"{whole.seconds:.1f} s, {whole.peak_mib:.0f} MiB at most")
    ratio = PEERS_SHARE * whole.seconds / stream.seconds
    print(f"for each step the stream takes 1/{ratio:.1f} of the time of reading whole")


if __name__ == "__main__":
    main()
