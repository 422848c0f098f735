"""Roots where dumps are few: stacks alone, waits that stacks do not show, messages only counted."""

from __future__ import annotations

import json

import pytest

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump, read_dump
from serried.diagnose.evidence.stacks.stack import Frame, ThreadStack
from serried.diagnose.evidence.stacks.text import stacks_of
from serried.diagnose.job_state.given import GivenGroups
from serried.diagnose.job_state.left_behind import LeftBehind
from serried.diagnose.job_state.program import operation_of
from serried.diagnose.job_state.standing import standing_state
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.root import Root
from serried.diagnose.waits.roots import roots

TRAIN = Frame("train", "train.py", 12)
BACKWARD = (Frame("_engine_run_backward", "site-packages/torch/autograd/graph.py", 8), TRAIN)
ALL_REDUCE = (Frame("all_reduce", "site-packages/torch/distributed/distributed_c10d.py", 3), TRAIN)
BARRIER = (Frame("barrier", "site-packages/torch/distributed/distributed_c10d.py", 5), TRAIN)
READING = (Frame("read_batch", "train.py", 40), TRAIN)


def dump(rank: int, calls: list[tuple[str, int, bool]]) -> FlightDump:
    """A gloo dump of all-reduces of the group of all ranks: name, operation's number, over."""
    entries = [
        {
            "record_id": number,
            "process_group": ["0", "default_pg"],
            "profiling_name": f"gloo:{name}",
            "collective_seq_id": number + 1,
            "op_id": op_id,
            "retired": is_over,
            "input_sizes": [[8]],
            "input_dtypes": ["Float"],
            "time_created_ns": 1 + number,
        }
        for number, (name, op_id, is_over) in enumerate(calls)
    ]
    return read_dump(json.dumps({"entries": entries}).encode(), f"fr_trace_{rank}.json")


def calls(count: int, *, stands: bool, messages: int = 0) -> list[tuple[str, int, bool]]:
    each = 1 + messages
    return [("all_reduce", each * n, n < count or not stands) for n in range(1, count + 1)]


def found(left: LeftBehind, stacks: dict[int, tuple[Frame, ...]]) -> Root | None:
    left.stacks = {
        rank: ThreadStack(frames, is_main=True, source=f"stack_rank_{rank}.txt", line=1)
        for rank, frames in stacks.items()
    }
    state, _ = standing_state(left, [])
    return next(iter(roots(wait_graph(state))), None)


def test_ranks_that_wait_for_a_pipelines_messages_are_not_stuck_there() -> None:
    place = "site-packages/torch/distributed/pipelining/schedules.py"
    waiting = (Frame("_wait_batch_p2p", place, 683), Frame("step", place, 785), TRAIN)
    left = LeftBehind([dump(1, calls(1, stands=True))])
    root = found(left, {0: waiting, 1: ALL_REDUCE})
    assert root is not None and root.ranks is None
    computing = (Frame("matmul", "site-packages/torch/functional.py", 4), *waiting[1:])
    root = found(left, {0: computing, 1: ALL_REDUCE})
    assert root is not None and root.ranks == (0,)


def test_a_rank_inside_torchs_backward_waits_in_the_bucket_that_its_dump_holds() -> None:
    left = LeftBehind([dump(0, calls(3, stands=True)), dump(1, calls(2, stands=False))])
    root = found(left, {0: BACKWARD, 1: READING})
    assert root is not None and root.ranks == (1,)
    assert root.waiters == (0,)


def test_a_rank_whose_last_collective_others_have_not_issued_waits_whatever_its_line() -> None:
    left = LeftBehind([dump(rank, calls(3, stands=True)) for rank in (0, 1)])
    left.dumps.append(dump(2, calls(2, stands=False)))
    waiting = (Frame("train", "train.py", 13),)  # work.wait(), of which stacks show nothing
    root = found(left, {0: waiting, 1: waiting, 2: READING})
    assert root is not None and root.ranks == (2,)


def test_a_rank_without_a_dump_in_another_collective_is_not_waited_for_by_mistake() -> None:
    left = LeftBehind([dump(rank, calls(3, stands=True)) for rank in (0, 1, 3)])
    root = found(left, {0: BACKWARD, 1: BACKWARD, 2: BARRIER, 3: BACKWARD})
    assert root is not None
    assert (root.kind.value, root.ranks) == ("mismatch_op", (2,))


