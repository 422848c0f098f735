"""Sizes that a context parallel form can cut are taken, others refused with what would work."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.runtime.job.shards import FORMS, ContextSizes, places


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cp", [1, 2, 4])
def test_sizes_that_fit_are_taken(form: str, cp: int) -> None:
    assert ContextSizes(form, cp=cp, seq_len=16, heads=8, kv_heads=4).cp == cp


@pytest.mark.parametrize("form", FORMS)
def test_one_rank_takes_any_length_and_holds_it_whole(form: str) -> None:
    assert ContextSizes(form, cp=1, seq_len=7, heads=3, kv_heads=1).seq_len == 7
    assert places(form, seq_len=7, rank=0, cp=1) == (range(7),)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        (
            ("ring", 4, 20, 8, 8),
            "ring over cp=4 cuts a sequence into 8 equal pieces, which 20 cannot be cut into; "
            "lengths that can: 24, 32, 40, 48, …",
        ),
        (
            ("ring-two-pass", 4, 18, 8, 8),
            "ring-two-pass over cp=4 cuts a sequence into 4 equal pieces, which 18 cannot be cut "
            "into; lengths that can: 20, 24, 28, 32, …",
        ),
        (
            ("ulysses", 3, 12, 8, 4),
            "ulysses gives each of cp=3 ranks whole heads, and 3 does not divide 8 heads and 4 KV "
            "heads; sizes that do: 1, 2, 4; other forms take any: ring, ring-two-pass, all-gather",
        ),
        (
            ("spiral", 2, 16, 8, 8),
            "there is no context parallel form 'spiral'; there are "
            "ring, ring-two-pass, ulysses, all-gather",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    sizes: tuple[str, int, int, int, int], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        ContextSizes(*sizes)
    assert str(refused.value) == sentence
