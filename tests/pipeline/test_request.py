"""What is asked of a schedule: read from words, written as options, times of a stage or a rank."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import Costs, Extra, Links
from serried.pipeline.request import ScheduleRequest


def asked(name: str = "1f1b", **given: object) -> ScheduleRequest:
    return ScheduleRequest.of(name, {"stages": 4, "microbatches": 8, **given})


numbers = st.one_of(st.integers(0, 9), st.fractions(0, 9, max_denominator=7))
durations = st.one_of(numbers, st.lists(numbers, min_size=2, max_size=4).map(tuple))
extras = st.builds(Extra, numbers, numbers, numbers)
links = st.builds(
    Links,
    latency=numbers,
    message_bytes=numbers,
    bandwidth=st.none() | numbers.filter(bool),
    is_blocking=st.booleans(),
)
costs = st.builds(
    Costs,
    **dict.fromkeys(("forward", "input_grad", "weight_grad"), durations),
    **dict.fromkeys(("backward", "overlap"), st.none() | durations),
    recompute=durations,
    is_recompute_early=st.booleans(),
    embedding=extras,
    loss=extras,
    links=links,
    all_reduce=durations,
    optimizer=numbers,
)
requests = st.builds(
    ScheduleRequest,
    st.sampled_from(["1f1b", "zbv", "auto"]),
    **dict.fromkeys(("stages", "microbatches", "chunks", "group"), st.none() | st.integers(1, 9)),
    moe_overlap=st.booleans(),
    costs=costs,
    memory_limit=st.none() | numbers,
    weights=st.tuples(numbers, numbers, numbers),
    is_of_rank=st.booleans(),
)


@given(requests)
def test_the_options_of_a_request_ask_for_the_same(request: ScheduleRequest) -> None:
    words: dict[str, object] = {}
    options = iter(request.options())
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        is_flag = name in ("moe_overlap", "recompute_early", "blocking")
        words[name] = True if is_flag else next(options)
    assert ScheduleRequest.of(request.name, words) == request


@pytest.mark.parametrize(
    ("name", "parts"), [("1f1b", 1), ("zbv", 2), ("looped-bfs", 3), ("dualpipe", 1), ("chimera", 1)]
)
def test_times_of_a_rank_are_shared_among_its_stages(name: str, parts: int) -> None:
    chunks = 3 if name == "looped-bfs" else None
    measured = asked(name, chunks=chunks, forward="2", memory_limit="6", of="rank").measured()
    simulation = measured.simulation
    assert simulation.costs.forward == Fraction(2, parts)
    assert measured.memory_limit == 6 * parts
    assert simulation.ticks.number(simulation.work[0]) == 8 * 4


def test_times_are_of_a_stage_where_nothing_else_is_said() -> None:
    measured = asked("zbv", forward="2", memory_limit="6").measured()
    assert (measured.simulation.costs.forward, measured.memory_limit) == (2, 6)


def test_every_time_of_a_stage_is_shared_and_none_of_a_message() -> None:
    words = {"backward": "4", "overlap": 6.0, "recompute": "1,2,3,4", "all_reduce": 8}
    more = {"stages": 2, "of": "rank", "latency": "1", "optimizer": "5"}
    request = asked("zbv", **{**words, **more})
    costs = request.measured().simulation.costs
    assert (costs.backward, costs.overlap, costs.all_reduce) == (2, 3, 4)
    assert costs.recompute == (Fraction(1, 2), 1, Fraction(3, 2), 2)
    assert (costs.links.latency, costs.optimizer) == (1, 5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"stages": "x"}, "stages=x is not a whole number; one such as 16 is"),
        ({"chunks": 1.5}, "chunks=1.5 is not a whole number"),
        ({"latency": "1,2"}, "--latency takes one number; it got 2"),
        ({"memory": "1,0"}, "--memory takes three numbers, for F, I and W"),
        ({"loss": 3}, "--loss takes three numbers, for F, I and W, such as 1,0,2; it got 1"),
        ({"blocking": "perhaps"}, "blocking=perhaps is not a switch; it is true or false"),
        ({"of": "node"}, "of=node is not known; times are of a rank or of a stage"),
    ],
)
def test_what_is_not_of_its_form_is_refused(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        ScheduleRequest.of("1f1b", {"stages": 4, "microbatches": 8, **given})
    assert sentence in str(raised.value)
