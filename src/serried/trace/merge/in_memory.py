"""Merging: the files of many ranks become one Trace, on one clock, checked to be one run.

folders, URLs ──> surveys ──> attempts ──> run ──┬──> Trace           in_memory
 files             survey      attempts     run  └──> Parquet store   store
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from serried.action import Spans
from serried.trace.merge.files import Folder
from serried.trace.merge.part import no_spans
from serried.trace.merge.run import gathered
from serried.trace.model.trace import Trace

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 8


def merge(folders: Sequence[Folder]) -> Trace:
    """Reads every rank's file in ``folders`` and returns them as one Trace.

    Raises InputError as ``run.gathered`` does.
    """
    run = gathered(folders, side_by_side)
    spans = [block for part in run.parts for block in part.blocks()]
    return replace(run.trace, spans=Spans.joined([no_spans(), *spans]))


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yields what ``work`` makes of each item, in order, on as many threads as there are cores.

    numpy, Arrow and file reads let go of the interpreter, so that threads are enough.
    """
    from concurrent.futures import ThreadPoolExecutor  # files of other tools are read without

    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, items)
