"""A shell for the examples' commands: they run as a reader types them, from prepared interpreters.

Fresh ones would load torch and transformers anew in every launcher and rank, for about ten
seconds each.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("python", "torchrun", "accelerate", "deepspeed", "serried")
PATIENCE_S = 600
"""Far beyond what a command takes; only one that never ends runs into it."""


class Shell:
    """Runs commands with what this environment has installed."""

    def __init__(self, scripts: Path = Path(sys.executable).parent) -> None:
        """Finds commands in the folder ``scripts`` before all others."""
        self.env = {
            **os.environ,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # else loading it starts processes
        }

    def start(self, command: str, folder: Path) -> subprocess.Popen[str]:
        """Starts ``command`` in ``folder``; its output and errors come in one pipe."""
        return subprocess.Popen(
            ["sh", "-c", command],
            cwd=folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def run(self, command: str, folder: Path) -> str:
        """Runs ``command`` in ``folder``; returns what it printed.

        Raises AssertionError with that when it fails, TimeoutExpired when it does not end.
        """
        ran = self.start(command, folder)
        said, _ = ran.communicate(timeout=PATIENCE_S)
        assert ran.returncode == 0, f"{command}\nended with {ran.returncode}\n{said}"
        return said


class PreparedShell(Shell):
    """Owns the server that its launchers and ranks are forked from; ``close`` ends all of them."""

    def __init__(self) -> None:
        """Starts the server; a folder takes its socket and the commands' stand-ins."""
        self._folder = tempfile.TemporaryDirectory(prefix="serried-")
        folder = Path(self._folder.name)
        super().__init__(folder)
        path = str(folder / "socket")
        for name in NAMES:
            script = folder / name
            client = shlex.join([sys.executable, "-IS", str(HERE / "prepared_python.py"), path])
            script.write_text(f'#!/bin/sh\nexec {client} {name} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path)
            door.listen()  # who comes while the packages load waits
            words = (str(HERE / "rank_server.py"), str(door.fileno()), str(folder / "python"))
            self._server = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.PIPE,  # whose end tells the server that this process has ended
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[door.fileno()],
                start_new_session=True,
                env=self.env,
            )

    def close(self) -> None:
        """Ends the server and what was forked from it."""
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.communicate()
        self._folder.cleanup()
