"""On real ranks the steps of every algorithm, sent as messages, give what torch's own gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, ROOTED
from serried.runtime.trial.rank import RankTrial
from serried.runtime.trial.report import RankOutcome
from serried.runtime.trial.settings import CollectiveTrial, TrialSettings
from tests.runtime.rank_group import DEVICES, run_ranks

WORLD_SIZE = 5
GROUPS = (
    PlacedGroup.first(WORLD_SIZE, gpus_per_node=3),
    PlacedGroup((0, 1, 2, 4), (0, 0, 1, 1)),
    PlacedGroup((1, 3), (0, 0)),
)
"""Unequal nodes, equal ones, and one; the last two leave ranks out."""
TRIALS = tuple(
    CollectiveTrial(
        entry.collective,
        entry.name,
        group,
        # 251 elements: where shares need not be equal, blocks differ by one
        size_bytes=251 * 4,
        root=group.size - 1 if entry.collective in ROOTED else 0,
    )
    for entry in ENTRIES
    if entry.name != "switch" and entry.collective != "attention"
    for group in GROUPS
)


def outcomes(device: str) -> Iterator[tuple[str, Any]]:
    made = [dist.new_group(list(group.ranks)) for group in GROUPS]
    settings = TrialSettings(TRIALS, WORLD_SIZE, iterations=1)
    for number, trial in enumerate(TRIALS):
        if dist.get_rank() in trial.group.ranks:
            group = made[GROUPS.index(trial.group)]
            yield str(number), RankTrial(trial, settings, group, torch.device(device)).outcome()


@pytest.mark.parametrize("device", DEVICES)
def test_every_algorithm_gives_what_torch_gives(device: str, tmp_path: Path) -> None:
    answers = run_ranks(outcomes, WORLD_SIZE, tmp_path, device, device=device)
    wrong = []
    for number, trial in enumerate(TRIALS):
        found: list[RankOutcome] = [each[str(number)] for each in answers if str(number) in each]
        assert [each.rank for each in found] == list(trial.group.ranks)
        wrong += [(trial.name, trial.algorithm, each) for each in found if not each.is_right]
    assert wrong == []
