"""How long a watch goes on that a job's own process started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from serried.diagnose.watch.lifetime import Lifetime
from serried.errors import InputError


def test_a_watch_ends_a_while_after_its_process_unless_the_job_goes_on() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        lifetime = Lifetime(process.pid, leave_s=10)
        assert not lifetime.is_over(now=1000, moved_at=0)
        process.kill()
        # It ends while it is waited for, and a process that nobody has asked for is a zombie.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not lifetime.is_over(now=1001, moved_at=0)
        assert not lifetime.is_over(now=1010, moved_at=0)
        assert not lifetime.is_over(now=1012, moved_at=1005)  # another rank went on
        assert lifetime.is_over(now=1015, moved_at=1005)


@pytest.mark.parametrize("pid", [0, -1, 1 << 40])
def test_what_is_no_process_is_refused(pid: int) -> None:
    with pytest.raises(InputError, match="no process of this machine"):
        Lifetime(pid)
