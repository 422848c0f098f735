"""A prepared interpreter: loads the examples' packages once, then forks one for each that asks.

    prepared_python.py (python, torchrun, accelerate, deepspeed, serried)     rank_server.py
        words, environment, folder, its three files  ----------------------->  forks
        <-----------------------------------------------  the fork's process id, then its exit code

The fork runs the words as an interpreter of its own would: a script, a module after ``-m``, or a
console script. What it starts as ``sys.executable`` is prepared too. Only loading is shared.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path

PACKAGES = (
    "transformers.models.bert.modeling_bert",
    "accelerate.commands.launch",
    "peft",
    "deepspeed",
    "deepspeed.module_inject.auto_ep_layer",
    "deepspeed.runtime.superoffload.superoffload_stage3",
    "deepspeed.runtime.zero.muon.muon_optimizer",
    "torch._inductor.compile_fx",
    "torch.distributed.algorithms.ddp_comm_hooks",
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.distributed.run",
    "serried.runtime.recording.api",
    "serried.views.cli.main",
)
"""What the examples and their launchers load, found by comparing ``sys.modules``."""
SCRIPTS = Path(sys.executable).parent
"""Where the console scripts of this environment lie."""


def main() -> None:
    """Serves the socket whose number is first, until its input ends.

    The second word is the prepared ``python``.
    """
    number, python = sys.argv[1:]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", line_buffering=True)  # type: ignore[union-attr]
    _load()
    with socket.socket(fileno=int(number)) as door:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries what ends
        while sys.stdin not in select.select([door, sys.stdin], [], [])[0]:
            line, _ = door.accept()
            if not os.fork():
                door.close()
                sys.executable = python
                _become(line)
            line.close()
    os.killpg(0, signal.SIGKILL)  # who asked has ended, so all that it asked for does


def _load() -> None:
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "deepspeed" in sys.modules:
        # It would compile its shared-memory all-reduce for a minute; without it, gloo's runs.
        sys.modules["deepspeed"].ops.__compatible_ops__["deepspeed_shm_comm"] = False
    gc.freeze()


def _become(line: socket.socket) -> None:
    """Takes on the place of who asked, runs its words, tells the exit code and ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, files, _, _ = socket.recv_fds(line, 8, 3)
    asked = json.loads(line.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    line.sendall(f"{os.getpid()}\n".encode())
    code = _code(asked["words"])
    # All that an interpreter does at its end, but for taking itself down: gloo's threads may
    # abort that.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    line.sendall(f"{code}\n".encode())
    os._exit(code)


def _code(words: list[str]) -> int:
    """Runs ``words`` and returns what the interpreter would exit with."""
    try:
        _run(*words)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _run(name: str, *words: str) -> None:
    if name != "python":
        sys.argv = [str(SCRIPTS / name), *words]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    words = tuple(word for word in words if word != "-u")
    if words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(words)
    sys.path.insert(0, str(Path(words[0]).parent))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
