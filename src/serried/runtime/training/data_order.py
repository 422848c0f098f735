"""The order in which a run reads its text: every sequence once an epoch, shuffled by the seed.

    text         | sequence 0 | sequence 1 | … | sequence n-1 | a rest shorter than one
    number       0 1 2 … n-1 | n … 2n-1 | …       counted over the whole run
    epoch            0       |     1    | …       each in an order of its own

The n-th sample of a run is a pure function of the seed and n: no list of n places is kept, no
layout or batch size changes it, and a run goes on at any number as if it had read all before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

ROUNDS = 4
"""Four rounds of a Feistel network give a permutation that looks random (Luby and Rackoff 1988)."""


@dataclass(frozen=True)
class Order:
    """Says where each sample of a run begins in a text of ``num_bytes``.

    A sample is ``seq_len`` bytes and the one after them, which is the next sample's first.

    >>> order = Order(num_bytes=41, seq_len=8, seed=0)
    >>> order.num_sequences, sorted(order.place(number) for number in range(5))
    (5, [0, 8, 16, 24, 32])
    """

    num_bytes: int
    seq_len: int
    seed: int

    @property
    def num_sequences(self) -> int:
        """How many samples an epoch has."""
        return (self.num_bytes - 1) // self.seq_len

    def place(self, number: int) -> int:
        """Returns the byte at which sample ``number`` of the run begins."""
        epoch, place = divmod(number, self.num_sequences)
        rest = (self.num_bytes - 1) % self.seq_len
        # Epochs are cut at different bytes, so that the rest at the end is read by some.
        shift = _drawn(f"{self.seed}/{epoch}/shift") % (rest + 1) if epoch else 0
        return shift + self.seq_len * self._shuffled(epoch, place)

    def _shuffled(self, epoch: int, place: int) -> int:
        """Returns what stands at ``place`` of an epoch's permutation of all sequences.

        A Feistel network permutes 2^(2 half) numbers; those that fall outside walk on until
        they are inside, which keeps it a permutation.
        """
        half = max(1, ((self.num_sequences - 1).bit_length() + 1) // 2)
        mask = (1 << half) - 1
        while True:
            left, right = place >> half, place & mask
            for turn in range(ROUNDS):
                drawn = _drawn(f"{self.seed}/{epoch}/{turn}/{right}")
                left, right = right, left ^ (drawn & mask)
            place = left << half | right
            if place < self.num_sequences:
                return place


def _drawn(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")
