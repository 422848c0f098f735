"""What launchers print of the ranks that they start: how many nodes, and which ranks on this one.

Signs: ``launch`` (facts ``nodes``, ``per_node``, ``node_rank``, each where it is printed) and
``started`` (facts ``local`` and ``whole``: the ranks of one node, as the node counts them and as
the whole job does, in the same order), and ``started_rank``: its speaker is a rank of Ray's, with
its host and process.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "[INFO] [launch.py:163:main] nnodes=2, num_local_procs=8, node_rank=1"
>>> [sign] = LaunchReport().read(log_line(raw, "x", 1))
>>> sorted(sign.facts.items())
[('node_rank', 1), ('nodes', 2), ('per_node', 8)]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Speaker
from serried.diagnose.evidence.sign import Sign

_NUMBERS = {
    "nodes": re.compile(
        r"\b(?:nnodes|min_nodes|num_nodes|num_machines)\s*[=:]?\s*(\d{1,5})\b(?!:)"
    ),
    "per_node": re.compile(
        r"\b(?:nproc[_-]per[_-]node|num_local_procs|gpus[_-]per[_-]node)\s*[=:]?\s*(\d{1,3})\b"
    ),
    "node_rank": re.compile(r"\b(?:node[_-]rank|machine_rank)\s*[=:]?\s*(\d{1,5})\b"),
}
_RANKS = re.compile(r"\b(?P<name>local|global)_ranks=\[(?P<ranks>[\d, ]{1,4000})\]")
_STARTED = re.compile(
    r"\bip=(?P<host>[\w.:]+), pid=(?P<pid>\d{1,9})\) world_rank=(?P<rank>\d{1,7})"
)
_WORDS = ("node", "local_procs", "machine")


class LaunchReport:
    """Reads what a launcher says of its ranks, some of it over lines."""

    def __init__(self) -> None:
        self._local: tuple[int, ...] | None = None

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign for a line that tells numbers of ranks or nodes."""
        text = line.text
        if found := _STARTED.search(text):
            speaker = Speaker(int(found["rank"]), host=found["host"], pid=int(found["pid"]))
            yield Sign("started_rank", line.quote, speaker, line.time)
        elif "_ranks=[" in text:
            yield from self._ranks(line)
        elif any(word in text for word in _WORDS):
            told = {name: regex.search(text) for name, regex in _NUMBERS.items()}
            facts: dict[str, object] = {name: int(each[1]) for name, each in told.items() if each}
            if facts:
                yield Sign("launch", line.quote, line.speaker, line.time, facts=facts)

    def _ranks(self, line: LogLine) -> Iterator[Sign]:
        for found in _RANKS.finditer(line.text):
            ranks = tuple(int(number) for number in re.findall(r"\d{1,7}", found["ranks"]))
            if found["name"] == "local":
                self._local = ranks
            elif self._local is not None and len(self._local) == len(ranks):
                facts: dict[str, object] = {"local": self._local, "whole": ranks}
                yield Sign("started", line.quote, line.speaker, line.time, facts=facts)