def test_stacks_alone_name_the_one_that_is_in_code_of_its_own() -> None:
    root = found(LeftBehind(), {0: ALL_REDUCE, 1: READING, 2: BACKWARD})
    assert root is not None
    assert (root.kind.value, root.ranks, root.waiters) == ("stuck_in_user_code", (1,), (0, 2))


@pytest.mark.parametrize(
    "stacks",
    [
        {0: ALL_REDUCE, 2: BACKWARD},  # of rank 1 there is no stack
        {0: ALL_REDUCE, 1: READING, 2: READING},  # most are somewhere of their own
        {0: ALL_REDUCE, 1: BACKWARD, 2: ALL_REDUCE},
    ],
)
def test_stacks_that_do_not_tell_accuse_nobody(stacks: dict[int, tuple[Frame, ...]]) -> None:
    root = found(LeftBehind(), stacks)
    assert root is None or root.ranks is None


def test_a_message_that_was_left_out_is_told_by_the_numbers_of_operations() -> None:
    left = LeftBehind([dump(rank, calls(4, stands=True, messages=2)) for rank in (0, 3)])
    left.dumps.append(dump(1, calls(3, stands=False, messages=2)))
    fewer = calls(4, stands=True, messages=2)
    left.dumps.append(dump(2, [*fewer[:3], ("all_reduce", 11, False)]))
    root = found(
        left, {0: ALL_REDUCE, 1: (Frame("train", "train.py", 9),), 2: ALL_REDUCE, 3: ALL_REDUCE}
    )
    assert root is not None
    assert (root.kind.value, root.ranks) == ("message_left_out", (2,))
    assert root.hidden is not None
    assert (root.hidden.found, root.hidden.usual) == (1, 2)


@pytest.mark.parametrize(("first", "root"), [(3, (2,)), (4, None)])
def test_messages_before_the_first_collective_of_a_group_count_as_well(
    first: int, root: tuple[int, ...] | None
) -> None:
    fewer = [("all_reduce", first, True), ("all_reduce", 6, True), ("all_reduce", 8, False)]
    left = LeftBehind([dump(2, fewer)])
    left.dumps += [dump(rank, calls(2, stands=False, messages=2)) for rank in (0, 1, 3)]
    at_work = (Frame("train", "train.py", 9),)
    told = found(left, {0: at_work, 1: at_work, 2: ALL_REDUCE, 3: at_work})
    assert told is not None
    assert told.ranks == root


def test_a_rank_that_may_wait_for_a_message_that_nothing_shows_is_not_accused() -> None:
    left = LeftBehind([dump(rank, calls(4, stands=True, messages=2)) for rank in (0, 2)])
    left.dumps.append(dump(1, calls(3, stands=False, messages=2)))
    root = found(left, {0: ALL_REDUCE, 1: (Frame("train", "train.py", 9),), 2: ALL_REDUCE})
    assert root is not None
    assert (root.kind.value, root.ranks, root.circle) == ("may_wait_for_message", None, (1,))


LIBRARY = "site-packages/torch/utils/data/dataloader.py"
LOADING = (Frame("wait", "threading.py", 331), Frame("_try_get_data", LIBRARY, 1133), TRAIN)
ON_THE_GPU = (Frame("synchronize", "site-packages/torch/cuda/__init__.py", 9), TRAIN)
IN_C = (Frame("clock_gettime"), Frame("c10d::ProcessGroupNCCL::WorkNCCL::wait"), TRAIN)


@pytest.mark.parametrize("waiting", [ALL_REDUCE, IN_C])
def test_stacks_alone_name_the_one_that_stands_in_its_data_loader(
    waiting: tuple[Frame, ...],
) -> None:
    root = found(LeftBehind(), {0: waiting, 1: waiting, 2: LOADING})
    assert root is not None
    assert (root.kind.value, root.ranks) == ("stuck_in_user_code", (2,))


def test_a_rank_that_waits_for_its_gpu_is_not_elsewhere() -> None:
    assert found(LeftBehind(), {0: ALL_REDUCE, 1: ALL_REDUCE, 2: ON_THE_GPU}) is None


