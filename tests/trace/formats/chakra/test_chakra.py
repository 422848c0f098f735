"""Chakra traces of plans and runs: what a simulator reads of them, and how long it then takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.action import Action, ActionKind, Span
from serried.errors import InputError
from serried.trace.formats.chakra.writing import write_chakra
from serried.trace.merge.in_memory import merge
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Trace
from tests.conftest import Call
from tests.trace.formats.chakra.chakra_rules import COLL, COMP, RECV, SEND, Chakra, read
from tests.trace.recorded_run import OPTIMIZER_NS, Run, table

RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=2)
MESSAGE = 1 << 20


def written(trace: Trace, folder: Path) -> Chakra:
    write_chakra(trace, folder / "run.et", message_bytes=MESSAGE)
    return read(folder / "run.et")


def test_a_recorded_run_takes_its_own_time_on_a_network_without_any(tmp_path: Path) -> None:
    found = written(merge([RUN.write(tmp_path / "run")]), tmp_path)
    steps = RUN.num_steps * (RUN.window_ns + OPTIMIZER_NS) // 1000
    # The optimizer follows each rank's own last backward, where nothing holds it up.
    assert max(found.finished().values()) == steps
    assert sorted(found.ranks) == list(range(8))
    assert found.told[3] == {**found.told[0], "rank": 3}


def test_every_message_has_its_two_ends(tmp_path: Path) -> None:
    found = written(merge([RUN.write(tmp_path / "run")]), tmp_path)
    nodes = [node for nodes in found.ranks.values() for node in nodes]
    sends, receives = (
        sorted(tuple(node.attributes.values()) for node in nodes if node.type == kind)
        for kind in (SEND, RECV)
    )
    assert sends == receives
    assert len(sends) == len({*sends}) == 2 * 2 * 2 * 3 * 8  # steps, ways, replicas, boundaries, m
    assert {size for *_, size in sends} == {MESSAGE}


def spans_of(*parts: tuple[ActionKind, int, int], rank: int = 0) -> list[Span]:
    return [Span(rank, Action(kind, 0, 0), 0, start, end) for kind, start, end in parts]


def two_ranks(folder: Path, *parts: tuple[ActionKind, int, int], told: ActionKind) -> Trace:
    """Returns a run of two replicas that did the same; ``told`` are their all-reduces."""
    trace = merge([Run(pp=1, dp=2, num_steps=1).write(folder)])
    spans = table([*spans_of(*parts), *spans_of(*parts, rank=1)])
    is_told = spans.kind == told
    spans = replace(
        spans,
        size_bytes=np.where(is_told, 4096, -1).astype(np.int64),
        group=np.where(is_told, 0, -1).astype(np.int32),
    )
    group = SpanGroup(ActionKind.ALL_REDUCE, (0, 1), count=2)
    return replace(trace, spans=spans, groups=(group,))


def test_an_exchange_inside_a_computation_cuts_it(tmp_path: Path) -> None:
    parts = ((ActionKind.F, 0, 9000), (ActionKind.ALL_REDUCE, 2000, 5000))
    trace = two_ranks(tmp_path / "run", *parts, told=ActionKind.ALL_REDUCE)
    found = written(trace, tmp_path)
    nodes = found.ranks[1]
    assert [(node.type, node.micros) for node in nodes if node.type == COMP] == [(4, 2), (4, 4)]
    assert [node.attributes for node in nodes if node.type == COLL] == [
        {"comm_type": 0, "comm_size": 2048, "pg_name": "1"}
    ] * 2
    assert [node.deps for node in nodes] == [(), (1,), (2,), (3,)]
    assert found.groups == {"1": [0, 1]}
    assert found.finished() == {0: 6, 1: 6}


@pytest.mark.parametrize("told", [ActionKind.ALL_REDUCE, ActionKind.IN_FLIGHT])
def test_an_exchange_behind_a_computation_is_launched_where_it_was(
    told: ActionKind, tmp_path: Path
) -> None:
    kinds = ActionKind
    parts = (
        (kinds.F, 0, 2000),
        (kinds.IN_FLIGHT, 2000, 6000),
        (kinds.B, 2000, 6000),
        (kinds.ALL_REDUCE, 6000, 7000),
        (kinds.OPTIMIZER, 7000, 8000),
    )
    found = written(two_ranks(tmp_path / "run", *parts, told=told), tmp_path)
    nodes = {node.name: node for node in found.ranks[0]}
    launched = [node.id for node in found.ranks[0] if node.type == COLL]
    forward, backward = nodes["COMP_NODE_0F0"], nodes["COMP_NODE_0B0"]
    assert backward.deps == (forward.id,)
    assert {*found.ranks[0][-1].deps} == {backward.id, *launched}


def test_what_nobody_recorded_the_bytes_of_is_counted(tmp_path: Path) -> None:
    parts = ((ActionKind.F, 0, 9000), (ActionKind.ALL_REDUCE, 2000, 5000))
    trace = two_ranks(tmp_path / "run", *parts, told=ActionKind.ALL_TO_ALL)
    assert write_chakra(trace, tmp_path / "run.et", message_bytes=1) == 2
    assert [node.micros for node in read(tmp_path / "run.et").ranks[0]] == [2, 4]


def test_a_plan_runs_to_its_end_with_what_its_replicas_exchange(
    serried: Call, tmp_path: Path
) -> None:
    words = "--model llama3-8b --cluster h100 --world-size 16 --tp 2 --pp 4 --sequence 4096"
    file = tmp_path / "step.et"
    told = serried("plan", *words.split(), "--global-batch", "16", "--trace", str(file))
    assert told.code in (0, 1), told.err
    found = read(file)
    assert len(found.ranks) == 16
    # Two replicas of each place: gradients are scattered, the optimizer works, weights gathered.
    last = [node.attributes.get("comm_type") for node in found.ranks[5][-3:]]
    assert last == [7, None, 2]
    assert sorted(map(len, found.groups.values())) == [2] * 8
    ends = found.finished()
    assert all(ends[rank] == ends[rank ^ 2] > 0 for rank in ends)  # replicas end together


def test_a_trace_without_a_rank_is_refused(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run", only=[0, 1, 2, 4, 5, 6, 7])])
    with pytest.raises(InputError, match="none of rank 3"):
        write_chakra(trace, tmp_path / "run.et", message_bytes=1)


def test_messages_of_unknown_size_are_asked_for(serried: Call, tmp_path: Path) -> None:
    run = str(Run(pp=2).write(tmp_path / "run"))
    refused = serried("trace", "merge", run, "-o", str(tmp_path / "run.et"))
    assert (refused.code, "give --message-bytes" in refused.err) == (2, True)
    told = serried(
        *("trace", "merge", run, "-o", str(tmp_path / "run.et"), "--message-bytes", "4096")
    )
    assert (told.code, "of Chakra traces, a file for each rank" in told.err) == (0, True)
    refused = serried("trace", "merge", run, "--message-bytes", "4096")
    assert (refused.code, "belongs to -o NAME.et" in refused.err) == (2, True)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run.et")])
    with pytest.raises(InputError, match="holds no Chakra traces"):
        write_chakra(trace, tmp_path / "run.et", message_bytes=1)
    assert (tmp_path / "run.et" / "rank-00000.spans").is_file()
