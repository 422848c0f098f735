"""The Schedule view's question: sizes, times of a rank or of a stage, and refusals by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.pipeline.request import ScheduleRequest
from serried.views.cli.schedule import schedule
from serried.views.sentences import say
from serried.views.web.schedule.query import (
    FIELDS,
    MOST_CELLS,
    SLOW,
    field_of,
    read_schedule_query,
)

LARGEST = {"stages": "64", "microbatches": "1024", "chunks": "8"}


def query(**words: str) -> ScheduleRequest:
    return read_schedule_query({name: [word] for name, word in words.items()})


def refusal(**words: str) -> InputError:
    with pytest.raises(InputError) as raised:
        query(**words).measured()
    return raised.value


def test_nothing_asked_is_1f1b_of_four_ranks_and_times_of_a_rank() -> None:
    assert query() == ScheduleRequest("1f1b", 4, 8, is_of_rank=True)


def test_every_word_is_called_as_the_option_is() -> None:
    options = {word.removeprefix("--") for param in schedule.params for word in param.opts}
    assert {word.replace("_", "-") for word in ("name", *FIELDS)} <= options


def test_no_address_opens_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("0F0,0B0\n")
    assert "there is no schedule" in str(refusal(name=str(file), stages="1", microbatches="1"))


@pytest.mark.parametrize(
    ("words", "field", "sentence"),
    [
        ({"name": "zb-h2", "microbatches": "4"}, "microbatches", "it needs at least 7"),
        ({"stages": "0"}, "stages", "1f1b with 0 ranks cannot be; it needs at least 1"),
        ({"name": "hanayo", "chunks": "3"}, "chunks", "it needs a multiple of 2"),
        ({"name": "interleaved-1f1b", "group": "1"}, "group", "in groups of 1 cannot be"),
        ({"forward": "-1"}, "forward", "forward=-1 cannot be; it needs a number of 0 or more"),
        ({"input_grad": "nan"}, "input_grad", "input-grad=nan is no number"),
        ({"weight_grad": "a"}, "weight_grad", "--weight-grad takes numbers"),
        ({"latency": "1,2"}, "latency", "--latency takes one number; it got 2"),
        ({"forward": "1,2,3"}, "forward", "the times of forward do not fit 4 stages"),
        ({"microbatches": "1.5"}, "microbatches", "microbatches=1.5 is not a whole number"),
        ({"memory_limit": "0"}, "memory_limit", "memory-limit=0 holds no activation"),
        ({"of": "node"}, "", "of=node is not known; times are of a rank or of a stage"),
        ({"chunks": "2"}, "chunks", "1f1b with 2 chunks cannot be"),
        ({"name": "1f2b"}, "", "there is no schedule '1f2b'"),
    ],
)
def test_what_cannot_be_is_said_of_the_field_it_was_typed_into(
    words: dict[str, str], field: str, sentence: str
) -> None:
    error = refusal(**words)
    assert sentence in str(error)
    assert field_of(error) == field
    assert any("\u4e00" <= letter <= "\u9fff" for letter in say(error, "zh"))


def test_the_largest_that_is_drawn_has_a_million_actions() -> None:
    assert MOST_CELLS == 64 * 1024 * 8
    error = refusal(name="interleaved-1f1b", **LARGEST | {"chunks": "9"})
    assert "more than this page draws; the product of the three is at most 524288" in str(error)


@pytest.mark.parametrize("name", SLOW)
def test_schedules_that_are_searched_for_have_a_lower_bound(name: str) -> None:
    assert f"at most {SLOW[name]}" in str(refusal(name=name, stages="64", microbatches="1024"))
