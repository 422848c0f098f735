"""The order of samples: every sequence once an epoch, whatever the batch size or the layout."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.runtime.training.data import BatchShare, SampleOrder


@given(st.integers(1, 400), st.integers(1, 9), st.integers(0, 5), st.integers(0, 3))
def test_every_sequence_comes_once_an_epoch(count: int, length: int, seed: int, epoch: int) -> None:
    order = SampleOrder(count * length + 1, length, seed)
    first = epoch * count
    places = [order.place(number) for number in range(first, first + count)]
    assert sorted(places) == [length * each for each in range(count)]


@given(st.integers(2, 500), st.integers(1, 9), st.integers(0, 200))
def test_no_sample_reaches_past_the_text(num_bytes: int, length: int, number: int) -> None:
    length = min(length, num_bytes - 1)
    assert 0 <= SampleOrder(num_bytes, length, 0).place(number) < num_bytes - length


def test_the_rest_at_the_end_is_read_by_some_epochs() -> None:
    order = SampleOrder(length=16, seq_len=8, seed=0)
    assert {order.place(epoch) for epoch in range(100)} == set(range(8))


def test_epochs_and_seeds_each_have_an_order_of_their_own() -> None:
    def epoch(seed: int, number: int) -> list[int]:
        order = SampleOrder(801, 8, seed)
        return [order.place(number * 100 + each) for each in range(100)]

    orders = [epoch(0, 0), epoch(0, 1), epoch(1, 0), [8 * each for each in range(100)]]
    assert len({tuple(each) for each in orders}) == 4


def test_an_order_looks_shuffled_to_the_eye() -> None:
    order = SampleOrder(10_001, 1, 0)
    places = [order.place(number) for number in range(10_000)]
    ahead = sum(a < b for a, b in pairwise(places))
    assert 4_700 < ahead < 5_300  # half, give or take ten deviations of 29


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 50))
def test_the_ranks_of_a_batch_share_it_out_and_no_microbatch_depends_on_dp(
    dp: int, microbatches: int, size: int, first: int
) -> None:
    batch = dp * microbatches * size
    shares = [BatchShare(batch, microbatches, dp, rank) for rank in range(dp)]
    numbers = [share.numbers(first) for share in shares]
    assert sorted(chain(*numbers)) == list(range(first, first + batch))
    alone = BatchShare(batch, microbatches, 1, 0).numbers(first)
    for microbatch in range(microbatches):
        together = list(
            chain(*(own[microbatch * size : (microbatch + 1) * size] for own in numbers))
        )
        assert together == alone[microbatch * dp * size : (microbatch + 1) * dp * size]


def test_a_batch_that_ranks_cannot_share_is_refused() -> None:
    with pytest.raises(InputError, match="not a multiple of dp=2 x 2 microbatches"):
        BatchShare(6, microbatches=2, dp=2, rank=0)
