"""Executes the steps of a collective on symbolic blocks: whose data each rank holds of each block.

    all-reduce, 2 ranks, 2 blocks; a set says whose contributions are in the sum

              block 0  block 1             block 0  block 1             block 0  block 1
    rank 0     {0}      {0}     step 0       {0}     {0,1}   step 1      {0,1}    {0,1}
    rank 1     {1}      {1}     ------>     {0,1}     {1}    ------>     {0,1}    {0,1}

Sets are bits of 64-bit words: ``held[position, block, word]``. A step that sends what its sender
does not hold, adds a contribution twice, or overwrites one with less is an error of the algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.step import CollectiveStep, Integers

Masks = NDArray[np.uint64]
"""Contributions held, shape (positions and switches, blocks, words of 64 ranks)."""


class BrokenAlgorithmError(AssertionError):
    """Says where steps do not do what their collective promises: a fault of serried's own."""


@dataclass(frozen=True, eq=False)
class Promise:
    """Holds what every position has before and must have after a collective; 0: nothing asked."""

    before: Masks
    after: Masks


def promise(collective: Collective) -> Promise:
    """Returns what the collective promises, whatever its algorithm.

    Raises KeyError for a collective that is not known.
    """
    n, blocks = collective.group.size, collective.num_blocks
    own = _each(n)[:, None, :]
    everyone = np.bitwise_or.reduce(own, axis=0)
    owner = collective.owner
    is_owner = (np.arange(n)[:, None] == owner[None, :])[:, :, None]
    is_root = (np.arange(n) == collective.root)[:, None, None]
    anywhere = np.ones((n, blocks, 1), dtype=np.bool_)
    of_owner, of_root = own[owner, 0][None], own[collective.root][None]
    if collective.name == "all-to-all":
        is_for = (np.arange(n)[:, None] == (np.arange(blocks) % n)[None, :])[:, :, None]
        return _promised((is_owner, own), (is_for, of_owner))
    if collective.name == "send-receive":
        is_next = np.roll(is_owner, 1, axis=0)
        return _promised((is_owner, own), (is_next, of_owner))
    if collective.attention is not None:
        goes_to = collective.attention.goes_to
        goes_to = np.full(blocks, -1) if goes_to is None else goes_to
        is_there = (np.arange(n)[:, None] == goes_to[None, :])[:, :, None]
        return _promised((is_owner, own), (is_there, of_owner))
    begins, ends = {
        "all-reduce": ((anywhere, own), (anywhere, everyone)),
        "reduce-scatter": ((anywhere, own), (is_owner, everyone)),
        "all-gather": ((is_owner, own), (anywhere, of_owner)),
        "broadcast": ((is_root & anywhere, own), (anywhere, of_root)),
        "reduce": ((anywhere, own), (is_root & anywhere, everyone)),
        "gather": ((is_owner, own), (is_root & anywhere, of_owner)),
        "scatter": ((is_root & anywhere, own), (is_owner, of_root)),
    }[collective.name]
    return _promised(begins, ends)


def _promised(
    begins: tuple[NDArray[np.bool_], Masks], ends: tuple[NDArray[np.bool_], Masks]
) -> Promise:
    before, after = (np.where(where, masks, np.uint64(0)) for where, masks in (begins, ends))
    return Promise(before, after)


def _each(ranks: int) -> Masks:
    """Returns the set of each rank alone, shape (ranks, words)."""
    numbers = np.arange(ranks)
    masks = np.zeros((ranks, -(-ranks // 64)), dtype=np.uint64)
    masks[numbers, numbers // 64] = np.uint64(1) << (numbers % 64).astype(np.uint64)
    return masks


def execute(collective: Collective) -> Iterator[Masks]:
    """Yields what every position and switch holds before the first step and after each.

    Raises BrokenAlgorithmError where a step cannot be as it is written.
    """
    held = _at_first(collective, promise(collective))
    yield held.copy()
    for number, step in enumerate(collective.steps):
        _move(held, step, number)
        yield held.copy()


def prove(collective: Collective) -> None:
    """Raises BrokenAlgorithmError unless every rank ends with exactly what is promised.

    >>> from serried.collective.registry import make
    >>> from serried.collective.placed_group import PlacedGroup
    >>> prove(make("all-reduce", "ring", PlacedGroup.first(5)))
    """
    promised = promise(collective)
    held, asked = _at_first(collective, promised), promised.after
    had, done = [], []
    for number, step in enumerate(collective.steps):
        if step.work is not None:
            had.append((held != 0).any(axis=2))
            done.append(step.work)
        _move(held, step, number)
    if (wrong := np.argwhere((asked != 0) & (held[: len(asked)] != asked))).size:
        raise BrokenAlgorithmError(
            f"{collective.name} by {collective.algorithm} over {collective.group.size} ranks "
            f"leaves position {wrong[0][0]} without what it was promised of block {wrong[0][1]}"
        )
    if collective.attention and (fault := collective.attention.fault(had, done)):
        raise BrokenAlgorithmError(f"in {collective.name} by {collective.algorithm} {fault}")


def _at_first(collective: Collective, promised: Promise) -> Masks:
    """Returns what positions hold before the first step, and switches: nothing."""
    nothing = np.zeros((collective.group.num_nodes, *promised.before.shape[1:]), dtype=np.uint64)
    return np.concatenate([promised.before, nothing])


def _move(held: Masks, step: CollectiveStep, number: int) -> None:
    """Moves what a step moves; everything sent is from before it."""
    move, block = step.rows(held.shape[1])
    source, target, adds = step.source[move], step.target[move], step.reduces[move]
    sent = held[source, block]
    _require(
        np.any(sent != 0, axis=1), number, "sends a block that its sender does not hold", block
    )
    for rows in _one_at_a_time(target * held.shape[1] + block):
        at, what = (target[rows], block[rows]), sent[rows]
        had, add = held[at], adds[rows]
        twice = ((had & what) != 0).any(axis=1)
        _require(~(add & twice), number, "adds a contribution twice", block[rows])
        less = ((had & ~what) != 0).any(axis=1)
        _require(add | ~less, number, "overwrites a sum with less", block[rows])
        held[at] = had | what


def _one_at_a_time(cells: Integers) -> Iterator[Integers]:
    """Yields rows in turns, so that no turn writes into one cell twice."""
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    lengths = np.diff(np.append(starts, len(ordered)))
    turn = np.arange(len(ordered)) - np.repeat(starts, lengths)
    for number in range(int(turn.max(initial=-1)) + 1):
        yield order[turn == number]


def _require(holds: NDArray[np.bool_], step: int, fault: str, block: Integers) -> None:
    if not holds.all():
        raise BrokenAlgorithmError(f"step {step} {fault}: block {block[np.argmin(holds)]}")
