"""Faults in real ranks under a guard: what they leave names the root, at whatever rank and step."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.diagnosis.faults.fault import STOPPING, drawn
from benchmarks.diagnosis.faults.injected import outcome_of


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("send to the wrong peer", "wrong_peer"),
        ("kill -9", "dead"),
        ("swapped groups", "skipped_collective"),  # it may still come to what it left out
    ],
)
def test_the_root_of_an_injected_fault_is_named(kind: str, told: str, tmp_path: Path) -> None:
    outcome = outcome_of(drawn(kind, seed=0), tmp_path / "evidence")
    assert (outcome.answer["kind"], outcome.named) == (told, outcome.fault.roots)
    assert not outcome.accuses


def test_seeds_give_other_ranks_steps_and_layouts_each_time_the_same() -> None:
    drawn_once = [drawn(kind, seed) for kind in STOPPING for seed in range(20)]
    assert drawn_once == [drawn(kind, seed) for kind in STOPPING for seed in range(20)]
    assert {each.rank for each in drawn_once} >= set(range(8))
    assert len({(each.tp, each.pp, each.dp) for each in drawn_once}) > 5
