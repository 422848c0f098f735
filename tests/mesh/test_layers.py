"""Which layers each pipeline position holds: even, uneven, in chunks, as listed, as drawn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.mesh.layers import LayerSplit, as_listed, by_picture, evenly, positions, with_ends


def test_chunks_take_turns() -> None:
    split = evenly(16, pp=4, chunks=2)
    assert [split.layers(position) for position in range(4)] == [
        [0, 1, 8, 9],
        [2, 3, 10, 11],
        [4, 5, 12, 13],
        [6, 7, 14, 15],
    ]


@pytest.mark.parametrize(
    ("left_over", "counts"),
    [("first", (3, 3, 2, 2)), ("middle", (2, 3, 3, 2)), ("last", (2, 2, 3, 3))],
)
def test_layers_left_over_go_where_the_framework_puts_them(
    left_over: str, counts: tuple[int, ...]
) -> None:
    assert evenly(10, pp=4, left_over=left_over).counts == counts


def test_first_and_last_positions_may_have_their_own_size() -> None:
    split = with_ends(28, pp=4, chunks=2, first=4, last=8)
    assert split.counts == (4, 8, 8, 8)
    assert split.layers(0) == [0, 1, 14, 15]


def test_a_first_position_alone_may_have_its_own_size() -> None:
    assert with_ends(30, pp=2, first=14).counts == (14, 16)


def test_megatrons_drawing_is_read() -> None:
    split = by_picture("Et*3|(tt|)*29,m|L", pp=8)
    assert (split.num_layers, split.num_chunks) == (61, 4)
    assert split.layers(0)[:5] == [0, 1, 2, 17, 18]


@given(
    st.integers(1, 200),
    st.integers(1, 16),
    st.integers(1, 4),
    st.sampled_from(["first", "middle", "last"]),
)
def test_each_layer_is_held_once(layers: int, pp: int, chunks: int, left_over: str) -> None:
    split = evenly(layers * chunks, pp=pp, chunks=chunks, left_over=left_over)
    held = [layer for position in range(pp) for layer in split.layers(position)]
    assert sorted(held) == list(range(layers * chunks))
    assert split.num_chunks == chunks


def test_positions_follow_the_pipeline_groups() -> None:
    assert positions(layout("megatron", Sizes(8, pp=4))).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert positions(layout("internlm", Sizes(8, pp=4))).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert positions(layout("fsdp", Sizes(4))).tolist() == [0, 0, 0, 0]


def test_chunks_need_not_divide_the_layers() -> None:
    split = evenly(61, pp=4, chunks=2)
    assert split.counts == (16, 15, 15, 15)
    assert split.held[0] == (range(8), range(32, 40))


WRONG = [
    (lambda: evenly(0, pp=2), "layers=0; it is at least 1"),
    (
        lambda: evenly(10, pp=2, chunks=4, left_over="last"),
        "10 layers do not divide into 4 chunks; numbers that do: 1, 2, 5, 10",
    ),
    (
        lambda: with_ends(16, pp=4, first=3),
        "13 layers are left for 3 positions in the middle, which do not divide them; first and "
        "last positions that leave 12, 15 would do",
    ),
    (
        lambda: with_ends(4, pp=4, first=3, last=3),
        "first and last positions of 3, 3 layers do not fit 4 layers over pp=4; each is at "
        "least 1, and together at most 4",
    ),
    (
        lambda: with_ends(12, pp=4, chunks=2, first=3, last=3),
        "3 layers of a pipeline position do not divide into 2 chunks; numbers that do: 1, 3",
    ),
    (
        lambda: as_listed([1, 2, 3], pp=2),
        "3 stages are listed, but pp=2; list one number of layers per stage, 2 of them or a "
        "multiple",
    ),
    (
        lambda: by_picture("(t|)*99999999", pp=2),
        "99999999 layers are more than a model has; at most 100000",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_split_that_cannot_be_is_refused(make, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == sentence


def test_a_split_counts_what_it_holds() -> None:
    assert LayerSplit(3, ((range(2),), (range(2, 3),))).counts == (2, 1)
