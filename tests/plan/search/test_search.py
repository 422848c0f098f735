from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.errors import InputError
from serried.plan.catalog import cluster_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.job_plan import job_plan
from serried.plan.request import PlanRequest, Recompute
from serried.plan.search.search import SearchResult, search
from serried.plan.search.space import SearchSpace

LLAMA = PlanRequest(model_named("llama3-8b"), cluster_named("h100"), sequence=8192, global_batch=64)


@pytest.fixture(scope="module")
def found() -> SearchResult:
    return search(LLAMA, SearchSpace(16))


def test_pruned_and_exhaustive_searches_rank_alike(found: SearchResult) -> None:
    whole = search(LLAMA, SearchSpace(16), is_pruned=False)
    assert [each.request for each in whole.best] == [each.request for each in found.best]
    assert [each.step_s for each in whole.pareto] == [each.step_s for each in found.pareto]
    assert (whole.num_layouts, whole.num_fitting) == (found.num_layouts, found.num_fitting)


def test_the_best_is_planned_just_as_the_plan_of_its_layout(found: SearchResult) -> None:
    for each in found.best[:3]:
        made = job_plan(each.request)
        assert made.step_s == each.step_s
        assert made.memory.fullest.interval[1] <= made.memory.fullest.card_bytes
        assert sum(each.parts.values()) == pytest.approx(each.step_s)


def test_no_layout_that_fits_is_quicker_than_the_best(found: SearchResult) -> None:
    card = found.best[0].limit
    quickest = min(
        float(np.min(each.step[each.in_use <= card], initial=np.inf)) for each in found.manners
    )
    # Columns take a schedule that splits backward as filling its bubble whole; walked, it does not.
    assert found.best[0].step_s <= 1.05 * quickest
    steps = [each.step_s for each in found.best]
    assert steps == sorted(steps)


def test_each_loser_names_the_part_that_costs_most(found: SearchResult) -> None:
    first, *others = found.best
    assert first.slower_part == ""
    for each in others:
        more = {name: each.parts[name] - first.parts[name] for name in each.parts}
        assert each.slower_s == max(more.values()) == more[each.slower_part]


def test_none_beats_a_layout_of_the_front_in_both(found: SearchResult) -> None:
    steps = [each.step_s for each in found.pareto]
    used = [each.in_use for each in found.pareto]
    assert steps == sorted(steps)
    assert used == sorted(used, reverse=True)
    for manner in found.manners:
        for each in found.pareto:
            assert each.in_use <= each.limit < each.card
            better = (manner.step < each.step_s) & (manner.in_use < each.in_use)
            assert not better.any()


def test_what_fits_nowhere_is_told_by_its_nearest_misses() -> None:
    asked = replace(LLAMA, model=model_named("llama3.1-405b"), global_batch=8)
    none = search(asked, SearchSpace(8))
    assert none.best == none.pareto == ()
    lacks = [each.lacks for each in none.misses]
    assert lacks == sorted(lacks)
    assert lacks[0] > 0


def test_a_batch_that_nothing_divides_is_refused() -> None:
    with pytest.raises(InputError, match="no layout of llama3-8b on 7 GPUs"):
        search(replace(LLAMA, global_batch=5), SearchSpace(7))


def test_progress_counts_up_to_all_manners() -> None:
    seen: list[tuple[int, int, int]] = []
    result = search(LLAMA, SearchSpace(8), progress=lambda *told: seen.append(told))
    assert seen[-1][0] == seen[-1][1]
    assert seen[-1][2] == result.num_layouts


def test_a_layout_shards_over_its_own_replicas_not_those_asked_with(found: SearchResult) -> None:
    alone = search(replace(LLAMA, shard_ranks=1), SearchSpace(16))
    assert [each.step_s for each in alone.best] == [each.step_s for each in found.best]
    assert [each.in_use for each in alone.best] == [each.in_use for each in found.best]


def test_both_orders_of_ranks_are_weighed_where_they_differ(found: SearchResult) -> None:
    orders = {
        (
            manner.request(row).degrees.pp > 1 < manner.request(row).degrees.dp,
            manner.request(row).order,
        )
        for manner in found.manners
        for row in range(0, len(manner.in_use), 7)
    }
    assert orders == {(False, ""), (True, "tp-cp-ep-dp-pp"), (True, "tp-cp-ep-pp-dp")}
    on_one_node = search(LLAMA, SearchSpace(8))
    assert {each.request.order for each in on_one_node.best} == {""}
    deepspeed = search(replace(LLAMA, framework="deepspeed"), SearchSpace(16, zeros=(1,)))
    assert {each.request.order for each in deepspeed.best} == {""}


def test_an_order_that_is_asked_for_is_kept() -> None:
    space = SearchSpace(16, orders=("tp-cp-ep-pp-dp",), pp=(2,))
    kept = search(LLAMA, space)
    assert {each.request.inner for each in kept.best} == {"pp"}


def test_what_lies_nearer_is_quicker_and_what_lies_apart_slower() -> None:
    degrees = Degrees(tp=2, pp=4, dp=8)
    dp, pp = (
        job_plan(replace(LLAMA, degrees=degrees, order=order))
        for order in ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
    )
    assert dp.parts["pp"] > pp.parts["pp"]
    assert dp.parts["dp"] < pp.parts["dp"]
    links = [
        {each.kind: each.link for each in made.traffic if each.kind in ("pp", "dp")}
        for made in (dp, pp)
    ]
    assert links == [{"pp": "rail", "dp": "rail"}, {"pp": "node", "dp": "rail"}]


def test_what_only_fits_with_states_on_the_host_is_found_so() -> None:
    asked = PlanRequest(
        model_named("llama2-70b"), cluster_named("a100-40"), sequence=4096, global_batch=16
    )
    held = search(asked, SearchSpace(16, offloads=("none",), zeros=(1,), cp=(1,)))
    away = search(asked, SearchSpace(16, zeros=(1,), cp=(1,)))
    assert not held.best
    assert {each.request.offload for each in away.best} == {"optimizer"}


def test_nothing_is_offloaded_that_need_not_be(found: SearchResult) -> None:
    assert found.best[0].request.offload == "none"


def test_cheap_modules_are_recomputed_too_and_not_for_nothing(found: SearchResult) -> None:
    kinds = {each.asked.recompute.modules for each in found.manners}
    assert kinds == {(), ("layernorm",)}
    again = next(each for each in found.best if each.request.recompute.modules)
    kept = job_plan(replace(again.request, recompute=Recompute()))
    assert again.in_use < kept.memory.fullest.total
    assert again.step_s > kept.step_s
