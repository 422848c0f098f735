"""The rules of a table's streams, with virtual stages and with reductions behind computation."""

from __future__ import annotations

from serried.trace.formats.straggler.rules import Key, Operation, rules_of

#   stage 0   F0(c0) F1(c1) B0(c1) B1(c0)      two chunks, one microbatch: global chunks 0 and 2
#   stage 1   F0(c0) F1(c1) B0(c1) B1(c0)      global chunks 1 and 3
TURNS = (("forward-compute", 0), ("forward-compute", 1))
BACK = (("backward-compute", 1), ("backward-compute", 0))


def computes(stage: int) -> list[Operation]:
    rows: list[Operation] = []
    for way in (TURNS, BACK):
        for seq, (type_, chunk) in enumerate(way):
            at = 10.0 * (len(rows) + 1) + stage
            rows.append(Operation(type_, seq, stage, at, at + 5, chunk, 2 * chunk + stage))
    return rows


def messages(stage: int) -> list[Operation]:
    """Returns a send after and a receive before every computation, as the profiler writes them."""
    rows = []
    for row in computes(stage):
        way = row.type.split("-")[0]
        rows.append(Operation(f"{way}-recv", row.seq, stage, row.start - 2, row.start, -1, -1))
        rows.append(Operation(f"{way}-send", row.seq, stage, row.end, row.end + 1, -1, -1))
    return rows


def rules(*more: Operation, uses_dp: bool = True) -> tuple[dict[Key, list[Key]], list[list[Key]]]:
    rows = [row for stage in (0, 1) for row in (*computes(stage), *messages(stage))]
    ordered = sorted([*rows, *more], key=lambda row: (row.stage, row.start, row.seq, row.type))
    return rules_of(ordered, uses_dp=uses_dp)


def tail(*types: str, chunk: int = -1) -> list[Operation]:
    return [
        Operation(type_, 0, stage, 70.0 + at, 71.0 + at, chunk, -1)
        for stage in (0, 1)
        for at, type_ in enumerate(types)
    ]


def test_messages_of_virtual_stages_meet_across_the_boundary_of_their_chunks() -> None:
    _, meetings = rules(*tail("optimizer"))
    pairs = {tuple(sorted(keys)) for keys in meetings if len(keys) == 2 and "send" in str(keys)}
    # The k-th send that is real meets the k-th real receive: their own numbers differ where one
    # end of the model sends or receives nothing.
    assert pairs == {
        (("forward-recv", 0, 1), ("forward-send", 0, 0)),  # global chunk 0 to 1
        (("forward-recv", 1, 0), ("forward-send", 0, 1)),  # 1 to 2, round the ring
        (("forward-recv", 1, 1), ("forward-send", 1, 0)),  # 2 to 3
        (("backward-recv", 0, 0), ("backward-send", 0, 1)),  # 3 to 2
        (("backward-recv", 1, 1), ("backward-send", 0, 0)),  # 2 to 1
        (("backward-recv", 1, 0), ("backward-send", 1, 1)),  # 1 to 0
    }
    alone = {keys[0] for keys in meetings if len(keys) == 1}
    assert ("forward-recv", 0, 0) in alone and ("forward-send", 1, 1) in alone
    assert ("backward-recv", 0, 1) in alone and ("backward-send", 1, 0) in alone


def test_reductions_behind_computation_follow_the_last_backward_of_their_chunk() -> None:
    scatters = [
        Operation("grads-reduce-scatter", seq, stage, 50.0 + 9 * seq, 51.0 + 9 * seq, chunk, -1)
        for stage in (0, 1)
        for seq, chunk in enumerate((1, 0))
    ]
    names = ("layernorm-grads-all-reduce", "separate-grads-all-reduce", "optimizer")
    after, _ = rules(*scatters, *tail(*names))
    assert after["grads-reduce-scatter", 0, 0] == [("backward-compute", 0, 0)]
    assert set(after["grads-reduce-scatter", 1, 0]) == {
        ("grads-reduce-scatter", 0, 0),
        ("backward-compute", 1, 0),
    }
    assert set(after["layernorm-grads-all-reduce", 0, 0]) == {
        ("backward-compute", 1, 0),
        ("grads-reduce-scatter", 1, 0),
    }
    assert after["separate-grads-all-reduce", 0, 0] == [("layernorm-grads-all-reduce", 0, 0)]
    assert after["optimizer", 0, 0] == [("separate-grads-all-reduce", 0, 0)]


def test_the_first_forward_of_each_chunk_waits_for_its_parameters() -> None:
    gathers = [
        Operation("params-all-gather", seq, stage, 1.0 + seq, 2.0 + seq, seq, -1)
        for stage in (0, 1)
        for seq in (0, 1)
    ]
    after, _ = rules(*gathers, *tail("optimizer"))
    for chunk in (0, 1):
        assert ("params-all-gather", chunk, 0) in after["forward-compute", chunk, 0]


def test_without_replicas_only_the_stages_own_tail_remains() -> None:
    names = ("gc", "layernorm-grads-all-reduce", "optimizer-clip-main-grad", "optimizer")
    after, meetings = rules(*tail(*names), uses_dp=False)
    assert after["gc", 0, 1] == [("backward-compute", 1, 1)]
    assert after["layernorm-grads-all-reduce", 0, 1] == [("gc", 0, 1)]
    assert after["optimizer", 0, 1] == [("optimizer-clip-main-grad", 0, 1)]
    clip = "optimizer-clip-main-grad"
    assert [(clip, 0, 0), (clip, 0, 1)] in meetings
