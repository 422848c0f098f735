"""Bytes that a rank sends, against the papers that count them."""

from __future__ import annotations

import pytest

from serried.plan.traffic import volumes


def test_tensor_parallel_sends_eight_times_an_activation_a_layer() -> None:
    """Narayanan et al. 2021, section 3.2: 8 b s h (t-1)/t numbers a layer and device."""
    batch, sequence, hidden, tp = 2, 2048, 4096, 4
    numbers = 8 * batch * sequence * hidden * (tp - 1) / tp
    assert volumes.tensor_bytes(batch * sequence, hidden, tp) == pytest.approx(2 * numbers)


def test_replicas_send_what_the_zero_paper_counts() -> None:
    """ZeRO (1910.02054), section 7: 2 P numbers a step for data parallel and ZeRO-1, 3 P for 3."""
    parameters = 7.5e9
    whole = 1024 / 1023
    assert volumes.replica_bytes(parameters, 1024, 4) * whole == pytest.approx(2 * 2 * parameters)
    assert volumes.replica_bytes(parameters, 1024, 6) * whole == pytest.approx(2 * 3 * parameters)


def test_a_group_of_one_sends_nothing() -> None:
    assert volumes.tensor_bytes(4096, 4096, 1) == 0
    assert volumes.context_bytes(4096, 1024, 1, 1) == 0
    assert volumes.expert_bytes(4096, 4096, 8, 1, 1) == 0
    assert volumes.replica_bytes(1e9, 1, 6) == 0


def test_experts_send_each_token_to_its_experts_there_and_back() -> None:
    sent = volumes.expert_bytes(4096, 7168, 8, 64, 1)
    assert sent == pytest.approx(4 * 4096 * 8 * 7168 * 2 * 63 / 64)
