"""A processor that is slowed down, as a GPU's clock by heat: a control group with a quota of it.

    quota    5 ms of 100    a process computes, is held by the kernel until 100 ms are over, goes on

How far it is slowed down follows from how much of a processor the process had: that differs with
what else the machine does.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SLOWER = 3.0
PERIOD_US, LEAST_US = 100_000, 1000
"""After how long a quota is given anew, and the least that Linux takes for one."""
GROUP = "processors"
"""A file that says which group it is."""
_ROOTS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
"""Where control groups of the processor are, by version 1 and by version 2."""


@contextmanager
def group(work: Path) -> Iterator[None]:
    """Makes a group, which a file in ``work`` names; removes it.

    Raises OSError where this machine lets none be made.
    """
    root = next((each for each in _ROOTS if _is_of_processors(each)), None)
    if root is None:
        raise OSError("no control groups of processors are mounted")
    made = root / f"fault-{secrets.token_hex(3)}"
    made.mkdir()
    try:
        (work / GROUP).write_text(str(made), "utf-8")
        yield
    finally:
        made.rmdir()


def throttle(work: Path, share: float) -> None:
    """Lets this process, which had ``share`` of a processor, have a third of that from now on."""
    made = Path((work / GROUP).read_text("utf-8"))
    most = max(LEAST_US, int(PERIOD_US * share / SLOWER))
    if (made / "cpu.max").exists():
        (made / "cpu.max").write_text(f"{most} {PERIOD_US}")
    else:
        (made / "cpu.cfs_quota_us").write_text(str(most))
    (made / "cgroup.procs").write_text(str(os.getpid()))


def _is_of_processors(root: Path) -> bool:
    if (root / "cpu.cfs_quota_us").exists():
        return True
    controllers = root / "cgroup.subtree_control"
    return controllers.exists() and "cpu" in controllers.read_text().split()