def test_a_frame_is_quoted_at_its_own_line() -> None:
    text = 'Thread 42 (idle): "MainThread"\n    get (queue.py:180)\n    main (train.py:175)\n'
    [stack] = stacks_of(text, "rank_2.txt")
    assert [stack.line_of(place) for place in range(3)] == [2, 3, 1]


@pytest.mark.parametrize(
    ("kind", "accused"), [("mesh_pp", None), ("cp", None), ("mesh_dp", (1,)), ("tp", (1,))]
)
def test_a_rank_of_a_pipeline_or_a_ring_may_wait_for_a_message(
    kind: str, accused: tuple[int, ...] | None
) -> None:
    left = LeftBehind([dump(rank, calls(4, stands=True)) for rank in (0, 2)])
    left.dumps.append(dump(1, calls(3, stands=False)))
    groups = (JobGroup("default_pg", "world", (0, 1, 2)), JobGroup("these", kind, (0, 1)))
    left.given = GivenGroups("layout.json", 3, groups, {"0": groups[0]})
    root = found(left, {0: ALL_REDUCE, 1: (Frame("train", "train.py", 9),), 2: ALL_REDUCE})
    assert root is not None and root.ranks == accused


SCATTER = (
    Frame("reduce_scatter_single", "site-packages/torch/distributed/distributed_c10d.py", 3),
    TRAIN,
)


def test_a_reduce_scatter_that_gloo_calls_an_all_reduce_is_the_one_that_the_dump_holds() -> None:
    left = LeftBehind([dump(rank, calls(3, stands=True)) for rank in (0, 2)])
    left.dumps.append(dump(1, calls(2, stands=False)))
    root = found(left, {0: SCATTER, 1: READING, 2: SCATTER})
    assert root is not None
    assert (root.ranks, root.waiters) == ((1,), (0, 2))


@pytest.mark.parametrize(
    ("gave_up", "accused"), [((), None), ((1,), (3,)), ((3,), (1,)), ((1, 3), None)]
)
def test_beside_ranks_that_gave_up_waiting_one_at_another_line_is_at_work(
    gave_up: tuple[int, ...], accused: tuple[int, ...] | None
) -> None:
    waits = RankOperation("all_reduce", "world", 4, is_finished=False)
    groups = (JobGroup("world", "world", (0, 1, 2, 3)), JobGroup("pp_0", "pp", (1, 3)))
    for lines, who in (((9, 12), accused), ((9, 9), None)):
        own = {
            rank: (Frame("train", "train.py", line),)
            for rank, line in zip((1, 3), lines, strict=True)
        }
        ranks = [
            RankState(rank, counts={"world": 3}, stack=own[rank], gave_up=rank in gave_up)
            if rank in own
            else RankState(rank, doing=waits, counts={"world": 4}, stack=ALL_REDUCE)
            for rank in range(4)
        ]
        assert roots(wait_graph(JobState.of(4, groups, ranks)))[0].ranks == who


SENDING = (Frame("send", "site-packages/torch/distributed/distributed_c10d.py", 9), TRAIN)


def test_a_rank_in_a_backward_of_which_no_calls_are_known_may_wait_there_itself() -> None:
    late = (BACKWARD[0], Frame("main", "train.py", 13))
    root = found(LeftBehind([dump(1, calls(1, stands=True))]), {0: late, 1: ALL_REDUCE})
    assert root is not None and root.ranks is None
    in_hook = (Frame("hook", "train.py", 50), *late)
    root = found(LeftBehind([dump(1, calls(1, stands=True))]), {0: in_hook, 1: ALL_REDUCE})
    assert root is not None and root.ranks == (0,)


def test_a_rank_without_a_stack_may_stand_in_a_message_as_others_are_seen_to() -> None:
    def left() -> LeftBehind:
        ahead, behind = calls(3, stands=True), calls(2, stands=False)
        return LeftBehind([dump(0, ahead), dump(1, behind), dump(2, behind)])

    root = found(left(), {0: ALL_REDUCE, 2: SENDING})
    assert root is not None and root.ranks is None
    root = found(left(), {0: ALL_REDUCE, 1: READING, 2: SENDING})
    assert root is not None and root.ranks == (1,)


