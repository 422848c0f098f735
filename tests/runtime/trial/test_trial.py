"""A trial of collectives on local ranks, and what cannot be tried."""

from __future__ import annotations

import pytest

from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError
from serried.runtime.trial.report import RankOutcome, TrialOutcome
from serried.runtime.trial.settings import CollectiveTrial, TrialSettings
from serried.runtime.trial.trial import try_locally

FOUR = PlacedGroup.first(4, gpus_per_node=2)


def test_ranks_of_this_host_try_one_collective_after_another() -> None:
    trials = (
        CollectiveTrial("all-reduce", "tree", FOUR, 4096, chunks=2),
        CollectiveTrial("all-to-all", "hierarchical", PlacedGroup((1, 2), (0, 1)), 4096),
    )
    report = try_locally(TrialSettings(trials, world_size=4, device="cpu"))
    assert [each.wrong for each in report.outcomes] == [(), ()]
    assert [[one.rank for one in each.ranks] for each in report.outcomes] == [
        [0, 1, 2, 3],
        [1, 2],
    ]
    assert {each.backend for each in report.outcomes} == {"gloo"}
    assert all(each.moves_ns > 0 and each.own_ns > 0 for each in report.outcomes)


def test_a_rank_is_wrong_whose_sums_are_farther_apart_than_their_order_explains() -> None:
    right, far, other = (
        RankOutcome(0, True, 1e-8, 1e-7, 1, 1),
        RankOutcome(1, True, 2e-7, 1e-7, 1, 1),
        RankOutcome(2, False, 0.0, 1e-7, 1, 1),
    )
    assert TrialOutcome(0, "gloo", 4, (right, far, other)).wrong == (1, 2)


def test_no_rank_can_stand_for_a_switch() -> None:
    with pytest.raises(InputError) as refused:
        CollectiveTrial("all-gather", "switch", FOUR, 4096)
    assert str(refused.value) == (
        "all-gather by switch needs a switch that adds, and no rank can stand for it; by messages "
        "it runs as ring, recursive or hierarchical"
    )


def test_attention_is_not_tried_by_messages_alone() -> None:
    with pytest.raises(InputError, match="serried train --cp 2 runs it with a model"):
        CollectiveTrial("attention", "ring", FOUR, 4096)


def test_shares_are_equal_where_torch_needs_them_to_be() -> None:
    assert CollectiveTrial("all-gather", "recursive", PlacedGroup.first(3), 16).elements == 6


def test_a_wait_of_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="timeout=0; it is above zero"):
        TrialSettings((), 2, timeout_s=0)
