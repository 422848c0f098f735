"""A run's place can be saved and taken up again, its random state too."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from serried.runtime.job.settings import TrainSettings
from serried.runtime.training.loop_state import (
    LoopState,
    random_state,
    seed_dropout,
    set_random_state,
)
from tests.runtime.fake_ranks import as_rank

HALF = TrainSettings(world_size=8, tp=2, pp=2, dtype="float16")


def drawn(rank: int, settings: TrainSettings) -> float:
    """Returns what a rank's generator draws first."""
    with as_rank(rank, settings) as mesh:
        seed_dropout(settings.seed, mesh, is_sequence_cut=settings.sequence_parallel)
    return torch.rand(()).item()


def test_random_numbers_go_on_from_where_they_were_saved() -> None:
    torch.manual_seed(3)
    saved = {name: state.clone() for name, state in random_state().items()}
    wanted = torch.rand(4)
    torch.manual_seed(9)
    set_random_state(saved)
    assert torch.equal(torch.rand(4), wanted)


def test_only_float16_begins_with_a_loss_scale() -> None:
    state = LoopState.of(HALF)
    assert state.scale is not None and state.loss_scale == HALF.optimizer.loss_scale
    state = LoopState.of(replace(HALF, dtype="float32"))
    assert (state.scale, state.loss_scale) == (None, 1.0)


@pytest.mark.parametrize(
    ("options", "different"),
    [({}, 4), ({"sequence_parallel": True}, 8)],
)
def test_tp_peers_draw_the_same_unless_they_hold_different_rows(
    options: dict[str, bool], different: int
) -> None:
    settings = replace(HALF, **options)  # type: ignore[arg-type]
    first = [drawn(rank, settings) for rank in range(8)]
    assert len(set(first)) == different
    assert (first[0] == first[1]) == (different == 4)
    assert first == [drawn(rank, settings) for rank in range(8)]
