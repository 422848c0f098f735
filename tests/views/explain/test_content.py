"""The files of text: what they may hold, and how their lines become paragraphs."""

from __future__ import annotations

import pytest

from serried.views.explain.content import items, line, localized, paragraphs, table


def test_blank_lines_part_paragraphs_and_other_breaks_become_spaces() -> None:
    assert paragraphs("one\ntwo\n\nthree\n") == ("one two", "three")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("梯度\n先累加", "梯度先累加"),
        ("每个\nrank 一份", "每个 rank 一份"),
        ("变成两步，\nall-gather", "变成两步，all-gather"),
        ("一半（\nZeRO-1）\n再", "一半（ZeRO-1）再"),
        ("发给\nrank 3，\n再等", "发给 rank 3，再等"),
    ],
)
def test_chinese_lines_join_without_a_gap(written: str, read: str) -> None:
    assert paragraphs(written) == (read,)


@pytest.mark.parametrize("broken", ["", "  \n", 3, ["text"]])
def test_a_text_that_is_none_stops_the_reader(broken: object) -> None:
    with pytest.raises(AssertionError, match="not a text"):
        paragraphs(broken)  # type: ignore[arg-type]


def test_a_table_and_a_list_are_told_apart() -> None:
    with pytest.raises(AssertionError, match="not a table"):
        table(["text"])
    with pytest.raises(AssertionError, match="not a list"):
        items("text")


def test_a_line_is_one_paragraph() -> None:
    assert line("one\ntwo") == "one two"
    with pytest.raises(ValueError, match="too many values"):
        line("one\n\ntwo")


def test_a_part_is_read_once() -> None:
    assert localized("words", "en") is localized("words", "en")
