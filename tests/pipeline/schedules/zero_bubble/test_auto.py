"""The automatic scheduler reaches what others reach, and proves optimal where they do."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import (
    Costs,
    Links,
    Memory,
    Request,
    Schedule,
    faults,
    generate,
    peaks,
    simulate,
)
from serried.pipeline.schedules.zero_bubble.auto import auto


def window(schedule: Schedule, costs: Costs) -> Fraction:
    result = simulate(schedule, costs)
    return Fraction(result.ticks.number((result.rank_end - result.rank_start).max()))


@pytest.mark.parametrize(
    ("p", "m", "f", "i", "w", "c", "limit", "optimum"),
    [
        (2, 4, 1, 1, 1, 0, 2, 13),
        (2, 6, 10, 12, 7, 1, 4, 177),
        (3, 4, 10, 12, 7, 1, 3, 154),
        (3, 6, 10, 12, 7, 2, 6, 191),
        (4, 4, 10, 12, 7, 1, 8, 167),
        (4, 6, 10, 12, 7, 1, 4, 231),
    ],
)
def test_small_cases_are_as_short_as_an_integer_program_proved(
    p: int, m: int, f: int, i: int, w: int, c: int, limit: int, optimum: int
) -> None:
    costs = Costs(f, i, w, links=Links(c))
    assert window(auto(p, m, costs, memory=Memory(limit)), costs) == optimum


MEASURED = Costs(
    (30715, 29233, 29106, 29078, 28850, 28919, 28924, 41678),
    (31308, 29344, 29357, 29455, 29217, 29384, 29354, 38731),
    (18746, 18789, 19062, 19367, 19455, 19967, 20096, 32833),
    links=Links(473),
)
MEASURED_MEMORY = Memory(
    1240 * 16,
    (943, *[1240] * 6, 1071),
    (-533, *[-688] * 6, -588),
    (-410, *[-552] * 6, -483),
)
EQUAL = Costs(29850, 29767, 18868, links=Links(466))


@pytest.mark.parametrize(
    ("p", "m", "costs", "memory", "reached"),
    [
        (4, 12, Costs(5, 6, 4), Memory(10, 2, -1, -1), 193),
        (4, 12, Costs(5, 6, 4), Memory(14, 2, -1, -1), 183),
        (4, 12, Costs(5478, 5806, 3534, links=Links(200)), Memory(32, 2, -1, -1), 178898),
        (8, 32, MEASURED, MEASURED_MEMORY, 3623744),
        (8, 32, EQUAL, Memory(3720 * 16, 3720, -2048, -1672), 2517463),
    ],
)
def test_windows_are_no_longer_than_the_zero_bubble_papers_scheduler_finds(
    p: int, m: int, costs: Costs, memory: Memory, reached: int
) -> None:
    assert window(auto(p, m, costs, memory=memory), costs) <= reached


@pytest.mark.parametrize(
    ("limit", "bubble"),
    [(8, 10.6), (10, 9.2), (12, 7.9), (14, 6.6), (16, 5.3), (20, 2.6), (24, 0.9)],
)
def test_memory_buys_time(limit: int, bubble: float) -> None:
    shortest = window(auto(8, 32, EQUAL, memory=Memory(limit)), EQUAL)
    work = 32 * (29850 + 29767 + 18868)
    assert round(100 * float(1 - Fraction(work, shortest)), 1) <= bubble


@given(
    st.integers(1, 5),
    st.integers(1, 10),
    st.lists(st.integers(1, 9), min_size=15, max_size=15),
    st.integers(1, 8),
    st.integers(0, 3),
)
def test_any_stage_times_keep_the_limit_and_beat_the_named_schedules(
    p: int, m: int, times: list[int], limit: int, latency: int
) -> None:
    f, i, w = times[:p], times[5 : 5 + p], times[10 : 10 + p]
    costs = Costs(f, i, w, links=Links(latency))
    schedule = auto(p, m, costs, memory=Memory(limit))
    assert not list(faults(schedule))
    assert peaks(schedule).to_weight.max() <= limit
    for name in ("zb-h1", "zb-h2"):
        if m >= 2 * p - 1:
            other = generate(name, Request(p, m))
            if peaks(other).to_weight.max() <= limit:
                assert window(schedule, costs) <= window(other, costs)


def test_a_step_of_microbatches_of_different_times_is_planned_by_their_mean() -> None:
    costs = Costs(forward=((1, 3), (1, 3)))
    assert not list(faults(auto(2, 2, costs)))


@pytest.mark.parametrize(
    ("memory", "sentence"),
    [
        (Memory(0), "a memory limit of 0 cannot be; one microbatch on rank 0 takes 1"),
        (Memory((2, 3), 3, -1, -2), "a memory limit of 2 cannot be; one microbatch on rank 0 takes "
                                    "3"),
        (Memory(4, 2, -1, 0), "memory of 2, -1 and 0 for F, I and W on rank 0 cannot be; a forward "
                              "takes some and its two halves let go of all of it"),
        (Memory((4, 4, 4)), "the memory of limit has 3 numbers for 2 ranks; give one, or one for "
                            "each"),
    ],
)  # fmt: skip
def test_memory_that_cannot_be_is_refused(memory: Memory, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        auto(2, 4, memory=memory)
    assert str(error.value) == sentence
