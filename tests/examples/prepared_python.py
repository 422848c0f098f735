"""Stands in for an interpreter: ``rank_server`` forks one that has loaded all, this waits for it.

    prepared_python.py SOCKET torchrun --nproc-per-node 2 examples/ddp.py

Started some forty times by the tests, so it loads next to nothing itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main() -> None:
    """Passes on words, environment, folder and files; then signals, and the exit code back."""
    path, *words = sys.argv[1:]
    folder = os.getcwd()  # noqa: PTH109  loading pathlib takes as long as all else here
    asked = json.dumps({"words": words, "env": dict(os.environ), "folder": folder}).encode()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        socket.send_fds(line, [len(asked).to_bytes(8, "big")], [0, 1, 2])
        line.sendall(asked)
        answers = line.makefile("r")
        pid = int(answers.readline())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(pid, number))
        code = answers.readline()
    sys.exit(int(code or 1))  # none came: a signal ended the fork


if __name__ == "__main__":
    main()
