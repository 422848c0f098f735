"""What gloo prints: receives that timed out, buffers that differ, peers that went away.

Signs: ``gloo_timeout`` (fact ``ms``), ``gloo_size`` (facts ``arrived`` and ``expected`` in bytes),
``gloo_closed`` (a peer closed the connection), ``gloo_connect`` (no mesh at start-up). gloo's
messages hold no rank; a peer's address is all that some of them tell.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "gloo::EnforceNotMet: pair.cc:456] op.preamble.length <= op.nbytes. 194478720 vs 4"
>>> [sign] = gloo_signs(log_line(raw, "x", 1))
>>> sign.kind, sign.facts["arrived"], sign.facts["expected"]
('gloo_size', 194478720, 4)
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_PATTERNS = (
    Pattern("gloo_timeout", r"Timed out ?waiting ?(?P<ms>\d+) ?ms ?for ?(?P<way>recv|send)"),
    Pattern("gloo_timeout", r"Application timeout caused pair closure"),
    Pattern(
        "gloo_size",
        r"op\.preamble\.length <= op\.nbytes\. (?P<arrived>\d+) vs (?P<expected>\d+)",
    ),
    Pattern("gloo_connect", r"[Gg]loo connectFullMesh failed"),
    Pattern(
        "gloo_closed",
        r"gloo.*(?:Connection closed by peer|Connection reset by peer|Broken pipe)"
        r"(?:.*?\[(?P<peer>[\w.:]+)\]:\d+)?",
    ),
    Pattern("gloo_closed", r"Read error \[(?P<peer>[\w.:]+)\]:\d+: Connection reset by peer"),
    Pattern("gloo_closed", r"Connection closed by peer \[(?P<peer>[\w.:]+)\]:\d+"),
    Pattern("gloo_connect", r"gloo.*SO_ERROR: (?P<why>.+)"),
    Pattern("gloo_connect", r"Unable to find address for: (?P<interface>\S+)"),
)


def gloo_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what gloo says in a line."""
    yield from first_signs(_PATTERNS, line)
