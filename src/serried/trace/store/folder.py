"""The store: a run's spans as partitioned Parquet, which every table engine opens.

    run.store/
    ├── _serried.json             run, job, hosts, clocks, what was missing or torn
    ├── _replay.parquet           operations with what they wait for, where the writer said so
    ├── node=0/spans.parquet      rank step stage kind microbatch peer action start_ns end_ns
    │                             bytes group_number collective group
    └── node=1/spans.parquet      by rank and start; row groups of one rank or a few

Times are nanoseconds on the common clock from 0; ``base_ns`` in ``_serried.json`` is the wall
time of 0. ``kind`` and ``action`` are words (``F``, ``3F2``), dictionary encoded; a rank has the
number that its files gave it, and what a span has none of is NULL. ``bytes`` is what its
collectives moved; where they are of one kind and group, ``collective`` and ``group`` name them
(``ALL_REDUCE``, ``0,1``).

    duckdb   select rank, sum(end_ns - start_ns) from 'run.store/*/spans.parquet'
             where kind = 'F' group by rank
    polars   pl.scan_parquet("run.store/*/spans.parquet", hive_partitioning=True)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from serried.action import Spans
from serried.errors import InputError
from serried.trace.model.trace import Trace
from serried.trace.store.about import ABOUT, read_about, trace_of, write_about
from serried.trace.store.replay import read_replay, write_replay
from serried.trace.store.table import read_spans, require_pyarrow, write_spans
from serried.whole_file import whole_folder

PART = "spans.parquet"


def write_store(trace: Trace, path: Path) -> None:
    """Writes ``trace`` as a store at ``path``, whole or not at all.

    An earlier store at ``path`` is replaced; any other folder is refused. Raises InputError
    when it cannot be written, EnvironmentProblem without pyarrow.
    """
    with new_store(path) as folder:
        node = np.array([trace.placement.node(rank) for rank in range(trace.job.world_size)])
        for each in np.unique(node[trace.spans.rank]).tolist():
            # Rank by rank, so that reading one rank's spans takes a row group or a few.
            mine = (rank for rank in trace.ranks if node[rank] == each)
            spans = (_of_rank(trace.spans, rank) for rank in mine)
            write_spans(part_of(folder, each), spans, trace.groups)
        if trace.replay is not None:
            write_replay(trace.replay, folder)
        write_about(trace, folder, num_spans=len(trace.spans))


@contextmanager
def new_store(path: Path) -> Iterator[Path]:
    """Gives a folder to write a store in, which becomes ``path`` when the block ends well.

    Raises InputError and EnvironmentProblem as ``write_store`` does.
    """
    require_pyarrow()
    if path.exists() and not is_store(path):
        raise InputError("{path} is there and is no store of serried; give another name", path=path)
    with whole_folder(path) as folder:
        yield folder


def part_of(folder: Path, node: int) -> Path:
    """Returns where the spans of ``node`` stand in the store ``folder``; makes room for them."""
    place = folder / f"node={node}" / PART
    place.parent.mkdir(exist_ok=True)
    return place


def read_store(path: Path) -> Trace:
    """Reads a store back as the Trace that it was written from.

    Raises InputError when ``path`` is not a store or is damaged.
    """
    require_pyarrow()
    from pyarrow import ArrowException

    try:
        about = read_about(path)
        files = sorted(path.glob(f"node=*/{PART}"))
        if not all(file.is_file() for file in path.glob("**/*.parquet")):
            raise ValueError("a pipe, which would wait for its writer")
        parts = [read_spans(file) for file in files]
        replay = read_replay(path) if about.get("has_replay") else None
        return trace_of(about, Spans.joined(parts), replay)
    except (
        *(OSError, ArrowException, ArithmeticError, AttributeError),
        *(LookupError, RecursionError, TypeError, ValueError),
    ) as error:
        # What is damaged shows itself in Arrow, JSON or numpy, each by errors of its own.
        raise InputError("{path} is not a store of serried, or is damaged", path=path) from error


def is_store(path: Path) -> bool:
    """Tells whether ``path`` is a store."""
    return (path / ABOUT).is_file()


def _of_rank(spans: Spans, rank: int) -> Spans:
    """Returns the spans of ``rank``, which stand together in every Trace."""
    first, last = np.searchsorted(spans.rank, (rank, rank + 1)).tolist()
    return spans.where(np.arange(first, last))
