"""Some steps of a large trace: evenly spread for means, the last ones for what steps follow on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serried.trace.model.trace import Trace

SPANS = 600_000
"""So many spans are measured in some seconds and half a gigabyte."""


def some_steps(trace: Trace) -> Trace:
    """Returns the trace itself, or of one with more than SPANS as many whole steps as have so many.

    At least one step is left, however large.
    """
    spans = trace.spans
    if len(spans) <= SPANS:
        return trace
    steps = np.unique(spans.step)
    count = max(1, SPANS * len(steps) // len(spans))
    # Of count + 2 even places both ends are dropped, so that in a run of many steps neither the
    # first nor the last is among them.
    places = np.linspace(0, len(steps) - 1, count + 2).round().astype(int)[1:-1]
    return replace(trace, spans=spans.where(np.isin(spans.step, steps[places])))


def last_steps(trace: Trace) -> Trace:
    """Returns the trace itself, or of one with more than SPANS its last steps of so many spans."""
    spans = trace.spans
    if len(spans) <= SPANS:
        return trace
    steps, counts = np.unique(spans.step, return_counts=True)
    # A period needs the step before, so that steps must follow one another; two at least.
    kept = max(2, int((np.cumsum(counts[::-1]) <= SPANS).sum()))
    return replace(trace, spans=spans.where(np.isin(spans.step, steps[-kept:])))
