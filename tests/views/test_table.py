"""Tables of the terminal: nothing is lost, numbers stay whole, columns stand below headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from serried.views.table import Table, folds

TEXTS = st.text("ab 1每组rank，。", max_size=30)


def table(*rows: tuple[str, ...]) -> Table:
    made = Table()
    made.add_column("kind", no_wrap=True)
    made.add_column("groups", justify="right")
    made.add_column("what it carries")
    for row in rows:
        made.add_row(*row)
    return made


def test_columns_are_as_wide_as_they_need() -> None:
    assert [*table(("tp", "8", "parts"), ("dp_cp", "16", "gradients")).lines(80)] == [
        "kind   groups  what it carries",
        "tp          8  parts",
        "dp_cp      16  gradients",
    ]


def test_the_widest_column_gives_way_at_its_words() -> None:
    assert [*table(("dp_cp", "8", "gradients: data parallel")).lines(31)] == [
        "kind   groups  what it carries",
        "dp_cp       8  gradients: data",
        "               parallel",
    ]


def test_a_terminal_shows_headings_in_bold() -> None:
    first, second = table(("tp", "8", "parts")).lines(80, bold=True)
    assert first == "\033[1mkind  groups  what it carries\033[0m"
    assert "\033" not in second


def test_a_row_may_leave_its_last_cells_out() -> None:
    assert [*table(("…",)).lines(80)][1] == "…"


@given(TEXTS, st.integers(2, 40))
def test_folding_loses_nothing_and_stays_within_its_width(text: str, width: int) -> None:
    lines = folds(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize("width", [1, 10, 20])
def test_no_number_is_cut_to_fit(width: int) -> None:
    lines = [*table(("dp", "12.5 GB/s", "a long tale of what there is")).lines(width)]
    assert any("12.5 GB/s" in line for line in lines)
