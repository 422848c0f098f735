"""Unequal microbatches: sequences of varying length make some of them long, forwards and backwards.

    microbatch     0    1    2    3        forward and backward of one microbatch are long together,
    forward       ▇    ▇▇▇  ▇    ▇▇        on whatever rank: the work differs, and no device does
    backward      ▇▇   ▇▇▇▇▇▇ ▇▇  ▇▇▇▇

So it is told in Lin et al. (OSDI 2025, section 5.3): by the correlation of the two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.stragglers.cost import Costing
from serried.finding import said
from serried.trace.measure.moments import computing_ns
from serried.trace.model.pairs import packed
from serried.trace.model.trace import Trace

_LEAST_CORRELATION = 0.8
_LEAST_VARIATION = 0.05
"""By how much lengths must vary over their mean."""
_LEAST_COUNT = 12
_WORTH = 0.05


def length_causes(
    trace: Trace, steps: NDArray[np.int32], costing: Costing | None
) -> Iterator[Cause]:
    """Yields that microbatches take unequal times, where forwards and backwards do so together."""
    spans = trace.spans
    took = computing_ns(spans).astype(np.float64)
    counted = np.isin(spans.step, steps) & (took > 0)
    forward, backward = _together(spans, took, counted)
    if len(forward) < _LEAST_COUNT or min(forward.std(), backward.std()) < _LEAST_VARIATION:
        return
    correlation = float(np.corrcoef(forward, backward)[0, 1])
    if correlation < _LEAST_CORRELATION:
        return
    cost = costing.with_even_microbatches() if costing is not None else None
    if cost is None or cost < _WORTH:
        return
    yield Cause(
        CauseClass.STRAGGLER,
        "sequence_length",
        (),
        said(
            "microbatches take unequal times, which costs {cost:.1%} of each step: their sequences "
            "differ in length, and no rank is at fault",
            cost=cost,
        ),
        confidence=0.8,
        chain=(
            said(
                "forward and backward of a microbatch are long together (correlation {correlation:"
                ".2f}); the longest tenth takes {most:.1f} times the median",
                correlation=correlation,
                most=float(np.quantile(forward, 0.9) / np.median(forward)),
            ),
        ),
        cures=(
            said(
                "give microbatches and ranks equal work: sort or pack sequences by length, and "
                "balance by the square of the length where attention dominates"
            ),
        ),
        cost=cost,
    )


def _together(
    spans: Spans, took: NDArray[np.float64], counted: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns forwards and backwards of the same microbatches, over their rank's median step."""
    found = []
    for kinds in ((ActionKind.F,), (ActionKind.B, ActionKind.I)):
        rows = np.flatnonzero(counted & np.isin(spans.kind, kinds))
        columns = (spans.rank, spans.stage, spans.step, spans.microbatch)
        found.append((rows, [column[rows].astype(np.int64) for column in columns]))
    (first, one), (second, two) = found
    both = packed([np.concatenate(pair) for pair in zip(one, two, strict=True)])
    _, a, b = np.intersect1d(both[: len(first)], both[len(first) :], return_indices=True)
    if not len(a):
        return np.zeros(0), np.zeros(0)
    of = packed([one[0][a], one[1][a]])
    return _over_median(took[first[a]], of), _over_median(took[second[b]], of)


def _over_median(took: NDArray[np.float64], of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns times over the median of their own rank and stage: what ranks differ by goes out."""
    kinds, at = np.unique(of, return_inverse=True)
    order = np.argsort(at, kind="stable")
    parts = np.split(took[order], np.cumsum(np.bincount(at, minlength=len(kinds)))[:-1])
    medians = np.array([np.median(part) for part in parts])
    return np.asarray(took / medians[at])
