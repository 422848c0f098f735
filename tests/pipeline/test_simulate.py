"""Simulation: exact times, the paper's table, and what holds for any schedule and any costs."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import Costs, Extra, Links, Request, Schedule, bubble, generate, simulate
from tests.pipeline.goldens import EXECUTED, FOLDER, METRICS, SETTINGS, Golden
from tests.pipeline.strategies import costs, schedules, times

with (FOLDER / "zero_bubble_table_5.csv").open(encoding="utf-8") as file:
    CELLS = [(row, name) for row in csv.DictReader(file) for name in ("1f1b", "zb-h1", "zb-h2")]
SAME_LIST = [golden for golden in EXECUTED if not golden.file.startswith("zb_zbv")]


def makespan(name: str, p: int, m: int, costs: Costs, chunks: int | None = None) -> object:
    return simulate(generate(name, Request(p, m, chunks)), costs).makespan


@pytest.mark.parametrize(("row", "name"), CELLS)
def test_the_zero_bubble_paper_prints_the_window_bubble(row: dict[str, str], name: str) -> None:
    f, i, w, c = (Fraction(row[key]) for key in ("forward", "input_grad", "weight_grad", "latency"))
    schedule = generate(name, Request(int(row["ranks"]), int(row["microbatches"])))
    result = bubble(simulate(schedule, Costs(f, i, w, links=Links(c))))
    assert f"{float(result.longest_window):.4f}" == f"{float(row[name]):.4f}"


def test_all_36_cells_of_the_table_are_read() -> None:
    assert len(CELLS) == 36


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("golden", SAME_LIST, ids=lambda golden: golden.file)
def test_idle_times_are_those_measured_on_the_packages_lists(golden: Golden, setting: str) -> None:
    theirs = METRICS[golden.file][setting]
    result = simulate(generate(golden.name, golden.request), SETTINGS[setting])
    assert result.makespan == theirs["makespan"]
    assert (result.rank_end.max() - result.work).tolist() == theirs["idle"]
    window = result.rank_end - result.rank_start - result.work
    assert window.tolist() == theirs["own_window_idle"]
    assert round(float(bubble(result).of_makespan), 6) == theirs["bubble_ratio"]


LATENCY = {  # makespan at c = 0, 1/2 and 1 for p = 4, m = 8, all times 1
    "gpipe": (33, 36, 39),
    "1f1b": (33, 41, 49),
    "eager-1f1b": (33, 36, 39),
    "interleaved-1f1b": (57, 64, 71),
    "zb-h1": (27, 33, 41),
    "zb-h2": (27, 28.5, 30),
    "zbv": (51, 57.5, 65),
    "v-half": (53, 64, 79),
    "v-min": (59, 79, 99),
    "dualpipev": (54, 64, 75),
}


@pytest.mark.parametrize("name", LATENCY)
def test_schedules_pay_for_latency_very_differently(name: str) -> None:
    latencies = (0, Fraction(1, 2), 1)
    paid = tuple(makespan(name, 4, 8, Costs(links=Links(c))) for c in latencies)
    assert paid == LATENCY[name]


@given(schedules(), costs())
def test_a_makespan_is_at_least_any_ranks_work_and_the_longest_chain(
    case: tuple[Schedule, Request], costs: Costs
) -> None:
    result = simulate(case[0], costs)
    assert result.makespan >= max(result.ticks.number(each) for each in result.work.tolist())
    # Any microbatch passes all stages forward, and its gradient passes them back.
    alone = replace(costs, overlap=None, all_reduce=0, optimizer=0, is_recompute_early=False)
    whole = costs.forward + costs.input_grad  # type: ignore[operator]
    if costs.overlap is None and not costs.is_recompute_early:
        assert simulate(case[0], alone).makespan >= case[0].placement.num_stages * whole


@given(schedules(), costs(), st.sampled_from(("forward", "input_grad", "weight_grad", "latency")),
       times)  # fmt: skip
def test_no_time_that_grows_makes_a_step_shorter(
    case: tuple[Schedule, Request], costs: Costs, name: str, more: Fraction
) -> None:
    if name == "latency":
        links = replace(costs.links, latency=costs.links.latency + more)  # type: ignore[operator]
        longer = replace(costs, links=links)
    else:
        longer = replace(costs, **{name: getattr(costs, name) + more})
    assert simulate(case[0], longer).makespan >= simulate(case[0], costs).makespan


@given(schedules())
def test_each_stage_runs_each_microbatch_forward_and_back_once(
    case: tuple[Schedule, Request],
) -> None:
    schedule, _ = case
    seen = Counter(
        (part.direction, part.stage, part.microbatch, part.kind.name)
        for actions in schedule
        for action in actions
        for part in action.each
    )
    assert set(seen.values()) == {1}
    cells = {key[:3] for key in seen}
    assert len(cells) == schedule.placement.rank_of.size * schedule.microbatches_each_way
    for cell in cells:
        kinds = {kind for *where, kind in seen if tuple(where) == cell}
        assert kinds in ({"F", "B"}, {"F", "I", "W"})


def test_fractions_stay_exact_and_floats_stay_floats() -> None:
    assert makespan("1f1b", 2, 2, Costs(Fraction(1, 3), Fraction(1, 7), 0)) == Fraction(10, 7)
    assert makespan("1f1b", 2, 2, Costs(0.1, 0.2, 0.3)) == pytest.approx(1.8)


def test_times_too_large_for_64_bits_stay_exact() -> None:
    huge = 10**30 + 1
    assert makespan("1f1b", 20, 20, Costs(huge, huge, huge)) == 39 * 3 * huge
    assert makespan("1f1b", 2, 2, Costs(huge, huge, huge)) == 3 * 3 * huge


def test_a_slow_stage_sets_the_pace() -> None:
    assert makespan("gpipe", 3, 4, Costs((1, 5, 1), 0, 0)) == 1 + 4 * 5 + 1


def test_microbatches_may_take_different_times() -> None:
    by_microbatch = ((1, 2, 3), (3, 2, 1))
    # Stage 1 starts when the first forward of stage 0 has ended, and never waits again.
    assert makespan("gpipe", 2, 3, Costs(by_microbatch, 0, 0)) == 1 + 3 + 2 + 1


def test_an_overlapped_pair_takes_its_own_time() -> None:
    assert makespan("dualpipev", 1, 2, Costs(overlap=2)) == 11
    assert makespan("dualpipev", 1, 2, Costs()) == 12


def test_bandwidth_adds_to_latency() -> None:
    links = Links(latency=1, message_bytes=6, bandwidth=4)
    assert makespan("gpipe", 2, 1, Costs(links=links)) == 6 + 2 * Fraction(5, 2)


def test_each_edge_has_its_own_latency() -> None:
    forward_only = Links(latency=((0, 7), (1, 0)))
    assert makespan("gpipe", 2, 1, Costs(links=forward_only)) == 6 + 7 + 1


def test_two_stages_on_one_rank_send_no_message() -> None:
    costs = Costs(links=Links(latency=10))
    assert makespan("zbv", 1, 1, costs) == 6


def test_a_blocking_message_holds_its_sender() -> None:
    free, blocking = (Costs(links=Links(1, is_blocking=each)) for each in (False, True))
    # Rank 0 is held after its first forward, rank 1 after its first backward.
    assert makespan("gpipe", 2, 2, free) == 11
    assert makespan("gpipe", 2, 2, blocking) == 13


def test_recomputation_is_hidden_where_it_may_run_early() -> None:
    late, early = (Costs(recompute=1, is_recompute_early=each) for each in (False, True))
    # Stage 0 recomputes while stage 1 is still at its backward; stage 1 has nothing to wait for.
    assert makespan("gpipe", 2, 1, late) == 8
    assert makespan("gpipe", 2, 1, early) == 7


def test_the_embedding_and_the_loss_belong_to_the_first_and_the_last_stage() -> None:
    costs = Costs(embedding=Extra(1, 0, 10), loss=Extra(2, 20, 0))
    assert makespan("gpipe", 2, 1, costs) == 6 + 33
    assert makespan("gpipe", 1, 1, costs) == 3 + 33
    result = simulate(generate("zb-h1", Request(2, 2)), costs)
    assert result.work.tolist() == [6 + 2 * 11, 6 + 2 * 22]


def test_gradients_are_reduced_beside_the_work_and_the_optimizer_waits_for_all() -> None:
    two_chunks = generate("looped-bfs", Request(1, 1, 2))
    # 0F0 1F0 1B0 0B0, each unit: stage 1 is reduced from 4 to 9, then stage 0 from 9 to 14.
    assert simulate(two_chunks, Costs(all_reduce=5)).makespan == 14
    result = simulate(generate("gpipe", Request(2, 1)), Costs(optimizer=3))
    assert result.makespan == 9
    alone = replace(Costs(), optimizer=3, is_optimizer_synchronous=False)
    assert simulate(generate("gpipe", Request(2, 1)), alone).rank_end.tolist() == [9, 7]


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        (Costs(forward=(1, 2, 3)), "the times of forward do not fit 2 stages and 4 microbatches; "
                                   "give one number, one per stage, or one per stage and "
                                   "microbatch"),
        (Costs(links=Links(latency=((1, 2, 3),))), "the latency of links needs one number or a "
                                                   "table of 2 x 2 ranks; it has the shape 1 x 3"),
    ],
)  # fmt: skip
def test_costs_of_other_sizes_are_refused(costs: Costs, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        makespan("1f1b", 2, 4, costs)
    assert str(error.value) == sentence
