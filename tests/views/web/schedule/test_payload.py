"""A schedule's payload: every action, idle interval and step of the path, as Python has them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from serried.action import ActionKind
from serried.pipeline import ENTRIES, IdleCause, critical_path, idle, peaks
from serried.pipeline.request import ScheduleRequest
from serried.views.colours import ACTIONS
from serried.views.web.schedule.payload import SENSITIVE, schedule_payload, schedules_answer
from serried.views.web.schedule.query import read_schedule_query
from tests.views.web.reader import Message, read

ALL = [name for name in ENTRIES if name != "auto"] + ["auto"]
SIZES = {"stages": "4", "microbatches": "8", "latency": "1/3", "memory_limit": "3"}


def query(**words: str) -> ScheduleRequest:
    return read_schedule_query({name: [word] for name, word in words.items()})


def message(**words: str) -> Message:
    return read(schedule_payload(query(**words)))


def texts(sent: Message) -> list[list[str]]:
    """Returns each rank's entries as text, a pair as two."""
    columns = sent.columns
    way = columns.get("direction")
    names = [
        f"{'' if way is None else f'{way[i]}:'}{stage}{ActionKind(kind).name}{microbatch}"
        for i, (stage, kind, microbatch) in enumerate(
            zip(columns["stage"], columns["kind"], columns["microbatch"], strict=True)
        )
    ]
    return [names[a:b] for a, b in pairwise(columns["bounds"])]


@pytest.mark.parametrize("name", ALL)
def test_every_action_is_sent_in_its_rank_s_order(name: str) -> None:
    asked = query(name=name, **SIZES)
    schedule = asked.schedule()
    sent = read(schedule_payload(asked))
    expected = [[str(part) for action in rank for part in action.each] for rank in schedule]
    assert texts(sent) == expected
    assert sent.header["num_actions"] == sum(map(len, schedule))


@pytest.mark.parametrize("name", ["1f1b", "zbv", "dualpipe"])
def test_times_are_exact_in_ticks(name: str) -> None:
    asked = query(name=name, **SIZES)
    simulation = asked.measured().simulation
    sent = read(schedule_payload(asked))
    per_unit = sent.header["ticks_per_unit"]
    assert sent.columns["start"].dtype == np.int32
    assert Fraction(int(sent.columns["end"].max()), per_unit) == simulation.makespan
    assert sent.columns["start"].tolist() == simulation.start.tolist()


def test_times_of_too_many_ticks_are_sent_in_units() -> None:
    sent = message(forward="1.0000000001", latency="1/3")
    assert sent.columns["end"].dtype == np.float64
    assert sent.header["ticks_per_unit"] == 1
    assert sent.columns["end"].max() == pytest.approx(sent.header["makespan"])


@pytest.mark.parametrize("name", ALL)
def test_causes_of_idle_time_add_up_to_all_of_it(name: str) -> None:
    asked = query(name=name, **SIZES)
    simulation = asked.measured().simulation
    header, columns = (sent := read(schedule_payload(asked))).header, sent.columns
    causes = header["idle"]["causes"]
    assert sum(causes.values()) == pytest.approx(header["idle"]["total"])
    length = (columns["idle:end"] - columns["idle:start"]) / header["ticks_per_unit"]
    for cause in IdleCause:
        assert length[columns["idle:cause"] == cause].sum() == pytest.approx(causes[cause.name])
    work = sum(simulation.ticks.number(each) for each in simulation.work)
    assert float(work) + header["idle"]["total"] == pytest.approx(4 * header["makespan"])


def test_idle_intervals_stand_rank_by_rank_with_what_they_wait_for() -> None:
    asked = query(**SIZES)
    found = idle(asked.measured().simulation, memory_limit=3)
    columns = read(schedule_payload(asked)).columns
    bounds = columns["idle:bounds"]
    assert (bounds[0], bounds[-1]) == (0, len(found))
    for rank, (first, last) in enumerate(pairwise(bounds)):
        assert set(found.rank[first:last].tolist()) == {rank}
    assert columns["idle:source"].tolist() == found.waits_for.tolist()


@pytest.mark.parametrize("name", ["1f1b", "zbv", "dualpipe", "chimera", "interleaved-1f1b"])
def test_the_critical_path_reaches_from_start_to_end_through_marked_actions(name: str) -> None:
    asked = query(name=name, **SIZES)
    steps = critical_path(asked.measured().simulation)
    sent = read(schedule_payload(asked))
    columns = sent.columns
    assert columns["path:start"][0] == 0
    assert columns["path:end"][-1] == pytest.approx(sent.header["makespan"])
    assert columns["path:start"][1:] == pytest.approx(columns["path:end"][:-1])
    names = [name for rank in texts(sent) for name in rank]
    assert [names[entry] for entry in columns["path:entry"]] == [str(s.action) for s in steps]
    runs = {names[e] for e, m in zip(columns["path:entry"], columns["path:message"], strict=True)
            if not m}  # fmt: skip
    assert {names[e] for e in np.flatnonzero(columns["critical"])} == runs


@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "zbv"])
def test_activations_held_reach_the_peaks_and_fall_to_none(name: str) -> None:
    asked = query(name=name)
    sent = read(schedule_payload(asked))
    most = peaks(asked.schedule())
    for until in ("to_weight", "to_input"):
        held = sent.columns[f"held:{until}"]
        ranks = [held[a:b] for a, b in pairwise(sent.columns["bounds"])]
        assert [int(rank.max()) for rank in ranks] == getattr(most, until).tolist()
        assert {int(rank[-1]) for rank in ranks} == {0}
        assert sent.header["peak"][until] == max(getattr(most, until))


def test_an_action_names_the_one_whose_message_it_waits_for() -> None:
    sent = message()
    names = [name for rank in texts(sent) for name in rank]
    needs = {names[i]: names[s] for i, s in enumerate(sent.columns["source"]) if s >= 0}
    assert needs["1F0"] == "0F0"
    assert needs["2B5"] == "3B5"
    assert not {name for name in needs if name.startswith("0F")}


def test_closed_forms_stand_where_they_are_exact() -> None:
    forms = message().header["closed_forms"]
    assert {
        "quantity": "IDLE",
        "formula": "(p - 1)(f + b)",
        "value": 9.0,
        "region": "c = 0",
    } in forms
    assert message(name="auto").header["closed_forms"] == []


def test_the_command_asks_for_the_same_in_as_few_options() -> None:
    sizes = "--stages 4 --microbatches 8"
    assert message().header["options"] == sizes
    assert message(name="zbv").header["options"] == f"{sizes} --of rank"
    assert message(name="zbv", of="stage", forward="1/2").header["options"] == (
        f"{sizes} --forward 1/2"
    )


def test_what_latency_adds_is_said_of_schedules_small_enough_to_try() -> None:
    assert message().header["latency_adds"] == 16
    assert message(microbatches=str(SENSITIVE // 4)).header["latency_adds"] is None


def test_the_view_is_offered_every_schedule_and_the_colour_of_every_kind() -> None:
    offered = schedules_answer()
    assert [each["name"] for each in offered["schedules"]] == list(ENTRIES)
    assert {each["name"]: each["colour"] for each in offered["kinds"]} == {
        kind.name: ACTIONS[kind]
        for kind in (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)
    }
    assert offered["causes"] == [cause.name for cause in IdleCause]
