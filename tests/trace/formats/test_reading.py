"""Other tools' traces come out as the same spans, whoever wrote them, however broken the file."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.event_file import nanoseconds, read_event_file, whole
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import Run

GOLDENS = Path(__file__).parents[2] / "goldens" / "traces"
KINETO = GOLDENS / "kineto"


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def pairs(rank: int, actions: list[tuple[str, int, int, int]]) -> list[dict[str, Any]]:
    """Returns begin and end events as Paddle's dynamic graph writes them."""
    return [
        {"name": name, "cat": "pipeline timeline", "ph": phase, "pid": 0, "tid": rank + 1, "ts": at}
        for name, _, start, end in actions
        for phase, at in (("B", start), ("E", end))
    ]


def first_forwards(trace: Trace) -> list[tuple[int, int, int]]:
    """Returns rank, stage and microbatch of the forwards of the first step, rank by rank."""
    spans = trace.spans
    mine = (spans.kind == ActionKind.F) & (spans.step == spans.step.min())
    columns = (spans.rank, spans.stage, spans.microbatch)
    return list(zip(*(column[mine].tolist() for column in columns), strict=True))


# ----------------------------------------------------------------------- torch.profiler


def test_kinetos_ranges_become_actions() -> None:
    trace = read_trace([KINETO])
    assert first_forwards(trace) == [
        *(
            (0, stage, microbatch)
            for half in (0, 2)
            for stage in (0, 2)
            for microbatch in (half, half + 1)
        ),
        *(
            (1, stage, microbatch)
            for half in (0, 2)
            for stage in (1, 3)
            for microbatch in (half, half + 1)
        ),
    ]
    assert [host.name for host in trace.hosts] == ["host-a"]
    assert trace.layout is not None and trace.layout.sizes["pp"] == 2
    assert [each.step for each in measure(trace).steps] == [1, 2]


def test_kinetos_times_are_nanoseconds_since_its_base() -> None:
    document = json.loads((KINETO / "rank0.json").read_text())
    first = next(e for e in document["traceEvents"] if e["name"] == "PP:0UNSHARD")
    trace = read_trace([KINETO / "rank0.json"])
    begun_ns = document["baseTimeNanoseconds"] + round(first["ts"] * 1000)
    assert trace.base_ns + int(trace.spans.start_ns[0]) == begun_ns
    assert trace.missing == (1,)


def test_gpipes_ranges_are_of_the_ranks_one_stage(tmp_path: Path) -> None:
    for rank in (0, 1):
        names = ["Forward 0", "Forward 1", "Backward 0", "Backward 1"]
        events = [
            {"name": name, "ph": "X", "ts": 10 * at, "dur": 5.5} for at, name in enumerate(names)
        ]
        about = {"distributedInfo": {"rank": rank, "world_size": 2}}
        write(tmp_path / f"r{rank}.json", {"traceEvents": events, **about})
    trace = read_trace([tmp_path])
    assert first_forwards(trace) == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]


def gpipe_profiles(folder: Path, world_size: int) -> Path:
    """Writes what torch.profiler keeps of GPipe: ranges that name no stage."""
    for rank in range(world_size):
        names = ["Forward 0", "Forward 1", "Backward 0", "Backward 1"]
        events = [
            {"name": name, "ph": "X", "ts": 10 * at, "dur": 5.5} for at, name in enumerate(names)
        ]
        about = {"distributedInfo": {"rank": rank, "world_size": world_size}}
        write(folder / f"r{rank}.json", {"traceEvents": events, **about})
    return folder


def test_gpipes_ranges_stand_where_the_sizes_put_their_rank(tmp_path: Path) -> None:
    trace = read_trace([gpipe_profiles(tmp_path, 4)], {"pp": 2, "dp": 2})
    assert [(rank, stage) for rank, stage, m in first_forwards(trace) if m == 0] == [
        (0, 0), (1, 0), (2, 1), (3, 1),
    ]  # fmt: skip
    assert trace.warnings == ()


