"""The minimap's row: the share of all ranks' time that each class of action fills."""

from __future__ import annotations

import numpy as np
import pytest

from serried.action import COMPUTE
from serried.views.web.trace.overview import BUCKETS, overview_payload
from serried.views.web.trace.payload import NamedTrace
from tests.trace.simulated_run import simulated_run
from tests.views.web.reader import read


@pytest.mark.parametrize("num_steps", [1, 40])
def test_the_shares_add_up_to_what_the_ranks_computed(num_steps: int) -> None:
    shown = NamedTrace("run", simulated_run(num_steps=num_steps)).shown
    message = read(overview_payload(shown))
    shares = message.columns["shares"].reshape(-1, len(shown.colours))
    assert len(shares) <= BUCKETS
    spans = shown.trace.spans
    computed = np.isin(spans.kind, sorted(COMPUTE))
    filled = (spans.end_ns - spans.start_ns)[computed].sum() / len(shown.ranks)
    found = shares.sum() / 255 * message.header["bucket_ns"]
    assert found == pytest.approx(filled, rel=0.02)
