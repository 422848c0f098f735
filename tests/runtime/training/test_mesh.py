"""The groups of any rank of a big job, in one process over torch's fake backend."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.runtime.job.settings import ModelSizes, TrainSettings
from tests.runtime.fake_ranks import as_rank

EXPERTS = ModelSizes(experts=8)
SIXTEEN = TrainSettings(world_size=16, tp=2, pp=2, cp=2, sequence_parallel=True)
"""dp 2: ranks 0 to 7 are stage 0, of which 0 to 3 are the first data parallel copy."""


@pytest.mark.parametrize(
    ("settings", "rank", "groups"),
    [
        (
            TrainSettings(world_size=16, tp=2, pp=4),
            5,
            {"pp": (1, 5, 9, 13), "dp": (5, 7), "tp": (4, 5)},
        ),
        (
            TrainSettings(world_size=16, tp=2, pp=4, framework="internlm"),
            5,
            {"pp": (1, 3, 5, 7), "dp": (5, 13), "tp": (4, 5)},
        ),
        (
            TrainSettings(world_size=16, tp=2, pp=4, options={"use_tp_pp_dp_mapping": "true"}),
            5,
            {"pp": (1, 3, 5, 7), "dp": (5, 13), "tp": (4, 5)},
        ),
        (
            TrainSettings(world_size=16, tp=2, pp=4, order="dp-tp-cp-ep-pp"),
            5,
            {"pp": (1, 5, 9, 13), "dp": (4, 5), "tp": (5, 7)},
        ),
        (
            TrainSettings(world_size=4, framework="internlm"),
            3,
            {"pp": (3,), "dp": (0, 1, 2, 3), "tp": (3,)},
        ),
        (
            replace(SIXTEEN, zero=2),
            5,
            {"cp": (5, 7), "dp": (1, 5), "dp_cp": (1, 3, 5, 7), "shard": (1, 3, 5, 7)},
        ),
        (
            replace(SIXTEEN, zero=3, zero_shard=2),
            5,
            {"shard": (5, 7), "replicate": (1, 5), "stage": (0, 1, 2, 3, 4, 5, 6, 7)},
        ),
        (SIXTEEN, 5, {"replicate": (1, 3, 5, 7), "shard": (5,), "embd": (5, 13)}),
        (
            replace(SIXTEEN, model=EXPERTS, ep=4),
            5,
            {"ep": (4, 5, 6, 7), "edp": (1, 5), "dp_cp": (1, 3, 5, 7)},
        ),
        (
            TrainSettings(world_size=8, ep=2, model=EXPERTS, framework="internevo"),
            5,
            {"ep": (4, 5), "edp": (1, 3, 5, 7)},
        ),
        (
            TrainSettings(world_size=4, pp=2, framework="devicemesh"),
            1,
            {"pp": (1, 3), "dp_cp": (0, 1), "tp": (1,)},
        ),
        (
            TrainSettings(world_size=4, pp=2, schedule="zbv"),
            1,
            {"pp": (1, 3), "embd": (1,)},
        ),
    ],
)
def test_a_rank_s_groups_are_its_framework_s(
    settings: TrainSettings, rank: int, groups: dict[str, tuple[int, ...]]
) -> None:
    with as_rank(rank, settings) as made:
        assert {axis: made.members(axis) for axis in groups} == groups
        assert {axis: made.size(axis) for axis in groups} == {a: len(r) for a, r in groups.items()}
        assert {axis: made.coordinate(axis) for axis in groups} == {
            axis: ranks.index(rank) for axis, ranks in groups.items()
        }