@pytest.mark.parametrize(("gone", "ranks"), [((2,), (2,)), ((1, 2, 3), None)])
def test_where_most_processes_are_gone_nobody_is_known_to_have_left_first(
    gone: tuple[int, ...], ranks: tuple[int, ...] | None
) -> None:
    letters = {rank: "gone" if rank in gone else "S" for rank in range(4)}
    dumps = [dump(rank, calls(3, stands=True)) for rank in (0, 1, 3)]
    left = LeftBehind([each for each in dumps if each.rank not in gone], process_states=letters)
    root = found(left, {})
    assert root is not None and root.ranks == ranks


def test_the_frames_of_c_tell_a_message_that_the_users_line_waits_for() -> None:
    inside = (Frame("c10d::ProcessGroupGloo::SendWork::wait", "libtorch_cpu.so"), TRAIN)
    assert operation_of(inside) == "send"
    in_torch = Frame("_wait_batch_p2p", "site-packages/torch/distributed/pipelining/x.py", 683)
    assert operation_of((inside[0], in_torch, TRAIN)) is None
    lock = (Frame("PyThread_acquire_lock_timed", "libpython3.11.so.1.0"), READING[0], TRAIN)
    root = found(LeftBehind(), {0: inside, 1: lock, 2: inside})
    assert root is not None and (root.kind.value, root.ranks) == ("stuck_in_user_code", (1,))


RING = '"MainThread"\n    exchange (ring.py:15)\n    main (ring.py:42)\n'
SPIN = '"MainThread"\n    attend (ring.py:25)\n    main (ring.py:42)\n'


def stood(*threads: tuple[str, str]) -> LeftBehind:
    """Stacks as py-spy prints them, with whether each thread ran."""
    left = LeftBehind()
    for rank, (state, frames) in enumerate(threads):
        text = f"Thread {rank + 70} ({state}): {frames}"
        [left.stacks[rank]] = stacks_of(text, f"pyspy_rank_{rank}.txt")
    return left


def root_of(left: LeftBehind) -> tuple[int, ...] | None:
    state, _ = standing_state(left, [])
    return next((root.ranks for root in roots(wait_graph(state))), None)


@pytest.mark.parametrize("busy", range(4))
def test_the_only_rank_on_a_processor_works_while_all_others_wait(busy: int) -> None:
    threads = [("active+gil", SPIN) if rank == busy else ("idle", RING) for rank in range(4)]
    assert root_of(stood(*threads)) == (busy,)


@pytest.mark.parametrize(
    "threads",
    [
        [("idle", SPIN), *[("idle", RING)] * 3],
        [("active", RING), *[("idle", RING)] * 3],
        [("active", SPIN), ("active", SPIN), *[("idle", RING)] * 2],
        [("active", SPIN), ("idle", SPIN), *[("idle", RING)] * 2],
    ],
)
def test_nobody_is_told_to_work_where_no_other_or_several_ran(
    threads: list[tuple[str, str]],
) -> None:
    assert root_of(stood(*threads)) is None


def test_states_of_processes_tell_who_ran_as_py_spy_does() -> None:
    left = stood(*[("idle", RING)] * 3)
    spun = Frame("attend", "ring.py", 25)
    left.stacks = {
        rank: ThreadStack((spun, TRAIN) if rank == 1 else stack.frames, True, "log", 1)
        for rank, stack in left.stacks.items()
    }
    assert root_of(left) is None
    left.process_states = {0: "S", 1: "R", 2: "S"}
    assert root_of(left) == (1,)


def test_who_never_sent_waits_for_no_message_whatever_the_first_of_a_barrier_counts() -> None:
    # Messages of a monitored barrier are counted of its first rank alone.
    left = LeftBehind([dump(0, calls(4, stands=False, messages=3))])
    left.dumps += [dump(rank, calls(4, stands=False)) for rank in (1, 2)]
    monitored = (Frame("monitored_barrier", "torch/distributed/distributed_c10d.py", 5), TRAIN)
    root = found(left, {0: monitored, 1: monitored, 2: READING})
    assert root is not None
    assert (root.kind.value, root.ranks) == ("stuck_in_user_code", (2,))


def test_who_is_stopped_is_the_root_though_nobody_is_seen_to_wait() -> None:
    left = stood(*[("idle", RING)] * 4)
    left.process_states = {0: "S", 1: "S", 2: "T", 3: "S"}
    assert root_of(left) == (2,)
    left.process_states = dict.fromkeys(range(4), "T")
    assert root_of(left) is None
