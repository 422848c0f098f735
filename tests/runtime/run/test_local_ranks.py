"""The processes of local ranks, before there are any."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import signal
from multiprocessing import forkserver
from pathlib import Path
from serried.runtime.run.local_ranks import start_server

def blocked(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigBlk"))
    return bool(mask >> (signal.SIGINT - 1) & 1)

start_server()
print(blocked(forkserver._forkserver._forkserver_pid), blocked("self"))
"""


def test_the_server_that_loads_torch_is_deaf_to_ctrl_c_and_the_parent_is_not() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
