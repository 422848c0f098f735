"""Chrome JSON of a Trace, written so that Perfetto shows it in order, named and complete.

    process = rank            "rank 3 · stage 1 · node 0", sorted by rank
    ├── thread 1  compute     forward, backward
    ├── thread 2  receive     receive forward wait, receive backward wait
    ├── thread 3  send        send forward, send backward
    ├── thread 4  step        reduce gradients, optimizer
    └── thread 5  exchange    ring, all-to-all …: parts of the computation above them

What Perfetto (v58 and older) asks for, and other writers get wrong:

* slices on one thread must not overlap: where two do, the later gets a further thread;
* time stamps are relative and decimal microseconds, for 1.7e15 us keep no nanosecond;
* thread ids are unique over all ranks (threads are named by id alone) and never equal to
  their process id (that thread would be sorted first);
* colour is a hash of the name without digits, so names hold none and arguments hold all;
* an arrow's two ends lie strictly inside their slices, and it runs from the slice that began
  first: Perfetto turns the others round. A receive begins waiting before the send, so the
  arrow leads on, to the computation that the message was for;
* names are UTF-8, for ``\\u00b7`` is shown as it stands;
* the key ``traceEvents`` comes first: an older version may stop at one it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import listed
from serried.trace.model.trace import Trace
from serried.trace.model.tracks import (
    SLICES,
    THREADS,
    Column,
    arrows,
    lanes_of,
    stages_of,
    threads_of,
)
from serried.trace.store.about import about_document
from serried.whole_file import whole_file

_CHUNK = 16_384


def write_chrome(trace: Trace, path: Path) -> None:
    """Writes ``trace`` to ``path``, whole or not at all.

    Raises InputError when the file cannot be written.
    """
    with whole_file(path) as file:
        file.writelines(line.encode() for line in _document(trace))


def _document(trace: Trace) -> Iterator[str]:
    lanes = lanes_of(trace.spans)
    tids = _thread_ids(trace.spans, lanes)
    yield '{"traceEvents":[\n'
    yield ",\n".join(_names(trace, tids, lanes))
    for start in range(0, len(trace.spans), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(trace.spans)))
        yield ",\n" + ",\n".join(_slices(trace, rows, tids))
    for chunk in _arrows(trace.spans, tids):
        yield ",\n" + ",\n".join(chunk)
    about = about_document(trace)
    yield f'\n],"metadata":{json.dumps(about)},"baseTimeNanoseconds":{trace.base_ns}}}\n'


# ----------------------------------------------------------------------- threads


def _thread_ids(spans: Spans, lanes: Column) -> Column:
    """Returns a thread id for each span: rank, then lane, then thread, counted from 1."""
    within = 1 + lanes * len(THREADS) + threads_of(spans)
    stride: int = 10 ** len(str(int(within.max(initial=1))))
    return spans.rank.astype(np.int64) * stride + within


# ----------------------------------------------------------------------- events


def _names(trace: Trace, tids: Column, lanes: Column) -> Iterator[str]:
    """Yields the metadata that names and orders processes and threads."""
    emulated = " (emulated)" if trace.is_emulated else ""
    stages = stages_of(trace)
    for rank in trace.ranks:
        stage = f" · stage {listed(stages[rank])}" if rank in stages else ""
        name = f"rank {rank}{stage} · node {trace.placement.node(rank)}"
        yield _metadata("process", rank, None, name, rank)
    tid_of_each, first = np.unique(tids, return_index=True)
    threads = threads_of(trace.spans)
    for tid, row in zip(tid_of_each.tolist(), first.tolist(), strict=True):
        # Any span of a thread says which it is: the first one does.
        thread, lane = THREADS[threads[row]], int(lanes[row])
        name = f"{thread}{emulated if thread == 'compute' else ''}{f' {lane + 1}' if lane else ''}"
        yield _metadata("thread", int(trace.spans.rank[row]), tid, name, tid)


def _metadata(what: str, pid: int, tid: int | None, name: str, sort_index: int) -> str:
    thread = "" if tid is None else f'"tid":{tid},'
    head = f'{{"ph":"M","pid":{pid},{thread}"name":"{what}'
    return (
        f'{head}_name","args":{{"name":{json.dumps(name, ensure_ascii=False)}}}}},\n'
        f'{head}_sort_index","args":{{"sort_index":{sort_index}}}}}'
    )


def _slices(trace: Trace, rows: Column, tids: Column) -> Iterator[str]:
    """Yields one complete event per span."""
    some = trace.spans.where(rows)
    duration = some.end_ns - some.start_ns
    where = (some.rank, tids[rows], some.start_ns, duration)
    what = (some.kind, some.stage, some.microbatch, some.step, some.peer)
    moved = (some.size_bytes, some.group)
    heads = _heads(trace.is_emulated)
    # A group's text stands once here, for thousands of spans have it.
    groups = [json.dumps(str(group)) for group in trace.groups]
    for rank, tid, start, ns, kind, stage, mb, step, peer, size, group in zip(
        *(column.tolist() for column in (*where, *what, *moved)), strict=True
    ):
        name, action, extra = heads[kind]
        if size >= 0:
            extra += f',"bytes":{size}'
        if group >= 0:
            extra += f',"group":{groups[group]},"group_number":{group}'
        # A user's own span has the place of its name where others have their peer.
        if kind == ActionKind.SPAN and peer >= 0:
            called, peer = json.dumps(trace.names[peer], ensure_ascii=False), -1
            name = f'"name":{called},"cat":"named"'
        of_stage = "" if stage < 0 else f',"stage":{stage}'
        of_microbatch = "" if mb < 0 else f',"microbatch":{mb}'
        yield (
            f'{{"ph":"X","pid":{rank},"tid":{tid},"ts":{start // 1000}.{start % 1000:03d},'
            f'"dur":{ns // 1000}.{ns % 1000:03d},{name},'
            f'"args":{{"action":"{"" if stage < 0 else stage}{action}{"" if mb < 0 else mb}"'
            f',"step":{step}{of_stage}{of_microbatch}'
            f"{'' if peer < 0 else f',{_PEER}{peer}'}{extra}}}}}"
        )


_PEER = '"peer":'


def _heads(is_emulated: bool) -> dict[int, tuple[str, str, str]]:
    """Returns for each kind its name and category, its letters, and what its arguments add."""
    return {
        int(kind): (
            f'"name":"{name}","cat":"{thread}"',
            kind.name,
            ',"compute":"emulated"' if is_emulated and thread == "compute" else "",
        )
        for kind, (name, thread) in SLICES.items()
    }


def _arrows(spans: Spans, tids: Column) -> Iterator[list[str]]:
    """Yields an arrow from each send to what was computed from its message."""
    sends, computes = arrows(spans)
    # One nanosecond inside the slice: at its very edge Perfetto may find its neighbour.
    leaves = spans.start_ns[sends] + (spans.end_ns[sends] - spans.start_ns[sends] > 1)
    arrives = spans.start_ns[computes] + (spans.end_ns[computes] - spans.start_ns[computes] > 1)
    arrives = np.maximum(arrives, leaves)
    columns = (
        spans.rank[sends],
        tids[sends],
        leaves,
        spans.rank[computes],
        tids[computes],
        arrives,
    )
    for first in range(0, len(sends), _CHUNK):
        rows = slice(first, first + _CHUNK)
        ends = zip(*(column[rows].tolist() for column in columns), strict=True)
        yield [
            f'{{"ph":"s",{_ARROW},"id":{number},"pid":{sender},"tid":{out},'
            f'"ts":{left // 1000}.{left % 1000:03d}}},\n'
            f'{{"ph":"f","bp":"e",{_ARROW},"id":{number},"pid":{receiver},"tid":{to},'
            f'"ts":{came // 1000}.{came % 1000:03d}}}'
            for number, (sender, out, left, receiver, to, came) in enumerate(ends, first)
        ]


_ARROW = '"name":"message","cat":"message"'
