"""Merge store: recordings of any length become a store, read once to survey and once to write.

    survey every file ─> align a sample ─> count all messages ─> write node by node
    headers, counts      lines per host    0 of 12,288 early     row groups, bounded memory

The same pieces of work run on threads here or as tasks on Ray (``ray``), and make the
same bytes, in whatever order the folders are given.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.action import Spans
from serried.errors import InputError
from serried.trace.merge.clocks import ClockedPart, clocked, counted_messages
from serried.trace.merge.files import Folder
from serried.trace.merge.in_memory import side_by_side
from serried.trace.merge.run import Engine, gathered
from serried.trace.model.admission import require_sound
from serried.trace.model.messages import Alignment, MessageStatistics
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Trace
from serried.trace.store.about import write_about
from serried.trace.store.folder import is_store, new_store, part_of
from serried.trace.store.table import write_spans


@dataclass(frozen=True, eq=False)
class Merged:
    """Says what was merged into a store."""

    trace: Trace
    """All but its spans, which the store holds."""
    num_spans: int
    messages: MessageStatistics
    alignment: Alignment


@dataclass(frozen=True, eq=False)
class _Node:
    parts: tuple[ClockedPart, ...]
    world_size: int
    sink: Path | None
    """Where its spans are written; None to have the bytes returned."""
    groups: tuple[SpanGroup, ...]


def merge_store(
    folders: Sequence[Folder],
    path: Path,
    engine: Engine = side_by_side,
    *,
    writes_here: bool = True,
) -> Merged:
    """Merges the recordings in ``folders`` into a store at ``path``, whole or not at all.

    ``writes_here`` says that the engine's work sees this machine's files. Raises InputError
    as ``run.gathered`` and ``store.write_store`` do, and where a store to be replaced
    holds one of the folders.
    """
    _require_apart(folders, path)
    with new_store(path) as store:
        run = gathered(folders, engine)
        aligned = clocked(run, folders, engine)
        messages, alignment = counted_messages(run, aligned, engine)
        # A file of the store holds one node, so that nodes are written side by side.
        nodes: dict[int, list[ClockedPart]] = {}
        for part in aligned.parts:
            if part.part.num_spans:
                nodes.setdefault(run.trace.placement.node(part.part.rank), []).append(part)
        sinks = {node: part_of(store, node) for node in sorted(nodes)}
        world = run.trace.job.world_size
        work = [
            _Node(tuple(nodes[node]), world, sinks[node] if writes_here else None, run.trace.groups)
            for node in sinks
        ]
        for sink, raw in zip(sinks.values(), engine(_write, work), strict=True):
            if not writes_here:
                sink.write_bytes(raw)
        write_about(aligned.trace, store, num_spans=run.num_spans)
    return Merged(aligned.trace, run.num_spans, messages, alignment)


def _write(node: _Node) -> bytes:
    sink = node.sink or io.BytesIO()
    write_spans(sink, _sound(node), node.groups)
    return sink.getvalue() if isinstance(sink, io.BytesIO) else b""


def _sound(node: _Node) -> Iterator[Spans]:
    """Yields the spans of a node; raises InputError for one that no trace would admit."""
    for part in node.parts:
        for spans in part.blocks():
            require_sound(spans, node.world_size)
            yield spans


def _require_apart(folders: Sequence[Folder], path: Path) -> None:
    """Raises InputError where replacing the store would take a folder of recordings with it."""
    store = path.resolve()
    for folder in folders:
        if isinstance(folder, Path) and is_store(path) and folder.resolve().is_relative_to(store):
            raise InputError(
                "{folder} lies in the store {path}, which would be replaced; give another name",
                folder=folder,
                path=path,
            )
