"""Whose line it is in what ``kubectl`` prints: the pod or the node that a row or a block tells of.

    kubectl get pods        llama-worker-1   0/1   OOMKilled   0   3h        a row tells its pod
    kubectl get events      6m   Warning   Evicted   pod/llama-worker-2   …   so does its object
    kubectl describe pod    Name: … Node: …   and then State, Reason, Exit Code   a block's name

What a block tells under ``Last State`` is of an earlier start of the container, and is left out
where its last start has ended as well.

>>> from serried.diagnose.evidence.log_line import log_line
>>> pods = PodLines()
>>> rows = "Name:   llama-worker-3", "    State:  Terminated", "      Reason:  OOMKilled"
>>> [pods.own(log_line(row, "pods.txt", 1)).speaker.host for row in rows]
['llama-worker-3', 'llama-worker-3', 'llama-worker-3']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign

_ROW = re.compile(
    r"^(?:(?P<space>[a-z][\w.\-]*)\s+)?(?P<pod>[a-z0-9][\w.\-]*)\s+\d+/\d+\s+"
    r"(?P<status>[A-Z][\w:]+)\s+\d+"
)
_EVENT = re.compile(
    r"^\S+(?: \([^)]*\))?\s+(?:Warning|Normal)\s+\w+\s+(?:pod|node)/(?P<name>[\w.\-]+)\s"
)
_NAME = re.compile(r"^Name:\s{2,}(?P<name>[\w.\-]+)\s*$")
_FIELD = re.compile(r"^[A-Z][\w ]*:|^\s+[A-Z][\w ]*:")
_STATE = re.compile(r"^\s+(?P<is_last>Last )?State:\s+(?P<state>\w+)")


class PodLines:
    """Follows the blocks and tables of ``kubectl`` through a log."""

    def __init__(self) -> None:
        self._block: str | None = None
        self._has_ended = False
        self._is_earlier = False

    def own(self, line: LogLine) -> LogLine:
        """Returns a line with the pod or node that it tells of, where nothing else tells a host."""
        host = self._host(line.text)
        if self._is_earlier:
            return replace(line, text="")
        if host is None or line.speaker.host is not None:
            return line
        return replace(line, speaker=replace(line.speaker, host=host))

    def _host(self, text: str) -> str | None:
        if named := _NAME.match(text):
            self._block, self._has_ended, self._is_earlier = named["name"], False, False
        elif self._block is not None and not _FIELD.match(text):
            self._is_earlier = False
        if state := _STATE.match(text):
            self._is_earlier = bool(state["is_last"]) and self._has_ended
            self._has_ended = self._has_ended or state["state"] == "Terminated"
        elif self._is_earlier and not text.startswith("      "):
            self._is_earlier = False
        if found := _ROW.match(text):
            return found["pod"]
        if found := _EVENT.match(text):
            return found["name"]
        return self._block if _FIELD.match(text) else None


def pod_signs(line: LogLine) -> Iterator[Sign]:
    """Yields ``pod_failed`` for a row of a pod that ended with an error, without more words."""
    found = _ROW.match(line.text)
    if found and found["status"] in ("Error", "Failed"):
        speaker = replace(line.speaker, host=found["pod"])
        yield Sign("pod_failed", line.quote, speaker, line.time, text=line.text.strip())
