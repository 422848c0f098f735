"""Writes a trace as a folder of Chakra execution traces, as ASTRA-sim takes them.

step.et/
├── rank.0.et   rank.1.et   …      the nodes of each rank
└── groups.json                    the ranks of each group that they name: {"1": [0, 1]}

astra-sim … --workload-configuration=step.et/rank --comm-group-configuration=step.et/groups.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from serried.errors import InputError, listed
from serried.trace.formats.chakra.node import metadata
from serried.trace.formats.chakra.nodes import StepEnd, TraceNodes
from serried.trace.model.trace import Trace
from serried.whole_file import whole_folder

GROUPS = "groups.json"
PREFIX = "rank"
SUFFIX = ".et"


def write_chakra(
    trace: Trace,
    path: Path,
    *,
    message_bytes: int | None = None,
    ends: Mapping[int, StepEnd] | None = None,
) -> int:
    """Writes ``trace`` into the folder ``path``, whole or not at all.

    Returns how many spans of collectives were left out, as nobody recorded what they moved.
    ``message_bytes`` is what a message has of which the trace does not tell it; ``ends`` says of a
    plan how each rank's step ends. Raises InputError for a trace without some ranks, for messages
    of unknown size, and where the folder cannot be written.
    """
    missing = sorted({*range(trace.job.world_size)} - {*trace.ranks})
    if missing:
        raise InputError(
            "a simulator waits for every rank, and the trace has none of rank {ranks}",
            ranks=listed(missing, limit=8),
        )
    if path.exists() and not (path / GROUPS).is_file():
        raise InputError(
            "{path} is there already and holds no Chakra traces; give another name", path=path
        )
    nodes = TraceNodes(trace, message_bytes, ends or {})
    if not nodes.is_sized():
        raise InputError(
            "the trace does not tell how many bytes a message between stages has; give "
            "--message-bytes, such as 2 x sequence x hidden of one microbatch"
        )
    with whole_folder(path) as folder:
        for rank in trace.ranks:
            with (folder / f"{PREFIX}.{rank}{SUFFIX}").open("wb") as file:
                file.write(metadata(trace.run, rank))
                file.writelines(node.encoded() for node in nodes.of_rank(rank))
        text = json.dumps(nodes.groups, separators=(",", ":"))
        (folder / GROUPS).write_text(text, encoding="utf-8")
    return nodes.num_untold
