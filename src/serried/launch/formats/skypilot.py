"""SkyPilot's tasks: YAML around the script that every node runs.

    num_nodes: 2                          SKYPILOT_NUM_NODES=2
    resources:                        ->
      accelerators: H100:8                SKYPILOT_NUM_GPUS_PER_NODE=8
    run: |
      torchrun --nnodes …                 torchrun --nnodes …

The script is read as any other, each of its lines at the number that it has in the YAML.

Source: SkyPilot docs/source/reference/yaml-spec.rst, sky/skylet/constants.py.
"""

from __future__ import annotations

import re
import shlex

from serried.launch.facts.keys import ConfigValue, Keys

NODES, GPUS = "SKYPILOT_NUM_NODES", "SKYPILOT_NUM_GPUS_PER_NODE"
ACCELERATORS = "resources.accelerators"
# 'run: |', whose text begins on the next line.
BLOCK = re.compile(r":\s*[|>][-+\d]*\s*(?:#.*)?$")
NAME = re.compile(r"[A-Za-z_]\w*")


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is a task of SkyPilot."""
    has_place = keys.has("resources") or "num_nodes" in keys or "setup" in keys
    return isinstance(keys.value("run"), str) and has_place and "apiVersion" not in keys


def script(keys: Keys, text: str) -> str:
    """Returns what a node runs, as a script whose lines keep their numbers."""
    given = text.split("\n")
    rows = [""] * (len(given) + 1)

    def put(line: int | None, row: str) -> None:
        place = (line or 1) - 1
        rows[place] = f"{rows[place]}; {row}" if rows[place] else row

    for name, entries in keys.under("envs"):
        if NAME.fullmatch(name) and entries[0].value not in (None, ""):
            put(entries[0].line, f"export {name}={shlex.quote(str(entries[0].value))}")
    nodes = keys.entries.get("num_nodes", [ConfigValue(1)])[0]
    if isinstance(nodes.value, int):
        put(nodes.line, f"{NODES}={nodes.value}")
    gpus, line = _gpus(keys)
    if gpus is not None:
        put(line, f"{GPUS}={gpus}")
    entry = keys.entries["run"][0]
    first = (entry.line or 1) - 1
    begins = first + 1 if BLOCK.search(given[first]) else first
    for i, row in enumerate(str(entry.value).split("\n")):
        if row and begins + i < len(rows):
            put(begins + i + 1, row)
    return "\n".join(rows)


def _gpus(keys: Keys) -> tuple[int | None, int | None]:
    """Returns the GPUs of a node and their line: of ``H100:8``, or of a list that agrees.

    None where nothing is said, or several numbers are.
    """
    counts: set[int] = set()
    line = None
    for entry in keys.entries.get(ACCELERATORS, []):
        line = entry.line
        words = entry.value if isinstance(entry.value, tuple) else (entry.value,)
        for word in words:
            _, colon, count = str(word).partition(":")
            counts.add(int(count) if count.isdecimal() else 0 if colon else 1)
    for _, entries in keys.under(ACCELERATORS):
        line = entries[0].line
        value = entries[0].value
        counts.add(value if isinstance(value, int) else 1 if value is None else 0)
    return (counts.pop() or None, line) if len(counts) == 1 else (None, line)
