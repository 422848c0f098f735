"""Processor time of short commands beside that of importing numpy, in the same run.

    python benchmarks/startup.py [ROUNDS]

Each command is a process of its own, as a user starts it; the commands take turns with the peer,
so that all meet the machine alike. User and system time are those of the children together.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEER = "import numpy"
COMMANDS = (
    "groups --world-size 16 --tp 2 --pp 4",
    "groups --world-size 16 --tp 2 --pp 4 --format json",
    "groups --world-size 16 --tp 2 --pp 4 --lang zh",
    "groups tests/launch/files/megatron_gpt_175b.sh",
    "schedule 1f1b --stages 4 --microbatches 8",
    "collective all-reduce --ranks 8",
    "trace stats tests/goldens/traces/megatronapp",
    "check --help",
    "train --help",
    "export --help",
    "serve --help",
    "demo --help",
    "--help",
)


def processor_seconds(words: list[str]) -> float:
    """Returns the user and system time that a command takes, with all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, cwd=ROOT, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Compiled modules are kept, as they are for every user: what is timed is not the first start.
ENVIRONMENT = {key: each for key, each in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    """Prints the median time of each command and its ratio to the peer's."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    serried = shutil.which("serried", path=str(Path(sys.executable).parent)) or "serried"
    calls = {PEER: [sys.executable, "-c", PEER]}
    calls |= {words: [serried, *words.split()] for words in COMMANDS}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for words in calls.values():
        processor_seconds(words)  # compiles what it imports
    for _ in range(rounds):
        for name, words in calls.items():
            times[name].append(processor_seconds(words))
    peer = statistics.median(times[PEER])
    print(f"processor time, median of {rounds}; python -c '{PEER}' takes {1000 * peer:.0f} ms")
    for name in COMMANDS:
        pairs = zip(times[name], times[PEER], strict=True)
        ratio = statistics.median(mine / other for mine, other in pairs)
        median = 1000 * statistics.median(times[name])
        print(f"  {median:6.0f} ms  {ratio:5.2f} x numpy   serried {name}")


if __name__ == "__main__":
    main()
