"""The table of sizes: a row says the same as ``Sizes``, reads what is meant, and refuses else."""

from __future__ import annotations

from dataclasses import fields

import pytest

from serried.errors import InputError
from serried.mesh.sizes import PLACES, SIZES, TABLE, Sizes
from tests.views.explain.reader import has_chinese


def test_the_rows_are_the_fields_of_sizes_with_their_defaults() -> None:
    names = [each.name for each in fields(Sizes) if each.name != "options"]
    assert list(SIZES) == names
    assert Sizes.of({"world_size": 16}, {}) == Sizes(16)


@pytest.mark.parametrize("name", TABLE)
def test_every_row_has_its_option_and_help_in_both_languages(name: str) -> None:
    row = TABLE[name]
    assert row.name == name
    assert row.option.startswith("--")
    assert row.help["en"].endswith(".") and row.help["zh"].endswith("。")
    assert has_chinese(row.help["zh"])
    assert set(row.label) == {"en", "zh"}


@pytest.mark.parametrize(
    ("text", "value"), [("8", 8), (" 8 ", 8), ("+8", 8), ("-8", -8), ("007", 7), ("0", 0)]
)
def test_a_size_is_read_from_its_digits(text: str, value: int) -> None:
    assert SIZES["tp"].read(text) == value


def test_lists_and_orders_come_back_as_they_are_written() -> None:
    for name, text in (("gpus_per_node", "4,1"), ("layers", "10,12"), ("order", "tp-dp-pp")):
        assert TABLE[name].write(TABLE[name].read(text)) == text


@pytest.mark.parametrize("text", ["", "abc", "1.5", "٣", "1_0", "0x8", "- 8", "8,8"])
def test_what_is_no_whole_number_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InputError) as caught:
        SIZES["tp"].read(text)
    assert str(caught.value) == f"tp={text} is not a whole number; one such as 16 is"


def test_a_number_beyond_any_job_is_refused_with_the_bound() -> None:
    with pytest.raises(InputError) as caught:
        SIZES["dp"].read("1" * 5000)
    assert str(caught.value) == f"dp={'1' * 40}… is too large; it is at most {2**63 - 1}"
    with pytest.raises(InputError, match=r"it is at most 1000000$"):
        PLACES["gpus_per_node"].read(f"8,{2**63}")


@pytest.mark.parametrize("name", ["tp", "pp", "cp", "dp", "ep", "etp"])
def test_a_size_below_its_bound_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}=0; a size is at least 1"):
        Sizes.of({"world_size": 8, name: 0}, {})


def test_a_stage_of_zero_is_from_none_to_three() -> None:
    assert [Sizes(8, zero=stage).zero for stage in range(4)] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="ZeRO stage 4 is not known; stages are 0 to 3"):
        Sizes(8, zero=4)
