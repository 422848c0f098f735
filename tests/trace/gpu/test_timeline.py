"""A profile of GPUs is drawn as a trace is: every operation once, by its name, on one clock."""

from __future__ import annotations

from collections import Counter

from serried.action import ActionKind
from serried.trace.gpu.kind import short_name
from serried.trace.gpu.timeline import gpu_timeline
from serried.trace.measure.analysis import analyse
from tests.trace.gpu.made import Kernel, all_reduce, asked, rank_with
from tests.trace.gpu.samples import sample
from tests.trace.gpu.test_meetings import on_hosts

SAMPLES = "sampled_rank-0.json.gz", "sampled_rank-1.json.gz"


def test_every_operation_is_a_span_by_its_name() -> None:
    profile = sample(*SAMPLES)
    trace = gpu_timeline(profile)
    for rank in profile.ranks:
        mine = trace.spans.where(trace.spans.rank == rank.rank)
        names = Counter(trace.names[at] for at in mine.peer.tolist())
        assert names == Counter(map(short_name, rank.names_of(rank.operations.name)))
    assert (trace.ranks, len(trace.missing)) == ((0, 1), 126)


def test_collectives_are_of_the_recorders_kinds() -> None:
    call = asked("allreduce", (0,))
    profile = sample("alexnet.json.gz")
    made = rank_with(0, [all_reduce(0, 9, call), Kernel(10, 20)])
    trace = gpu_timeline(profile.__class__("torch.profiler", (made,)))
    assert trace.spans.kind.tolist() == [ActionKind.ALL_REDUCE, ActionKind.SPAN]


def test_ranks_of_two_hosts_stand_on_one_clock() -> None:
    trace = gpu_timeline(on_hosts(4e6))
    first, second = (trace.spans.end_ns[trace.spans.rank == rank] for rank in (0, 1))
    assert abs(first - second).max() < 5000


def test_no_bubble_is_claimed_of_it() -> None:
    assert analyse(gpu_timeline(sample(*SAMPLES))).statistics.bubble is None
