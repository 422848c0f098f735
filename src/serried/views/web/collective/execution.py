"""The steps of a collective as columns that the page draws, executed on symbolic blocks.

    shape[step]             which set of moves the step has; steps that are alike share one
    bounds[shape : +2]      its rows in source, target, block, blocks, moves, reduces, across, held
    held[row]               whose data the receiver has of the block after the step: how many ranks'
    pairs[step, rank]       of attention: pairs of blocks of queries and keys that a rank computes
    meets[step : +2]        its rows in query, key, half: which chunks of the sequence meet

Ranks of a small group are drawn one by one, each row one block of one move. Of a large group rows
are added up from place to place (``places.py``), and what every rank holds is not told.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.blocks import Masks, execute, promise
from serried.collective.step import CollectiveStep, Integers
from serried.views.web.collective.places import Places
from serried.views.web.wire.payload import Column

Rows = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]
_TYPES = {
    "source": np.int32,
    "target": np.int32,
    "block": np.int32,
    "blocks": np.int32,
    "moves": np.int32,
    "reduces": np.uint8,
    "across": np.uint8,
    "held": np.uint16,
}
NO_BLOCK = -1
"""The block of a row that stands for moves of several."""


def move_columns(collective: Collective, places: Places) -> dict[str, Column]:
    """Returns the moves of every step, with what is held before the first and asked in the end."""
    if places.is_grouped:
        return _columns(*_grouped(collective, places))
    states = execute(collective)
    before = next(states)
    asked = promise(collective).after
    return _columns(*_one_by_one(collective, states)) | {
        "before": _counted(before).astype(np.uint16).reshape(-1),
        "asked": _counted(asked).astype(np.uint16).reshape(-1),
    }


def work_columns(collective: Collective, places: Places) -> dict[str, Column]:
    """Returns what ranks compute in each step of attention; nothing of others, or large groups.

    Which queries meet which keys is told where a pair is one rank's, not shared out by heads.
    """
    attention = collective.attention
    if attention is None or places.is_grouped:
        return {}
    size = collective.group.size
    works = [step.work for step in collective.steps]
    pairs = [work.pairs(size) if work else np.zeros(size) for work in works]
    columns: dict[str, Column] = {"pairs": np.concatenate(pairs)}
    if attention.heads > 1:
        return columns
    done = [work for work in works if work is not None]
    counts = [0 if work is None else len(work.query) for work in works]
    return columns | {
        "meets": np.cumsum([0, *counts]).astype(np.int32),
        "query": np.concatenate([attention.query_chunk[each.query] for each in done]).astype(
            np.int32
        ),
        "key": np.concatenate([attention.key_chunk[each.key] for each in done]).astype(np.int32),
        "half": np.concatenate([each.is_half for each in done]).astype(np.uint8),
    }


def sent_columns(collective: Collective, size_bytes: int) -> dict[str, Column]:
    """Returns what the busiest rank sends: ``step_bytes`` in each step, ``sent_bytes`` so far."""
    number = len(collective.steps)
    in_step, sent = np.zeros(number), np.zeros(number)
    so_far: Floats = np.zeros(1)
    for index, step_bytes in enumerate(_sent(collective, size_bytes)):
        so_far = so_far + step_bytes
        in_step[index] = step_bytes.max()
        sent[index] = so_far.max()
    return {"step_bytes": in_step, "sent_bytes": sent}


def _sent(collective: Collective, size_bytes: int) -> Iterator[Floats]:
    """Yields the bytes that each rank sends in each step.

    Where all steps have patterns, ranks that send alike in all of them are one: a ring of 131,072
    ranks has as many steps twice, and each rank of it sends as much as any other.
    """
    steps, size = collective.steps, collective.group.size
    block_bytes = float(collective.block_bytes(size_bytes))

    def by_rank(index: int) -> Floats:
        step = steps[index]
        everyone = np.bincount(step.source, step.count * block_bytes, minlength=size)
        return everyone[:size].astype(np.float64)

    patterns = [steps.pattern(index) for index in range(len(steps))]
    if not patterns or None in patterns:
        yield from map(by_rank, range(len(steps)))
        return
    first = {pattern: index for index, pattern in reversed([*enumerate(patterns)])}
    unlike = np.unique(np.stack([by_rank(index) for index in first.values()]), axis=1)
    known = dict(zip(first, unlike, strict=True))
    yield from (known[pattern] for pattern in patterns)


def _columns(shape: list[int], shapes: list[Rows]) -> dict[str, Column]:
    bounds = np.cumsum([0, *(len(rows["source"]) for rows in shapes)])
    empty: Rows = {name: np.zeros(0) for name in _TYPES}
    return {
        "shape": np.array(shape, dtype=np.int32),
        "bounds": bounds.astype(np.int32),
        **{
            name: np.concatenate([rows[name] for rows in [empty, *shapes]]).astype(kind)
            for name, kind in _TYPES.items()
        },
    }


def _one_by_one(collective: Collective, states: Iterator[Masks]) -> tuple[list[int], list[Rows]]:
    """Returns a row for each block of each move, with what its receiver holds after the step."""
    node = _nodes(collective)
    shapes = []
    for step, held in zip(collective.steps, states, strict=True):
        move, block = step.rows(collective.num_blocks)
        source, target = step.source[move], step.target[move]
        shapes.append(
            {
                "source": source,
                "target": target,
                "block": block,
                "blocks": np.ones_like(block),
                "moves": np.ones_like(block),
                "reduces": step.reduces[move],
                "across": node[source] != node[target],
                "held": _counted(held[target, block]),
            }
        )
    return list(range(len(shapes))), shapes


def _grouped(collective: Collective, places: Places) -> tuple[list[int], list[Rows]]:
    """Returns moves added up from place to place, once for all steps of a pattern."""
    steps, node = collective.steps, _nodes(collective)
    shape: list[int] = []
    shapes: list[Rows] = []
    known: dict[Hashable, int] = {}
    for number in range(len(steps)):
        pattern = steps.pattern(number)
        if pattern is None or pattern not in known:
            known[pattern] = len(shapes)
            shapes.append(_added_up(steps[number], places.of_position, node))
        shape.append(known[pattern])
    return shape, shapes


def _added_up(step: CollectiveStep, place: Integers, node: Integers) -> Rows:
    across = node[step.source] != node[step.target]
    ways = np.stack([place[step.source], place[step.target], step.reduces, across])
    rows, which = np.unique(ways, axis=1, return_inverse=True)
    which = which.reshape(-1)
    moves = np.bincount(which)
    return {
        "source": rows[0],
        "target": rows[1],
        "block": np.full(len(moves), NO_BLOCK),
        "blocks": np.bincount(which, step.count).astype(np.int64),
        "moves": moves,
        "reduces": rows[2],
        "across": rows[3],
        "held": np.zeros(len(moves)),
    }


def _nodes(collective: Collective) -> Integers:
    """Returns the node of each position and of each node's switch."""
    group = collective.group
    return np.concatenate([group.node_index, np.arange(group.num_nodes)])


def _counted(masks: Masks) -> NDArray[np.int64]:
    """Returns how many ranks each set holds: the last axis, words of 64 ranks, is added up."""
    octets = np.ascontiguousarray(masks).view(np.uint8)
    counts: NDArray[np.int64] = np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.int64)
    return counts
