"""Loads the examples' packages once, then forks the ranks that each line of its input asks for.

    {"script": "ddp.py", "words": ["--epochs", "2"], "ranks": [{"env": {...}, "log": "rank-0.log"}]}
    -> [0, 0]                                         the exit codes, when all have ended

A server of its own: multiprocessing has one for all tests, which may be there already.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = ("transformers.models.bert.modeling_bert", "accelerate", "peft", "deepspeed")


def main() -> None:
    """Serves until its input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what packages print as they load is no answer
    os.environ["DS_ACCELERATOR"] = "cpu"
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "deepspeed" in sys.modules:
        # It would compile its shared-memory all-reduce for a minute; without it, gloo's runs.
        sys.modules["deepspeed"].ops.__compatible_ops__["deepspeed_shm_comm"] = False
    for line in sys.stdin:
        asked = json.loads(line)
        pids = [_forked(asked["script"], asked["words"], rank) for rank in asked["ranks"]]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        os.write(answers, (json.dumps(codes) + "\n").encode())


def _forked(script: str, words: list[str], rank: dict[str, Any]) -> int:
    pid = os.fork()
    if not pid:
        _become_rank(EXAMPLES / script, words, rank["env"], Path(rank["log"]))
    return pid


def _become_rank(script: Path, words: list[str], env: dict[str, str], log: Path) -> None:
    """Takes on a rank's environment, log and command line, runs the script and ends."""
    from serried.runtime import recorder_doors

    with log.open("w", encoding="utf-8", buffering=1) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = sys.stderr = file
        os.environ.update(env)
        os.chdir(log.parent)
        sys.argv = [str(script), *words]
        sys.path.insert(0, str(EXAMPLES))
        code = 0
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 1
        recorder_doors.finish()  # which ``os._exit`` leaves out
        file.flush()
        os._exit(code)  # gloo's threads may abort an interpreter that takes itself down


if __name__ == "__main__":
    main()
