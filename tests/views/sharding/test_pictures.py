"""Bars of what each rank holds: filled where its part lies, the same in SVG and in PNG."""

from __future__ import annotations

import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

from serried.plan.model_states import model_states
from serried.plan.precision import RECIPES
from serried.views.sharding.bars import BarsRow, bars_rows
from serried.views.sharding.png import sharding_png
from serried.views.sharding.svg import sharding_svg
from tests.frameworks.asking import asked

FP16 = RECIPES["fp16-adam"]
SVG = "{http://www.w3.org/2000/svg}"


def rows(line: str) -> list[BarsRow]:
    return bars_rows(asked(line), FP16, None)


def drawn(row: BarsRow) -> list[str]:
    """Returns each rank as its number and the parts of P, G and O that are filled."""
    return [
        f"+{each.count}"
        if each.count
        else f"{each.rank}: "
        + " ".join(f"{bar.start:g}-{bar.start + bar.share:g}" for bar in each.bars)
        for each in row.ranks
    ]


def test_each_rank_s_part_lies_behind_the_one_before() -> None:
    (row,) = rows("megatron 8 tp=2 zero=2")
    assert drawn(row) == [
        "0: 0-1 0-0.25 0-0.25",
        "2: 0-1 0.25-0.5 0.25-0.5",
        "4: 0-1 0.5-0.75 0.5-0.75",
        "6: 0-1 0.75-1 0.75-1",
    ]


def test_copies_of_hybrid_shards_fill_the_same_part() -> None:
    (row,) = rows("fsdp 4 sharding_strategy=HYBRID_SHARD devices_per_node=2")
    assert drawn(row) == [
        *("0: 0-0.5 0-0.5 0-0.5", "1: 0.5-1 0.5-1 0.5-1"),
        *("2: 0-0.5 0-0.5 0-0.5", "3: 0.5-1 0.5-1 0.5-1"),
    ]


def test_cuts_over_two_kinds_go_through_the_places_of_both() -> None:
    (row,) = rows("torchtitan 4 cp=2 zero=3")
    assert [text.split()[1] for text in drawn(row)] == ["0-0.25", "0.25-0.5", "0.5-0.75", "0.75-1"]


def test_of_many_ranks_the_first_and_last_are_drawn_and_the_rest_counted() -> None:
    (row,) = rows("megatron 16384 zero=3")
    assert [each.rank for each in row.ranks] == [0, 1, 2, 3, 4, 5, -1, 16382, 16383]
    assert row.ranks[6].count == 16384 - 8
    last = row.ranks[-1].bars[0]
    assert last.start + last.share == 1


def test_experts_have_a_row_and_bars_as_tall_as_their_parameters() -> None:
    layout = asked("megatron 64 tp=4 ep=4 zero=1")
    states = model_states(layout, 44 * 10**9, expert_parameters=32 * 10**9)
    dense, expert = bars_rows(layout, FP16, states)
    assert (dense.weights, expert.weights, len(expert.ranks)) == ("dense", "expert", 4)
    assert dense.ranks[0].bars[2].weight == 1
    assert expert.ranks[0].bars[2].weight == pytest.approx(2 / 3)
    assert dense.ranks[0].bars[0].weight == pytest.approx(2 / 12)


def test_the_svg_outlines_the_whole_and_fills_the_part() -> None:
    layout = asked("megatron 4 zero=1")
    text = sharding_svg(layout, model_states(layout, 10**9), FP16)
    boxes = [
        box for box in ElementTree.fromstring(text).iter(f"{SVG}rect") if box.get("width") == "24"
    ]
    outlined = [box for box in boxes if box.get("stroke")]
    filled = [box for box in boxes if not box.get("stroke")]
    assert len(outlined) == len(filled) == 4 * 3
    shares = [
        float(f.get("height", 0)) / float(o.get("height", 1))
        for o, f in zip(outlined, filled, strict=True)
    ]
    assert shares == pytest.approx([1, 1, 0.25] * 4, rel=0.01)
    assert "ZeRO 1: optimizer state is sharded over dp_cp, 4 ranks; 7.00 GB a rank" in text


def test_the_png_has_the_colours_of_all_three_bars() -> None:
    png = sharding_png(asked("megatron 4 zero=1"), None, FP16)
    width, height = struct.unpack(">II", png[16:24])
    size = struct.unpack(">I", png[33:37])[0]
    lines = np.frombuffer(zlib.decompress(png[41 : 41 + size]), np.uint8).reshape(height, -1)
    pixels = lines[:, 1:].reshape(height, width, 3)
    counted = {
        name: int((pixels == [int(colour[at : at + 2], 16) for at in (1, 3, 5)]).all(2).sum())
        for name, colour in {"P": "#5093c2", "G": "#d47d20", "O": "#38cbbd"}.items()
    }
    # Parameters are whole on all four ranks; of the optimizer, six times as tall, a quarter is.
    assert counted["P"] == counted["G"] > 0
    assert counted["O"] / counted["P"] == pytest.approx(6 / 4, rel=0.1)
