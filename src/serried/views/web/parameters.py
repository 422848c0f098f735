"""The words that addresses take beside sizes and language, each with an example or None.

trace/window            trace=0 bucket=1048576 first=0 last=16 tracks=0-3 …
openings/launch         number

``openapi`` tells programs of them; a test reads which words each question looks for.
"""

from __future__ import annotations

from collections.abc import Mapping

from serried.pipeline.request import OF_A_STAGE, OF_LINKS
from serried.pipeline.request import SIZES as OF_A_SCHEDULE
from serried.views.web.diagnose.example import EXAMPLE
from serried.views.web.plan.sharding import GIVEN
from serried.views.web.trace.routes import ANSWERS
from serried.views.web.wire.plan_words import ALL

Examples = dict[str, str | None]

OF_LAYOUTS = frozenset(
    {
        *("layout", "layout/fitted", "layout/written", "layout/beside", "layout/links"),
        *("rank", "sharding", "term", "search", "collective"),
        *("plan", "plan/links", "plan/heat", "plan/matrix"),
    }
)
"""Questions about a job whose sizes stand in the address."""
SIZES_OF_EXAMPLE = {"world_size": "16", "tp": "2", "pp": "4"}
TRACE = "trace"
"""The word that chooses an open trace by its number, or the planned step by ``plan``."""


def _unset(*names: str) -> Examples:
    return dict.fromkeys(names)


_SHOWN = _unset("dims", "kind", "set")
"""What of a layout is in view, and settings of its framework."""
_PLANNED = _SHOWN | {
    **_unset(*ALL),
    **{"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"},
}
_WISHED = _unset("kinds", "rank", "node", "stage", "microbatch", "step", "called")
"""Which spans are looked for."""
_JOB = "world_size=16&tp=2&model=llama3-8b&cluster=h100&sequence=8192&global_batch=64"
_OF_TRACES: Mapping[str, Examples] = {
    "trace/window": {
        **{"bucket": "1048576", "first": "0", "last": "16", "tracks": "0-3"},
        **_unset("by", "groups", "colour"),
    },
    "trace/rows": _unset("by"),
    "trace/scale": _unset("of"),
    "trace/why": {"slice": "0"},
    "trace/links": {"slice": "0"},
    "trace/span": {"slice": "0", "by": "1", **_unset("named", "track", "time", "slack")},
    "trace/heat": _unset("figure"),
    "trace/measured": _unset("step"),
    "trace/sharding": _unset("rank", "step"),
    "trace/late": _WISHED | {"rank": "0", "start": "0"},
    "trace/found": _WISHED | _unset("place", "after"),
    "trace/stretch": {"from": "0", "to": "1000000000", **_unset("ranks")},
}
WORDS: Mapping[str, Examples] = {
    **dict.fromkeys(OF_LAYOUTS, _SHOWN),
    **dict.fromkeys(("plan", "plan/links", "plan/matrix", "search"), _PLANNED),
    "plan/heat": _PLANNED | _unset("figure"),
    "plan/compare": {"a": _JOB, "b": f"{_JOB}&recompute=full"},
    "sharding": _SHOWN | _unset(*GIVEN, "microbatches", "priced", *ALL),
    "rank": _SHOWN | {"rank": "5"},
    "term": _SHOWN | _unset(*ALL, "rank") | {"term": "dp"},
    "layout/beside": _SHOWN | {"beside": "framework=internlm"},
    "collective": _SHOWN
    | {"name": "all-reduce", "ranks": "8", "bytes": "1GiB"}
    | _unset("algorithm", "network", "latency", "bandwidth", "channels", "nics_per_node")
    | _unset("rank", "root", "split", "mask"),
    "schedule": {
        **_unset(*OF_A_SCHEDULE, *OF_A_STAGE, *OF_LINKS, "memory_limit", "of"),
        **{"name": "1f1b", "stages": "4", "microbatches": "8"},
    },
    "traces": _unset("wait"),
    **{name: _OF_TRACES.get(name, {}) | {TRACE: "0"} for name in ANSWERS},
    "trace/growth": {TRACE: "0"},
    "check/heat": _unset("check", "figure"),
    "case/states": {"case": EXAMPLE, **_unset("finding")},
    "case/whole": {"case": EXAMPLE},
    "several": {"ask": "page"},
    "cases/events": _unset("case"),
    "openings/launch": _unset("number"),
    "openings/cancel": _unset("number"),
    "openings/diagnose": _unset(TRACE),
}
"""Words of a question, or of a route of its own, by its address below ``api/``."""
