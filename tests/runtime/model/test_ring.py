"""In a zig-zag ring every visible product is computed once, and each rank computes as many."""

from __future__ import annotations

import pytest

from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import make
from serried.runtime.job.shards import places
from serried.runtime.model.ring import unmasked_block

SEQ_LEN = 24


def met(rank: int, source: int, cp: int) -> list[tuple[int, int]]:
    """Returns the queries and keys, by their places, that meet on ``rank``."""
    queries, keys = (
        [p for piece in places("ring", seq_len=SEQ_LEN, rank=each, cp=cp) for p in piece]
        for each in (rank, source)
    )
    found = unmasked_block(rank, source, length=len(queries))
    pairs = [(i, j) for i in range(len(queries)) for j in range(len(keys))]
    return [
        (queries[i], keys[j])
        for i, j in pairs
        if i in range(len(queries))[found.queries]
        and j in range(len(keys))[found.keys]
        and not (found.is_own and j > i)
    ]


@pytest.mark.parametrize("cp", [1, 2, 3, 4, 6])
def test_ranks_compute_what_is_visible_each_product_once(cp: int) -> None:
    everything = [pair for r in range(cp) for s in range(cp) for pair in met(r, s, cp)]
    assert sorted(everything) == [(q, k) for q in range(SEQ_LEN) for k in range(q + 1)]


@pytest.mark.parametrize("cp", [2, 3, 4, 6])
def test_at_each_step_all_ranks_compute_as_much(cp: int) -> None:
    for step in range(cp):
        assert len({len(met(rank, (rank - step) % cp, cp)) for rank in range(cp)}) == 1


@pytest.mark.parametrize("cp", [1, 2, 3, 4, 6])
def test_the_steps_that_are_shown_compute_what_the_model_computes(cp: int) -> None:
    shown = make("attention", "ring", PlacedGroup.first(cp))
    chunk = SEQ_LEN // (2 * cp)
    for step, each in enumerate(shown.steps):
        assert each.work is not None
        rows = zip(each.work.position, each.work.query, each.work.key, strict=True)
        assert {(int(rank), int(query), int(key)) for rank, query, key in rows} == {
            (rank, query // chunk, key // chunk)
            for rank in range(cp)
            for query, key in met(rank, (rank - step) % cp, cp)
        }
