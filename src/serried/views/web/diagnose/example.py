"""The hang that every page can show: a run of serried's benchmarks that stopped, as it was left.

Rank 5 of 8 left out one all-reduce (``benchmarks/diagnosis/hangs/skip_dp_a``): dumps of the flight
recorder, stacks of py-spy, states of processes and the job's groups, which are read as any others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from serried.views.web.diagnose.cases import NamedCase, read_case

EXAMPLE = "example:skipped-all-reduce"
"""The name under which addresses know it."""
FOLDER = Path(__file__).with_name("example")


@cache
def example_case() -> NamedCase:
    """Returns the example, which is read and diagnosed once."""
    # When it was read tells nothing of it, and it stays as it is.
    return replace(read_case(FOLDER, EXAMPLE), place=None, read_at=None)
