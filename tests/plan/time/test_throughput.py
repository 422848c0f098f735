"""MFU and HFU by convention, against what papers print for their own steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.accuracy.published import korthikanti, sc21
from serried.plan.time.throughput import throughput


@pytest.mark.parametrize(
    ("name", "mfu", "hfu"),
    [("175B", 51.4, 52.8), ("530B", 56.0, 57.0), ("1T", 56.3, 57.0)],
)
def test_korthikanti_table_5_follows_from_its_steps(name: str, mfu: float, hfu: float) -> None:
    """MFU counts every key, HFU those of selective recomputation besides (appendix A)."""
    row = next(each for each in korthikanti() if each.name == f"{name} iter_s_sp_plus_selective")
    found = throughput(row.choices[0], row.step_s)
    assert 100 * found.mfu["full"] == pytest.approx(mfu, abs=0.06)
    assert 100 * found.mfu["korthikanti"] == pytest.approx(hfu, abs=0.06)


def test_sc21_table_1_is_its_own_convention() -> None:
    printed = {"145.6B": 148, "529.6B": 163, "1008.0B": 163}
    for row in sc21():
        if row.name in printed:
            found = throughput(row.choices[0], row.step_s)
            assert found.flops_per_gpu("sc21") / 1e12 == pytest.approx(printed[row.name], rel=0.01)


def test_a_step_half_as_long_has_twice_the_mfu_of_every_convention() -> None:
    job = korthikanti()[0].choices[0]
    slow, fast = throughput(job, 2.0), throughput(job, 1.0)
    assert all(fast.mfu[by] == pytest.approx(2 * each) for by, each in slow.mfu.items())
    assert fast.hfu == pytest.approx(2 * slow.hfu)


def test_recomputation_counts_in_hfu_alone() -> None:
    row = korthikanti()[0]
    full = row.choices[0]
    none = replace(full, recompute=replace(full.recompute, kind="none"))
    again, once = throughput(full, row.step_s), throughput(none, row.step_s)
    assert again.mfu == once.mfu
    assert again.hfu > 1.25 * once.hfu