def test_without_sizes_gpipes_ranks_are_taken_for_stages_and_that_is_said(tmp_path: Path) -> None:
    trace = read_trace([gpipe_profiles(tmp_path, 4)])
    assert [stage for _, stage, m in first_forwards(trace) if m == 0] == [0, 1, 2, 3]
    (finding,) = trace.warnings
    assert "every one of the 4 ranks is taken for a stage" in str(finding.evidence[0])
    assert str(finding.cure) == "give the sizes by --pp, --dp and --tp"


def profile(rank: int | None, *, late: float = 0.0, cat: str = "user_annotation") -> dict[str, Any]:
    """Returns what torch.profiler keeps of one rank's forward and backward, of a stage a rank."""
    stage = rank or 0
    events = [
        {"name": f"PP:{stage}{kind}0", "ph": "X", "cat": cat, "ts": late + at, "dur": 5.5}
        for at, kind in ((10.0 * stage, "F"), (200.0 - 10.0 * stage, "B"))
    ]
    about = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 12}}
    return {"traceEvents": events, "baseTimeNanoseconds": 1_700_000_000_000_000_000, **about}


def test_two_kineto_files_of_one_rank_are_refused(tmp_path: Path) -> None:
    for late, name in enumerate(("a.json", "b.json")):
        write(tmp_path / name, profile(0, late=late))
    with pytest.raises(InputError, match="rank 0 stands twice"):
        read_trace([tmp_path])


@pytest.mark.parametrize("mixed", ["sizes", "times"])
def test_profiles_of_two_runs_are_refused(tmp_path: Path, mixed: str) -> None:
    first = write(tmp_path / "a.json", {**profile(0), "host_name": "a"})
    late = {"sizes": 0.0, "times": 3_600e6}[mixed]
    other = {**profile(1, late=late), "host_name": "a"}
    if mixed == "sizes":
        other["distributedInfo"] = {"rank": 1, "world_size": 4}
    second = write(tmp_path / "b.json", other)
    with pytest.raises(InputError, match=r"^two runs are mixed: ") as refused:
        read_trace([tmp_path])
    assert {str(refused.value.values[name]) for name in ("first", "second")} == {
        str(first),
        str(second),
    }
    write(second, {**profile(1, late=3_600e6), "host_name": "b"})  # a host whose clock is off
    assert read_trace([tmp_path]).ranks == (0, 1)


