"""Collectives of several ranks: who met, how fast, who was waited for, and whose clock was off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.trace.gpu.activity import GpuRank, GpuTrace
from serried.trace.gpu.clocks import aligned_gpus
from serried.trace.gpu.meetings import Meeting, meetings
from serried.trace.gpu.traffic import group_traffic
from serried.trace.gpu.waited_for import rank_waits, waited_for
from serried.trace.model.laid_out import laid_out
from tests.trace.gpu.made import US, Kernel, all_reduce, asked, rank_with

PAIR = asked("allreduce", (0, 1))


def late_by(lateness: dict[int, float], rounds: int = 10, transfer: float = 100) -> list[GpuRank]:
    """Returns ranks that all-reduce, each coming so many microseconds late every time."""
    call = asked("allreduce", tuple(lateness))
    last = max(lateness.values())
    return [
        rank_with(
            rank,
            [
                all_reduce(1000 * at + late, 1000 * at + last + transfer, call)
                for at in range(rounds)
            ],
        )
        for rank, late in lateness.items()
    ]


def test_the_last_to_come_takes_the_transfer_alone() -> None:
    (one, *_) = found = meetings(late_by({0: 0, 1: 250}), 2)
    assert len(found) == 10
    assert (one.last, one.transfer_ns, one.is_whole) == (1, 100 * US, True)


def test_the_rank_that_is_late_is_named_by_what_the_others_wait() -> None:
    waits = rank_waits(meetings(late_by({0: 0, 1: 10, 2: 300, 3: 5}), 4), range(4))
    first = waited_for(waits, 10_000 * US)
    assert first is not None
    assert (first.rank, first.was_last, first.waits_ns) == (2, 10, 0)
    assert first.waited_for_ns == 10 * US * (300 + 290 + 295) // 3


@pytest.mark.parametrize("lateness", [{0: 0, 1: 0.0}, {0: 0, 1: 1}])
def test_nobody_is_named_where_all_come_together(lateness: dict[int, float]) -> None:
    assert waited_for(rank_waits(meetings(late_by(lateness), 2), (0, 1)), 10_000 * US) is None


def test_nobody_is_named_where_they_take_turns() -> None:
    call = asked("allreduce", (0, 1, 2))
    kernels: dict[int, list[Kernel]] = {rank: [] for rank in range(3)}
    for at in range(9):
        for rank in range(3):
            start = 1000 * at + (300 if at % 3 == rank else 0)
            kernels[rank].append(all_reduce(start, 1000 * at + 400, call))
    ranks = [rank_with(rank, each) for rank, each in kernels.items()]
    assert waited_for(rank_waits(meetings(ranks, 3), range(3)), 9000 * US) is None


def test_nobody_is_named_where_a_member_has_no_file() -> None:
    some = late_by({0: 0, 1: 250, 2: 0})[:2]
    found = meetings(some, 3)
    assert found and not any(each.is_whole for each in found)
    assert waited_for(rank_waits(found, (0, 1)), 10_000 * US) is None


def test_kernels_that_one_rank_has_more_of_meet_nobody() -> None:
    one, other = late_by({0: 0, 1: 250})
    longer = rank_with(1, [all_reduce(0, 9, PAIR)] * (len(other.operations) + 1))
    assert meetings([one, longer], 2) == []


def test_without_recorded_groups_kernels_of_one_name_meet() -> None:
    ranks = [
        rank_with(rank, [Kernel(late, 400, "ncclKernel_AllReduce_RING(x)")])
        for rank, late in ((0, 0), (1, 300))
    ]
    (found,) = meetings(ranks, 2)
    assert (found.operation, found.call, found.last) == ("all_reduce", None, 1)


# ----------------------------------------------------------------------- traffic


def test_bytes_and_bus_bandwidth_count_the_transfer_and_no_wait() -> None:
    (row,) = group_traffic(meetings(late_by({0: 0, 1: 900}), 2), 2)
    assert row.group == "world"
    assert (row.count, row.size_bytes) == (10, 10 * 4_000_000)
    # An all-reduce over 2 ranks has busbw = algbw: 4 MB in 100 us.
    assert row.busbw_bytes_per_s == pytest.approx(40e9)
    assert row.wait_ns == 10 * 450 * US


@pytest.mark.parametrize(
    ("ranks", "kind"),
    [
        ((0, 1), "tp"),
        ((0, 2), "dp"),
        ((0, 1, 2, 3), "tp_dp"),
        ((0, 3), "group 0"),
    ],
)
def test_groups_are_called_as_the_layout_calls_them(ranks: tuple[int, ...], kind: str) -> None:
    layout = laid_out("megatron", 8, {"tp": 2, "dp": 2, "pp": 2})
    call = asked("allreduce", ranks)
    found = meetings([rank_with(rank, [all_reduce(0, 9, call)]) for rank in ranks], 8)
    (row,) = group_traffic(found, 8, layout)
    assert row.group == layout.dims.get(kind, kind)


def test_without_a_layout_the_programs_own_description_names_a_group() -> None:
    call = asked("allreduce", (0, 1), purpose="DATA_PARALLEL_GROUP")
    found = meetings([rank_with(rank, [all_reduce(0, 9, call)]) for rank in (0, 1)], 4)
    assert group_traffic(found, 4)[0].group == "DATA_PARALLEL_GROUP"


def test_what_is_gathered_in_all_is_its_size() -> None:
    call = asked("_allgather_base", (0, 1))
    call = replace(call, elements_in=500_000)
    kernels = [Kernel(0, 100, "ncclDevKernel_AllGather_RING_LL(x)", 20, call)]
    (row,) = group_traffic(meetings([rank_with(rank, kernels) for rank in (0, 1)], 2), 2)
    assert (row.operation, row.size_bytes) == ("all_gather", 4_000_000)
    assert row.busbw_bytes_per_s == pytest.approx(20e9)


# ----------------------------------------------------------------------- clocks


def on_hosts(ahead_us: float, *, rounds: int = 20, seed: int = 0) -> GpuTrace:
    """Returns two ranks of two hosts, the second's clock ahead."""
    draw = np.random.default_rng(seed)
    kernels: tuple[list[Kernel], list[Kernel]] = [], []
    for at in range(rounds):
        starts = 1000 * at + draw.uniform(0, 300, 2)
        end = max(starts) + 50
        kernels[0].append(all_reduce(starts[0], end + draw.uniform(0, 2), PAIR))
        kernels[1].append(
            all_reduce(starts[1] + ahead_us, end + ahead_us + draw.uniform(0, 2), PAIR)
        )
    ranks = [rank_with(rank, each, host=f"host-{rank}") for rank, each in enumerate(kernels)]
    return GpuTrace("torch.profiler", tuple(ranks))


