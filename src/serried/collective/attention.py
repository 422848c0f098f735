"""What attention over a split sequence promises: every query meets each of its keys once.

    causal, 2 ranks, 4 chunks; rows are chunks of queries, columns of keys

    contiguous    keys  0   1   2   3       zig-zag    keys  0   1   2   3
    rank 0   0        [ d | . | . | . ]     rank 0   0     [ d | . | . | . ]
    rank 0   1        [ # | d | . | . ]     rank 1   1     [ # | d | . | . ]
    rank 1   2        [ # | # | d | . ]     rank 1   2     [ # | # | d | . ]
    rank 1   3        [ # | # | # | d ]     rank 0   3     [ # | # | # | d ]

                      pairs  2 and 6                       pairs  4 and 4

A pair on the diagonal (d) is half masked and counts as a half. Contiguous shards leave the last
ranks most of the work; where rank p holds chunks p and 2 n - 1 - p, all have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.collective.step import Integers, Work

SPLITS = ("zig-zag", "contiguous")
"""How a sequence is dealt out to ranks; the first is what algorithms take by default."""


@dataclass(frozen=True, eq=False)
class SplitAttention:
    """Holds who has which queries, and where queries and blocks lie in the sequence."""

    holder: Integers
    """The position that computes each block of queries: shape (queries,)."""
    query_chunk: Integers
    """The chunk of the sequence that each block of queries is of: shape (queries,)."""
    key_chunk: Integers
    """The chunk that each block's keys or values are of, -1 where there are none: (blocks,)."""
    is_causal: bool
    heads: int = 1
    """Sets of heads that attend apart; queries and keys are of as many, in turns."""
    goes_to: Integers | None = None
    """The position that must have each block at the end, -1 for none: shape (blocks,)."""

    def pairs(self) -> Integers:
        """Returns every pair that must be computed, as query x blocks + block, in order."""
        blocks = np.flatnonzero(self.key_chunk >= 0)
        codes = []
        for head in range(self.heads):
            query = np.arange(head, len(self.query_chunk), self.heads)
            block = blocks[blocks % self.heads == head]
            chunk, key = self.query_chunk[query][:, None], self.key_chunk[block][None, :]
            meets = (key <= chunk) | (not self.is_causal)
            codes.append((query[:, None] * len(self.key_chunk) + block[None, :])[meets])
        return np.sort(np.concatenate(codes))

    def work(self, position: Integers, query: Integers, block: Integers) -> Work:
        """Returns the work of those pairs that are not masked as a whole."""
        chunk, key = self.query_chunk[query], self.key_chunk[block]
        meets = (key <= chunk) | (not self.is_causal)
        half = (key == chunk) & self.is_causal
        return Work(position[meets], query[meets], block[meets], half[meets])

    def fault(self, held: Sequence[NDArray[np.bool_]], done: Sequence[Work]) -> str | None:
        """Returns what is wrong with the work ``done``; None where it is what was promised.

        ``held`` says what each position had at the beginning of each step: (positions, blocks).
        """
        for has, work in zip(held, done, strict=True):
            if not has[work.position, work.key].all():
                return "a rank uses keys that it does not hold"
            if not np.array_equal(self.holder[work.query], work.position):
                return "a rank answers queries that it does not hold"
        query, key = (
            np.concatenate([getattr(each, column) for each in done]) for column in ("query", "key")
        )
        if not np.array_equal(np.sort(query * len(self.key_chunk) + key), self.pairs()):
            return "a query does not meet each of its keys once"
        return None


def owners_of_chunks(num_ranks: int, split: str) -> Integers:
    """Returns the position that holds each of 2 n chunks of a sequence.

    >>> owners_of_chunks(3, "zig-zag").tolist(), owners_of_chunks(3, "contiguous").tolist()
    ([0, 1, 2, 2, 1, 0], [0, 0, 1, 1, 2, 2])
    """
    chunk = np.arange(2 * num_ranks)
    return np.minimum(chunk, chunk[::-1]) if split == "zig-zag" else chunk // 2
