"""Profiles of GPUs: who comes last to the collectives that others spin in is named."""

from __future__ import annotations

import pytest

from serried.diagnose.stragglers.of_profile import profile_causes
from serried.trace.gpu.activity import GpuTrace
from tests.trace.gpu.made import all_reduce, asked, rank_with


def profiled(lateness: dict[int, float], rounds: int = 10) -> GpuTrace:
    """Returns a profile whose ranks all-reduce every 1000 us, each late by so many of them."""
    call, last = asked("allreduce", tuple(lateness)), max(lateness.values())
    moments = [1000 * at for at in range(rounds)]
    return GpuTrace(
        "torch.profiler",
        tuple(
            rank_with(rank, [all_reduce(t + late, t + last + 100, call) for t in moments])
            for rank, late in lateness.items()
        ),
    )


def test_who_comes_last_is_named_with_what_the_others_wait() -> None:
    (cause,) = profile_causes(profiled({0: 0, 1: 0, 2: 300, 3: 0}))

    assert (cause.kind, cause.ranks) == ("slow_gpu", (2,))
    assert cause.cost == pytest.approx(0.3, abs=0.05)
    assert "10 of 10 collectives" in str(cause.chain[0])


def test_nobody_is_named_where_all_come_together() -> None:
    assert list(profile_causes(profiled({0: 0, 1: 0, 2: 1, 3: 0}))) == []
