"""Explanations as plain text: wrapped by columns, nothing lost, Chinese marks in place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from serried.frameworks import Sizes, layout
from serried.views.explain.explanation import DIMS, explanation
from serried.views.explain.plain import NEVER_FIRST, as_text, wrap
from serried.views.sentences import LANGUAGES

MEGATRON = layout("megatron", Sizes(64, tp=2, pp=2, cp=2, ep=2))


@pytest.mark.parametrize("width", [40, 72, 100])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_line_is_wider_than_asked_but_addresses(lang: str, width: int) -> None:
    lines = as_text(explanation(MEGATRON, ["cp", "dp", "tp", "pp"], lang=lang), width).splitlines()
    prose = [line for line in lines if "https://" not in line and not line.startswith("=")]
    assert max(map(cell_len, prose[1:])) <= width


@given(width=st.integers(8, 120), dims=st.sets(st.sampled_from(DIMS), min_size=1))
def test_wrapping_loses_nothing(width: int, dims: set[str]) -> None:
    for lang in LANGUAGES:
        for section in explanation(MEGATRON, dims, lang=lang).sections:
            for paragraph in section.paragraphs:
                lines = wrap(paragraph, width)
                assert "".join("".join(lines).split()) == "".join(paragraph.split())


@given(width=st.integers(12, 120))
def test_no_line_begins_with_a_closing_mark(width: int) -> None:
    for section in explanation(MEGATRON, ["cp"], lang="zh").sections:
        for paragraph in section.paragraphs:
            assert [line for line in wrap(paragraph, width) if line[0] in NEVER_FIRST] == []


def test_a_word_wider_than_the_line_stands_alone() -> None:
    assert wrap("a reduce-scatter b", 6) == ["a", "reduce-scatter", "b"]


def test_headings_are_underlined_by_columns() -> None:
    lines = as_text(explanation(MEGATRON, ["tp"], lang="zh"), 80).splitlines()
    assert lines[0] == "张量并行（TP）"
    assert lines[1] == "=" * 14
    assert lines[3:5] == ["切了什么，重复了什么", "-" * 20]


def test_the_reading_list_stands_at_the_end_with_its_addresses() -> None:
    text = as_text(explanation(MEGATRON, ["tp"], lang="en"), 100)
    assert "training with Tensor Parallel\n  https://docs.pytorch.org/" in text
    assert text.splitlines()[-1] == (
        "  https://strint.notion.site/Megatron-LM-86381cfe51184b9c888be10ee82f3812"
    )
