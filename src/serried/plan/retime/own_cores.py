"""Computations of ranks that share cores, as long as each would take on a core of its own.

    rank 0   |===== F =====|        |===== B …        busy at once      1   2   1   2
    rank 1          |====== F ======|= F …            speed, 1 core     1  1/2  1  1/2
                                                      work of a span    sum of speed over it

With more ranks computing than there are cores each gets its share of them, min(1, cores / busy).
What a span took is thus more than its work, by how many others computed beside it, which another
layout changes. ``pipeline.shared_cores`` is the way back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.trace.model.trace import Trace

Numbers = NDArray[np.float64]


def cores_of(trace: Trace) -> float:
    """Returns the ranks of a host that its cores let compute at once.

    0 where ranks share none: with emulated compute, which sleeps, on GPUs, and where the recording
    does not say how many cores there are.
    """
    job = trace.job
    is_on_cpu = job.device == "cpu" or (not job.device and job.backend == "gloo")
    return job.cores / job.threads if is_on_cpu and not trace.is_emulated else 0.0


def on_own_cores(trace: Trace, spans: Spans, cores: float) -> Spans:
    """Returns the spans with computations cut to their work; those of ``trace``'s ranks."""
    computes = np.isin(spans.kind, sorted(COMPUTE))
    host = np.zeros(trace.job.world_size, np.int64)
    for number, each in enumerate(trace.hosts):
        host[list(each.ranks)] = number
    end = spans.end_ns.copy()
    for number in range(len(trace.hosts)):
        here = np.flatnonzero(computes & (host[spans.rank] == number))
        if len(here):
            work = _work(spans.start_ns[here], spans.end_ns[here], cores)
            end[here] = spans.start_ns[here] + np.rint(work).astype(np.int64)
    return replace(spans, end_ns=end)


def _work(start: NDArray[np.int64], end: NDArray[np.int64], cores: float) -> Numbers:
    """Returns the work of computations on one host.

    Two that overlap by half on one core:

    >>> _work(np.array([0, 10]), np.array([20, 30]), 1.0).tolist()
    [15.0, 15.0]
    """
    moments = np.concatenate([start, end])
    change = np.repeat([1, -1], len(start))
    order = np.argsort(moments, kind="stable")
    moments, busy = moments[order], np.cumsum(change[order])
    speed = np.minimum(1.0, cores / np.maximum(busy, 1))
    done = np.r_[0.0, np.cumsum(np.diff(moments) * speed[:-1])]
    return np.asarray(np.interp(end, moments, done) - np.interp(start, moments, done))


def share_of_cores(spans: Spans, own: Spans) -> float:
    """Returns the speed that computations had on average, 1 where each rank had a core."""
    computes = np.isin(spans.kind, sorted(COMPUTE))
    taken = float((spans.end_ns - spans.start_ns)[computes].sum())
    return float((own.end_ns - own.start_ns)[computes].sum()) / taken if taken else 1.0