@given(st.floats(-5e6, 5e6), st.integers(0, 50))
def test_a_clock_that_is_ahead_is_put_back_within_what_is_stated(ahead: float, seed: int) -> None:
    trace, alignment = aligned_gpus(on_hosts(ahead, seed=seed))
    _, moved = alignment.clocks
    error_us = abs(moved.moved_ns / US + ahead)
    assert error_us <= 2
    assert moved.within_ns is not None and error_us <= moved.within_ns / US + 0.01
    assert (alignment.checked, alignment.violations) == (20, 0)
    first, second = (rank.operations.end_ns for rank in trace.ranks)
    assert np.abs(first - second).max() <= 4 * US


def test_ranks_of_one_host_keep_its_clock() -> None:
    trace = on_hosts(300)
    same = tuple(rank_with(rank.rank, [all_reduce(0, 1, PAIR)], host="a") for rank in trace.ranks)
    _, alignment = aligned_gpus(GpuTrace("torch.profiler", same))
    assert [clock.moved_ns for clock in alignment.clocks] == [0]


def test_a_clock_that_was_set_meanwhile_contradicts_itself() -> None:
    whole = on_hosts(0)
    first, second = whole.ranks
    set_back = np.where(np.arange(20) < 10, -5_000_000_000, 0)
    kernels = second.operations
    moved = replace(kernels, start_ns=kernels.start_ns + set_back, end_ns=kernels.end_ns + set_back)
    _, alignment = aligned_gpus(replace(whole, ranks=(first, replace(second, operations=moved))))
    assert alignment.violations >= 9


def test_a_meeting_says_how_long_each_took() -> None:
    meeting = Meeting("all_reduce", None, (0, 1), True, (0, 5), (9, 9))
    assert (meeting.took_ns, meeting.transfer_ns, meeting.last) == ((9, 4), 4, 1)
