"""The code of lines, as tracebacks in logs show it: what stands below each ``File …, line …``.

>>> from serried.diagnose.evidence.log_line import log_line
>>> lines = SourceLines()
>>> for text in ('  File "train.py", line 124, in train', "    dist.send(g, prev)"):
...     lines.read(log_line("[rank2]: " + text, "rank_2.log", 1))
>>> lines.texts
{('train.py', 124): 'dist.send(g, prev)'}
"""

from __future__ import annotations

import re

from serried.diagnose.evidence.log_line import LogLine

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d{1,9}), in \S')
MOST_LINES = 10_000


class SourceLines:
    """Collects the code below frames, from lines of several ranks that are mixed."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, int], str] = {}
        """By a file's name without folders and a line."""
        self._open: dict[object, tuple[str, int]] = {}

    def read(self, line: LogLine) -> None:
        """Takes in one line of a log."""
        key = (line.quote.source, line.speaker.rank)
        if found := _FRAME.match(line.text):
            self._open[key] = (found[1].rsplit("/", 1)[-1], int(found[2]))
        elif (site := self._open.pop(key, None)) and len(self.texts) < MOST_LINES:
            self.texts.setdefault(site, line.text.strip()[:200])