def test_a_copy_of_another_tools_file_counts_once(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        shutil.copy(GOLDENS / "megatronapp" / "pp4_iter10.json", tmp_path / name)
    trace = read_trace([tmp_path])
    assert len(trace.spans) == 4 * 2 * 32
    copied = f"{tmp_path / 'b.json'} holds the same as {tmp_path / 'a.json'}; counted once"
    assert str(trace.warnings[0]) == copied


@pytest.mark.parametrize("text", ["", "{", '[{"ts": NaN}]', "{}", "\x00\xff"])
def test_a_rank_whose_file_cannot_be_read_is_reported_and_the_others_are_read(
    tmp_path: Path, text: str
) -> None:
    for rank in (0, 1):
        write(tmp_path / f"rank{rank}.json", profile(rank))
    (tmp_path / "rank2.json").write_text(text)
    trace = read_trace([tmp_path])
    assert (trace.ranks, trace.missing) == ((0, 1), tuple(range(2, 12)))
    said = [str(each) for each in trace.warnings if "rank2.json" in str(each)]
    assert len(said) == 1 and said[0].endswith("; it is left out")


def test_files_of_which_none_can_be_read_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{")
    with pytest.raises(InputError, match=r"a\.json is not usable JSON"):
        read_trace([tmp_path])


@pytest.mark.parametrize(
    "pattern", ["rank{}.json", "trace_{}.json", "host-Rank_{}.0.pt.trace.json"]
)
def test_ranks_that_files_do_not_say_are_those_of_their_names(tmp_path: Path, pattern: str) -> None:
    for rank in range(12):
        document = {**profile(rank), "distributedInfo": {}}
        write(tmp_path / pattern.format(rank), document)
    trace = read_trace([tmp_path])
    assert first_forwards(trace) == [(rank, rank, 0) for rank in range(12)]


def test_a_gpus_own_copies_of_the_ranges_are_left_out(tmp_path: Path) -> None:
    on_stream = profile(0, late=3.0, cat="gpu_user_annotation")["traceEvents"]
    document = profile(0)
    document["traceEvents"] += [{**each, "tid": 7} for each in on_stream]
    trace = read_trace([write(tmp_path / "rank0.json", document)])
    assert (trace.spans.start_ns.tolist(), len(trace.spans)) == ([0, 200_000], 2)


def test_a_profile_without_pipeline_ranges_says_which_schedules_name_them(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", {"traceEvents": [], "distributedInfo": {"rank": 0}})
    with pytest.raises(InputError, match="hold no pipeline action"):
        read_trace([path])


# ----------------------------------------------------------------------- the other tools


def test_megatronapps_chunks_are_virtual_stages() -> None:
    trace = read_trace([GOLDENS / "megatronapp"])
    spans = trace.spans
    assert len(spans) == 4 * 2 * 32
    assert sorted(set(spans.stage[spans.rank == 1].tolist())) == [1, 5, 9, 13]
    assert sorted(set(spans.microbatch.tolist())) == list(range(8))
    (step,) = measure(trace).steps
    assert step.step == 10


def test_a_timeline_without_stages_says_what_its_events_lack(tmp_path: Path) -> None:
    rows = [
        {"name": name, "ph": "X", "pid": 0, "ts": at, "dur": 5, "args": {"model_chunk": 0}}
        for at, name in ((0, "forward"), (10, "backward"))
    ]
    with pytest.raises(InputError, match="forwards and backwards without a pp_rank"):
        read_trace([write(tmp_path / "no_stages.json", {"traceEvents": rows})])


MEGASCAN = {
    0: [
        ("forward-warmup", 0, 10),
        ("forward", 10, 20),
        ("backward", 50, 70),
        ("backward", 90, 110),
    ],
    1: [("forward", 10, 20), ("backward", 30, 50), ("forward", 50, 60), ("backward", 70, 90)],
}
"""What two stages do in an iteration: name, start and end in microseconds."""


def megascan(rank: int, iteration: int) -> list[dict[str, Any]]:
    """Returns the aggregated events of one rank of two; layers lie within a forward."""
    about = {"dp_rk": 0, "pp_rk": rank, "tp_rk": 0, "g_rk": rank, "iteration": iteration}
    place = {"ph": "X", "cname": "rail_idle", "pid": rank, "tid": 0, "args": about}
    work = [*MEGASCAN[rank], ("_reduce", 12, 14), ("forward", 13, 14), ("optimizer", 110, 120)]
    return [{**place, "name": name, "ts": at, "dur": end - at} for name, at, end in work]


def own_records(rank: int, iterations: int) -> list[dict[str, Any]]:
    """Returns what a rank writes by itself: nanoseconds since its iteration began."""
    records: list[dict[str, Any]] = []
    about = {"dp_rk": 0, "pp_rk": rank, "tp_rk": 0, "g_rk": rank}
    for _ in range(iterations):
        edges = [
            (1000 * at, order, {"name": name, "ph": phase, "rel_ts": 1000 * at, **about})
            for name, start, end in MEGASCAN[rank]
            for at, order, phase in ((start, 1, "B"), (end, 0, "E"))
        ]
        records.append({"name": "iteration", "ph": "B", "pad_before": 5, "rel_ts": 0})
        records += [event for *_, event in sorted(edges, key=lambda edge: edge[:2])]
        records.append({"name": "iteration", "ph": "E", "duration_wall": 99, "rel_ts": 1})
    return records


@pytest.mark.parametrize("form", ["aggregated", "own files"])
def test_megascans_timelines_are_read_aggregated_and_rank_by_rank(
    tmp_path: Path, form: str
) -> None:
    if form == "aggregated":
        write(
            tmp_path / "benchmark.json", [e for i in (0, 1) for r in (0, 1) for e in megascan(r, i)]
        )
    else:
        for rank in (0, 1):
            name = f"benchmark-data-0-pipeline-{rank}-tensor-0.json"
            write(tmp_path / name, own_records(rank, 2))
    trace = read_trace([tmp_path])
    assert first_forwards(trace) == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    stats = measure(trace)
    assert [step.window_ns for step in stats.steps] == [110_000, 110_000]
    assert stats.bubble == pytest.approx(1 - 120 / 220)


def test_an_iteration_that_two_files_hold_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "benchmark.json", [event for rank in (0, 1) for event in megascan(rank, 0)])
    write(tmp_path / "benchmark-data-0-pipeline-1-tensor-0.json", own_records(1, 2))
    with pytest.raises(InputError, match="both hold iteration 0 of rank 1; give the files of one"):
        read_trace([tmp_path])


def test_ndtimelines_metrics_number_their_microbatches_in_turn(tmp_path: Path) -> None:
    def event(name: str, rank: int, at: int) -> dict[str, Any]:
        arguments = {"rank": rank, "step": 7, "tp": 0, "pp": rank}
        place = {"pid": "dp rank[0]", "tid": 10 * rank}
        return {"name": name, "ph": "X", "ts": at, "dur": 4, "args": arguments, **place}

    names = ["forward-compute", "forward-send-backward-recv", "forward-compute", "backward-compute"]
    events = [event(name, rank, 10 * at) for rank in (0, 1) for at, name in enumerate(names)]
    write(tmp_path / "trace_step7_8", events)
    trace = read_trace([tmp_path])
    assert first_forwards(trace) == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    kinds = [ActionKind(kind) for kind in trace.spans.kind[trace.spans.rank == 0]]
    assert kinds.count(ActionKind.SEND_F) == kinds.count(ActionKind.RECV_B) == 1
    assert trace.spans.peer[trace.spans.kind == ActionKind.SEND_F].tolist() == [1, 0]


def test_steps_that_each_begin_at_0_stand_one_after_another(tmp_path: Path) -> None:
    events = [
        {
            **{"name": "forward-compute", "ph": "X", "ts": 5, "dur": 4},
            "args": {"rank": 0, "step": step, "pp": 0},
        }
        for step in (1, 2, 3)
    ]
    starts = read_trace([write(tmp_path / "trace.json", events)]).spans.start_ns
    assert (starts[1:] > starts[:-1]).all()


def test_steps_that_only_touch_keep_their_times(tmp_path: Path) -> None:
    events = [
        {
            **{"name": name, "ph": "X", "ts": 1000 * step + at, "dur": length},
            "args": {"rank": rank, "step": step, "pp": rank},
        }
        for step in (1, 2, 3)
        for rank in (0, 1)
        for name, at, length in (("forward-compute", 10, 100), ("optimizer", 800, 190 + 40 * rank))
    ]
    spans = read_trace([write(tmp_path / "trace.json", events)]).spans
    first = [int(spans.start_ns[spans.step == step].min()) for step in (1, 2, 3)]
    assert first == [0, 1_000_000, 2_000_000]


def test_paddles_dynamic_records_are_read_from_each_ranks_file(tmp_path: Path) -> None:
    step = [("F0", 0, 0, 10), ("F1", 1, 10, 20), ("B0", 0, 20, 40), ("B1", 1, 40, 60)]
    for rank in (0, 1):
        later = [(name, microbatch, s + 100, e + 100) for name, microbatch, s, e in step]
        lines = [json.dumps(event) for event in pairs(rank, [*step, *later])]
        path = tmp_path / f"profile_record_tmp_file_for_rank_{rank}"
        path.write_text("\n".join([*lines, "not a record", '{"name": "F9", "ph": "B"']))
    trace = read_trace([tmp_path])
    assert len(trace.spans) == 16
    assert first_forwards(trace) == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    assert sorted(set(trace.spans.step.tolist())) == [0, 1]
    # Times are milliseconds in Paddle's file, though the format means microseconds.
    assert int(trace.spans.end_ns[0] - trace.spans.start_ns[0]) == 10_000_000
    files = [tmp_path / f"profile_record_tmp_file_for_rank_{rank}" for rank in (1, 0)]
    assert len(read_trace(files).spans) == 16


def test_paddles_joined_file_says_its_virtual_stages(tmp_path: Path) -> None:
    events = [
        *pairs(0, [("F0_VP0", 0, 0, 1), ("F0_VP1", 0, 1, 2)]),
        *pairs(1, [("F0_VP0", 0, 1, 2)]),
    ]
    trace = read_trace([write(tmp_path / "pipeline_profile.json", events)])
    assert first_forwards(trace) == [(0, 0, 0), (0, 2, 0), (1, 1, 0)]


def test_replicas_in_either_order_are_told_from_stages(tmp_path: Path) -> None:
    for order, stages in (("megatron", (0, 0, 1, 1)), ("custom", (0, 1, 0, 1))):
        events = [
            {
                **{"name": "forward-compute", "ph": "X", "ts": 5, "dur": 4},
                "args": {"rank": rank, "step": 1, "pp": stage},
            }
            for rank, stage in enumerate(stages)
        ]
        trace = read_trace([write(tmp_path / "trace_step1_2", events)])
        assert trace.job.framework == order
        assert trace.layout is not None
        assert trace.layout.groups("pp").lists() == (
            [[0, 2], [1, 3]] if order == "megatron" else [[0, 1], [2, 3]]
        )


# ----------------------------------------------------------------------- hostile and broken


def test_a_file_cut_off_in_the_middle_gives_what_came_before(tmp_path: Path) -> None:
    text = (GOLDENS / "megatronapp" / "pp4_iter10.json").read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    trace = read_trace([tmp_path])
    assert 100 < len(trace.spans) < 256
    assert "ends in the middle" in str(trace.warnings[0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 200_000, "not usable JSON"),
        ('[{"ts": NaN}]', "NaN is no number"),
        ('[{"ts": Infinity}]', "Infinity is no number"),
        ("{}", "holds no events"),
        ('{"traceEvents": 3}', "holds no events"),
        ("", "not usable JSON"),
        ("\x00\xff", "not usable JSON"),
        ('[{"name": "x"}]', "of no tool that is known"),
    ],
    ids=["deep", "nan", "infinity", "empty object", "no list", "empty", "binary", "foreign"],
)
def test_a_hostile_or_foreign_file_is_refused_in_one_sentence(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_trace([path])


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    packed = gzip.compress(b"[]")
    path.write_bytes(packed[:-8] + b"\x00" * 8)  # the sum of its bytes is another one
    with pytest.raises(InputError, match="cannot be read"):
        read_trace([path])


def test_numbers_out_of_all_bounds_are_left_out() -> None:
    assert [whole(each) for each in (3, 3.0, "3", True, 2**80, 3.5, "x", None)] == [
        *(3, 3, 3),
        *(None,) * 5,
    ]
    assert [nanoseconds(each) for each in (1.5, 2, 1e300, "1", None)] == [
        1500,
        2000,
        None,
        None,
        None,
    ]


def test_a_foreign_file_beside_the_others_is_named_and_left_out(tmp_path: Path) -> None:
    shutil.copytree(KINETO, tmp_path, dirs_exist_ok=True)
    write(tmp_path / "notes.json", [{"name": "mine"}])
    trace = read_trace([tmp_path])
    assert (
        str(trace.warnings[0]) == f"{tmp_path / 'notes.json'} is of no tool that is known; left out"
    )


def test_files_of_two_tools_are_refused(tmp_path: Path) -> None:
    shutil.copytree(KINETO, tmp_path, dirs_exist_ok=True)
    shutil.copy(GOLDENS / "megatronapp" / "pp4_iter10.json", tmp_path)
    with pytest.raises(InputError, match="are mixed; give those of one run"):
        read_trace([tmp_path])


def test_our_own_timeline_beside_a_recording_changes_nothing(tmp_path: Path) -> None:
    Run().write(tmp_path)
    write(tmp_path / "trace.json", {"traceEvents": []})
    assert read_trace([tmp_path]).run == "run-a"


def test_sizes_given_lay_the_ranks_out() -> None:
    trace = read_trace([GOLDENS / "megatronapp"], {"pp": 2, "dp": 2})
    assert trace.layout is not None and trace.layout.sizes["dp"] == 2


def test_the_text_of_an_array_needs_no_end(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"a": 1},\n{"b": 2}')
    found = read_event_file(path)
    assert (found.events, found.cut_off) == ([{"a": 1}, {"b": 2}], True)
