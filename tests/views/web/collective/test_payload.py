"""What the page gets of a collective is the steps executed, in the window that it asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.views.web.collective.payload import collective_payload
from serried.views.web.collective.query import read_collective_query
from serried.views.web.wire.payload import unpack


def asked(**words: object) -> tuple[dict[str, Any], dict[str, Any]]:
    texts = {name.removesuffix("_"): [str(value)] for name, value in words.items()}
    return unpack(collective_payload(read_collective_query(texts), "en"))


def test_every_rank_ends_with_every_contribution() -> None:
    header, columns = asked(name="all-reduce", ranks=6, algorithm="ring", gpus_per_node=4)
    shape = (header["num_steps"] + 1, header["num_ranks"] + header["num_nodes"], -1)
    held = columns["held"].reshape(shape)
    assert (held[0, :6] == 1).all()
    assert (held[-1, :6] == 6).all()


def test_a_window_is_that_part_of_the_whole() -> None:
    _, whole = asked(name="all-reduce", ranks=6, algorithm="ring")
    header, part = asked(name="all-reduce", ranks=6, algorithm="ring", from_=3, to=5)
    assert (header["first"], header["end"]) == (3, 5)
    bounds = whole["move:bounds"][3:6]
    for name in ("source", "target", "first", "count", "reduces", "bytes"):
        column = whole[f"move:{name}"][bounds[0] : bounds[-1]]
        assert np.array_equal(part[f"move:{name}"], column)
    cells = len(whole["held"]) // 11
    assert np.array_equal(part["held"], whole["held"][3 * cells : 6 * cells])
    assert np.array_equal(part["step:until"], whole["step:until"])


def test_a_group_of_a_layout_is_asked_for_by_kind_and_rank() -> None:
    words = {"world_size": 16, "tp": 2, "kind": "dp", "rank": 3}
    header, columns = asked(name="all-gather", algorithm="ring", **words)
    assert columns["rank"].tolist() == [1, 3, 5, 7, 9, 11, 13, 15]
    assert columns["node"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert header["num_nodes"] == 2


def test_large_groups_come_without_what_is_held() -> None:
    header, columns = asked(name="all-reduce", ranks=4096, algorithm="ring", to=8)
    assert "held" not in columns
    assert len(columns["step:seconds"]) == header["num_steps"] == 8190
    assert header["end"] >= 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"from": "5", "to": "5"}, "from=5 to=5 holds no step"),
        ({"kind": "dp", "world_size": "8", "rank": "99"}, "99"),
        ({"kind": "none", "world_size": "8"}, "none"),
        ({"bytes": "x"}, "bytes=x is not a size"),
    ],
)
def test_a_question_that_cannot_be_is_refused(words: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_collective_query({name: [text] for name, text in words.items()})
