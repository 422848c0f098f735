"""Ring attention: queries stay where they are, and keys and values travel round to meet them.

    K and V together, 3 ranks, zig-zag: rank p holds chunks p and 5 - p; (q,k) is computed

              rank 0: q 0 5            rank 1: q 1 4            rank 2: q 2 3            travels
    step 0    (0,0) (5,0) (5,5)        (1,1) (4,1) (4,4)        (2,2) (3,2) (3,3)        p -> p + 1
    step 1    (5,2) (5,3)              (1,0) (4,0)              (2,1) (3,1)              p -> p + 1
    step 2    (5,1) (5,4)              (4,2) (4,3)              (2,0) (3,0)              nothing

While a rank computes with the keys that it has, it sends them on: n steps, of which n - 1 move
(n - 1) / n S in all. Softmax is joined as blocks come, so that nobody holds more than two blocks.

In two passes (the first form there was): K goes round alone, and every rank writes the scores of
its queries against all keys (RingQK); after the softmax V goes round, and the outputs add up
(RingAV). The same bytes in 2 n steps, and a row of scores for every query in memory.

Causal masks leave out pairs above the diagonal. Keys are passed on all the same: implementations do
so, since every block is needed by some rank further on. Contiguous shards then leave rank 0 idle
from step 1 on while rank n - 1 computes all the time; zig-zag ones give each rank two pairs of
chunks a step (``serried.collective.attention`` has the picture).

Sources: Li et al., arXiv 2105.13120 (RingQK and RingAV, ColossalAI); Liu, Zaharia and Abbeel,
arXiv 2310.01889 (one pass); zhuzilin/ring-flash-attention (zig-zag).
"""

from __future__ import annotations

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.attention import SplitAttention, owners_of_chunks
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.step import CollectiveStep, CollectiveSteps


def ring_attention(attention: SplitAttention, num_ranks: int) -> CollectiveSteps:
    """Returns n steps, in which the blocks of two chunks of every rank go round.

    >>> owner = owners_of_chunks(2, "zig-zag")
    >>> attention = SplitAttention(owner, np.arange(4), np.arange(4), is_causal=True)
    >>> for step in ring_attention(attention, 2):
    ...     print(step.first, [*zip(step.work.query.tolist(), step.work.key.tolist())])
    [0 3 1 2] [(0, 0), (3, 0), (3, 3), (1, 1), (2, 1), (2, 2)]
    [] [(3, 1), (3, 2), (1, 0), (2, 0)]
    """
    return _pass(attention, num_ranks, first_block=0)


def ring_attention_two_pass(attention: SplitAttention, num_ranks: int) -> CollectiveSteps:
    """Returns 2 n steps: blocks of keys go round, then as many blocks of values after them."""
    keys, values = (_pass(attention, num_ranks, first_block=first) for first in (0, 2 * num_ranks))
    return keys.then(values)


def _pass(attention: SplitAttention, num_ranks: int, first_block: int) -> CollectiveSteps:
    rank = np.arange(num_ranks)
    # The two chunks of each rank, in the order of the sequence: shape (ranks, 2).
    chunks = np.argsort(attention.holder, kind="stable").reshape(num_ranks, 2)
    position, query = np.repeat(rank, 4), np.repeat(chunks, 2, axis=1).ravel()

    def step(index: int) -> CollectiveStep:
        # What a rank has in step i was i ranks before it at first.
        here = first_block + chunks[rank - index]
        work = attention.work(position, query, np.tile(here, 2).ravel())
        # In the last step everybody has met all blocks, and nothing is sent on.
        sends = np.repeat(rank, 2) if index < num_ranks - 1 else rank[:0]
        block = here.ravel()[: len(sends)]
        return CollectiveStep.of(sends, (sends + 1) % num_ranks, block, work=work)

    return CollectiveSteps(num_ranks, step, lambda index: ("ring attention", index < num_ranks - 1))


def _make(asked: CollectiveRequest) -> Collective:
    n = asked.group.size
    owner = owners_of_chunks(n, asked.split)
    chunk = np.arange(2 * n)
    if asked.algorithm == "ring":
        attention = SplitAttention(owner, chunk, chunk, asked.is_causal)
        blocks, steps = 2 * n, ring_attention(attention, n)
    else:
        attention = SplitAttention(owner, chunk, np.tile(chunk, 2), asked.is_causal)
        blocks, steps = 4 * n, ring_attention_two_pass(attention, n)
    owners = np.tile(owner, blocks // (2 * n))
    return Collective(
        asked.name,
        asked.algorithm,
        asked.group,
        blocks,
        steps,
        owners=owners,
        attention=attention,
    )


ENTRIES = (
    AlgorithmEntry(
        collective="attention",
        name="ring",
        make=_make,
        about="Keys and values travel round together; each rank's queries meet all of them.",
        formula="(n - 1) / n S, n steps, the last without a message",
        share_sent=others,
        num_steps=lambda made: made.group.size,
        source="Liu, Zaharia and Abbeel, arXiv 2310.01889",
        takes=("split", "causal"),
    ),
    AlgorithmEntry(
        collective="attention",
        name="ring-two-pass",
        make=_make,
        about="Keys travel round for the scores (RingQK), then values for the outputs (RingAV).",
        formula="(n - 1) / n S, 2 n steps, two of them without a message",
        share_sent=others,
        num_steps=lambda made: 2 * made.group.size,
        source="Li et al., arXiv 2105.13120",
        takes=("split", "causal"),
    ),
)
