"""Two profiles by name: the numbers of HolisticTraceAnalysis, and means of any number of steps."""

from __future__ import annotations

from collections import Counter

import pytest

from serried.errors import InputError
from serried.trace.gpu.difference import Frequency, compare_gpus
from serried.trace.gpu.steps import steps_counted
from tests.trace.gpu.samples import GOLDEN, sample

FIRST, SECOND = (sample(f"sampled_rank-{rank}.json.gz").ranks[0] for rank in (0, 1))


def test_counts_and_times_of_the_first_step_are_those_of_holistic_trace_analysis() -> None:
    compared = compare_gpus(FIRST, SECOND, ([551], [551]))
    found: Counter[tuple[str, str]] = Counter()
    for row in compared.rows:
        found[row.name, "first_counts"] += int(row.first.count)
        found[row.name, "second_counts"] += int(row.second.count)
        found[row.name, "first_total_duration"] += round(row.first.total_ns / 1000)
        found[row.name, "second_total_duration"] += round(row.second.total_ns / 1000)
    for row in GOLDEN["difference"]:
        for key in ("first_counts", "second_counts", "first_total_duration"):
            assert found[row["name"], key] == row[key], row["name"]
        assert found[row["name"], "second_total_duration"] == row["second_total_duration"]


def test_names_that_one_of_them_has_alone_are_told() -> None:
    rows = compare_gpus(FIRST, SECOND, ([551], [551])).rows
    alone = {row.name for row in rows if row.frequency is Frequency.ONLY_FIRST}
    told = {row["name"] for row in GOLDEN["difference"] if not row["second_counts"]}
    assert told and told <= alone


def test_the_other_way_round_only_the_signs_change() -> None:
    there, back = compare_gpus(FIRST, SECOND), compare_gpus(SECOND, FIRST)
    assert [row.name for row in there.rows] == [row.name for row in back.rows]
    assert [row.more_ns for row in there.rows] == [-row.more_ns for row in back.rows]


def test_a_profile_differs_from_itself_in_nothing() -> None:
    assert {row.more_ns for row in compare_gpus(FIRST, FIRST).rows} == {0.0}


def test_two_steps_are_compared_by_their_mean() -> None:
    one, other, both = (
        {row.name: row.first.total_ns for row in compare_gpus(FIRST, FIRST, (steps, steps)).rows}
        for steps in ([551], [552], [551, 552])
    )
    for name, total in both.items():
        assert total == pytest.approx((one.get(name, 0) + other.get(name, 0)) / 2)


def test_the_step_that_may_be_cut_off_is_not_compared() -> None:
    assert steps_counted(FIRST) == [551]


def test_a_step_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="has no step 7; it has steps 551 to 552"):
        compare_gpus(FIRST, SECOND, ([7], [551]))
