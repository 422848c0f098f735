"""The Schedule view's question: sizes, times of a rank or of a stage, and refusals by field."""

from __future__ import annotations

import json
import shlex
from fractions import Fraction

import pytest

from serried.errors import InputError
from serried.pipeline import ENTRIES, simulate
from serried.views.cli.schedule import schedule
from serried.views.sentences import say
from serried.views.web.schedule.query import (
    FIELDS,
    MOST_CELLS,
    SLOW,
    ScheduleQuery,
    field_of,
    read_schedule_query,
)
from tests.conftest import Call

LARGEST = {"stages": "64", "microbatches": "1024", "chunks": "8"}


def query(**words: str) -> ScheduleQuery:
    return read_schedule_query({name: [word] for name, word in words.items()})


def refusal(**words: str) -> InputError:
    with pytest.raises(InputError) as raised:
        made = query(**words)
        schedule = made.schedule()
        simulate(schedule, made.costs_of(schedule))
    return raised.value


def test_nothing_asked_is_1f1b_of_four_ranks() -> None:
    asked = query()
    schedule = asked.schedule()
    assert (asked.name, schedule.num_ranks, schedule.num_microbatches) == ("1f1b", 4, 8)
    assert asked.options(schedule) == "--stages 4 --microbatches 8"


def test_every_word_is_called_as_the_option_is() -> None:
    options = {word.removeprefix("--") for param in schedule.params for word in param.opts}
    words = {"name", *FIELDS} - {"of"}  # the command line's times are of a stage
    assert {word.replace("_", "-") for word in words} <= options


@pytest.mark.parametrize(
    ("name", "parts"), [("1f1b", 1), ("zbv", 2), ("looped-bfs", 3), ("dualpipe", 1), ("chimera", 1)]
)
def test_times_of_a_rank_are_shared_among_its_stages(name: str, parts: int) -> None:
    asked = query(name=name, chunks="3", forward="2", memory_limit="6")
    schedule = asked.schedule()
    assert asked.parts(schedule) == parts
    assert asked.costs_of(schedule).forward == Fraction(2, parts)
    assert asked.limit_of(schedule) == 6 * parts
    works = simulate(schedule, asked.costs_of(schedule)).ticks
    assert works.number(simulate(schedule, asked.costs_of(schedule)).work[0]) == 8 * 4


def test_times_of_a_stage_are_as_on_the_command_line() -> None:
    asked = query(name="zbv", of="stage", forward="2", memory_limit="6")
    schedule = asked.schedule()
    assert (asked.costs_of(schedule).forward, asked.limit_of(schedule)) == (2, 6)


def test_a_time_for_each_stage_is_shared_too() -> None:
    asked = query(name="zbv", stages="2", forward="1,2,3,4")
    assert asked.costs_of(asked.schedule()).forward == (Fraction(1, 2), 1, Fraction(3, 2), 2)


@pytest.mark.parametrize("name", ["1f1b", "zbv", "interleaved-1f1b", "auto"])
def test_the_options_give_the_same_answer_on_the_command_line(serried: Call, name: str) -> None:
    asked = query(name=name, chunks="3", latency="1/2", weight_grad="0.7", memory_limit="5")
    schedule = asked.schedule()
    words = shlex.split(asked.options(schedule))
    shown = serried("schedule", name, *words, "--format", "json")
    assert shown.code == 0, shown.err
    document = json.loads(shown.out)
    assert document["actions"] == [schedule.texts(rank) for rank in range(4)]
    makespan = simulate(schedule, asked.costs_of(schedule)).makespan
    assert document["makespan"] == pytest.approx(float(makespan))


def test_chunks_and_groups_are_asked_only_of_schedules_that_have_them() -> None:
    for name, entry in ENTRIES.items():
        asked = query(name=name, chunks="4", group="4").asked
        assert asked.chunks == (None if entry.chunks else 4)
        assert asked.group == (4 if entry.takes_group else None)


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
        ({"memory_limit": "0"}, "memory_limit", "memory_limit=0 holds no activation"),
        ({"of": "node"}, "", "of=node is not known; times are of a rank or of a stage"),
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
