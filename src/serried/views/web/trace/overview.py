"""All of a trace in one row for the page's minimap: what all its ranks did from start to end.

step 0    |▇▇▇▅▃|  step 1  |▇▇▇▅▃|  …      buckets of 2**k nanoseconds, a share for each class
"""

from __future__ import annotations

import numpy as np

from serried.views.web.trace.levels import as_bytes
from serried.views.web.trace.shown import ShownTrace
from serried.views.web.wire.payload import pack

BUCKETS = 2048
"""At most so many: more than a minimap has pixels."""


def overview_payload(shown: ShownTrace) -> bytes:
    """Returns the shares of all ranks together, class by class of the action, as ``shares``."""
    table = shown.table
    bits = max(0, int(np.ceil(np.log2(max(1, table.total_ns) / BUCKETS))))
    tracks = np.arange(table.num_tracks)
    count = max(1, -(-table.total_ns >> bits))
    added = shown.levels("").added(
        tracks, np.zeros(len(tracks), dtype=np.int64), 1, bits=bits, first=0, last=count
    )
    shares = as_bytes(added / np.float32(max(1, len(shown.ranks))), 1 << bits)
    header = {"kind": "overview", "bucket_ns": 1 << bits}
    return pack(header, {"shares": shares.ravel()})
