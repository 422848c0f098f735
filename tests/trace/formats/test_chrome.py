"""Chrome JSON keeps every span and every rule that Perfetto asks for."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind, Span
from serried.errors import InputError
from serried.trace.formats.chrome import write_chrome
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from serried.trace.model.tracks import SLICES, THREADS
from tests.trace.chrome_rules import Checked, checked
from tests.trace.measure.test_statistics import traced
from tests.trace.recorded_run import Clock, Run

RUN = Run(pp=4, tp=1, dp=2, num_microbatches=4, num_steps=2)


def written(trace: Trace, folder: Path) -> Checked:
    path = folder / "trace.json"
    write_chrome(trace, path)
    return checked(path.read_text(encoding="utf-8"))


def ns(microseconds: Decimal) -> int:
    return int(microseconds * 1000)


# ----------------------------------------------------------------------- slices


def test_every_span_is_one_slice_with_its_times_and_action(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run")])

    found = written(trace, tmp_path)

    shown = Counter(
        (e["pid"], e["args"]["action"], e["args"]["step"], ns(e["ts"]), ns(e["dur"]))
        for e in found.slices
    )
    assert shown == Counter(
        (s.rank, str(s.action), s.step, s.start_ns, s.duration_ns) for s in trace.spans
    )


def test_a_slice_says_stage_microbatch_step_and_peer(tmp_path: Path) -> None:
    found = written(merge([RUN.write(tmp_path / "run")]), tmp_path)

    (send,) = [
        e for e in found.slices
        if (e["pid"], e["args"]["action"], e["args"]["step"]) == (4, "2SEND_F3", 1)
    ]  # fmt: skip
    assert send["name"] == "send forward"
    assert send["args"] == {
        "action": "2SEND_F3", "step": 1, "stage": 2, "microbatch": 3, "peer": 6
    }  # fmt: skip
    (step_end,) = [
        e for e in found.slices if e["name"] == "optimizer" and e["pid"] == 4 and e["args"]["step"]
    ]
    assert step_end["args"] == {"action": "OPTIMIZER", "step": 1}


def test_every_kind_of_action_has_a_name_of_its_own_and_a_thread() -> None:
    assert set(SLICES) == set(ActionKind)
    assert len({name for name, _ in SLICES.values()}) == len(ActionKind)
    assert {thread for _, thread in SLICES.values()} == set(THREADS)


def test_times_keep_their_nanoseconds_after_days(tmp_path: Path) -> None:
    day = 86_400 * 10**9
    spans = [
        Span(0, Action.parse("0F0"), 0, 0, 1),
        Span(0, Action.parse("0B0"), 0, day + 1, day + 3),
    ]

    found = written(traced(spans, Run(pp=1).job), tmp_path)

    assert [(ns(e["ts"]), ns(e["dur"])) for e in found.slices] == [(0, 1), (day + 1, 2)]


# ----------------------------------------------------------------------- order and names


def test_ranks_are_processes_named_by_stage_and_node_in_order(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run")])
    trace = dataclasses.replace(trace, job=dataclasses.replace(trace.job, gpus_per_node=4))

    found = written(trace, tmp_path)

    assert [found.processes[rank]["name"] for rank in (0, 3, 4, 7)] == [
        "rank 0 · stage 0 · node 0",
        "rank 3 · stage 1 · node 0",
        "rank 4 · stage 2 · node 1",
        "rank 7 · stage 3 · node 1",
    ]


def test_a_rank_without_spans_is_still_a_process(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run", keep=lambda span: span.rank != 6)])

    assert written(trace, tmp_path).processes[6]["name"] == "rank 6 · node 0"


def test_a_rank_that_holds_two_stages_names_both(tmp_path: Path) -> None:
    spans = [Span(0, Action.parse(text), 0, 0, 1) for text in ("0F0",)]
    spans += [Span(0, Action.parse("2F0"), 0, 1, 2)]

    found = written(traced(spans, Run(pp=1).job), tmp_path)

    assert found.processes[0]["name"] == "rank 0 · stage 0, 2 · node 0"


def test_threads_part_compute_receives_sends_and_the_step(tmp_path: Path) -> None:
    found = written(merge([RUN.write(tmp_path / "run")]), tmp_path)

    held: dict[str, set[str]] = {}
    for event in found.slices:
        held.setdefault(found.thread_of(event), set()).add(event["name"])
    assert held == {
        "compute (emulated)": {"forward", "backward"},
        "receive": {"receive forward wait", "receive backward wait"},
        "send": {"send forward", "send backward"},
        "step": {"optimizer"},
    }
    order = sorted(
        (t for (pid, _), t in found.threads.items() if pid == 2), key=lambda t: t["sort_index"]
    )
    assert [thread["name"] for thread in order] == ["compute (emulated)", "receive", "send", "step"]


def test_emulated_compute_is_labelled_and_real_compute_is_not(tmp_path: Path) -> None:
    labels = {}
    for compute in ("real", "emulated"):
        run = dataclasses.replace(RUN, compute=compute)
        found = written(merge([run.write(tmp_path / compute)]), tmp_path)
        labels[compute] = {
            (found.thread_of(e), e["args"].get("compute"))
            for e in found.slices
            if e["name"] == "forward"
        }

    assert labels == {"real": {("compute", None)}, "emulated": {("compute (emulated)", "emulated")}}


def test_the_file_says_its_base_run_and_job(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run")])

    document = written(trace, tmp_path).document

    assert document["baseTimeNanoseconds"] == trace.base_ns
    assert document["metadata"]["run"] == "run-a"
    assert document["metadata"]["job"]["compute"] == "emulated"
    assert document["metadata"]["hosts"][0]["name"] == "a"


def test_a_name_with_control_characters_stays_readable_json(tmp_path: Path) -> None:
    trace = dataclasses.replace(merge([RUN.write(tmp_path / "run")]), run='a\n"\x7f\x00ü')

    write_chrome(trace, tmp_path / "trace.json")

    text = (tmp_path / "trace.json").read_text(encoding="utf-8")
    assert not set(text) & {"\x00", "\x7f"}
    assert json.loads(text)["metadata"]["run"] == 'a\n"\x7f\x00ü'


# ----------------------------------------------------------------------- overlaps


@given(
    times=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), min_size=1, max_size=30),
    kinds=st.lists(st.sampled_from(list(ActionKind)), min_size=30, max_size=30),
)
def test_spans_that_overlap_in_any_way_all_stand_on_threads_of_their_own(
    times: list[tuple[int, int]], kinds: list[ActionKind], tmp_path_factory: pytest.TempPathFactory
) -> None:
    spans = [
        Span(i % 2, Action(kind, 0, i), 0, start, start + duration)
        for i, ((start, duration), kind) in enumerate(zip(times, kinds, strict=False))
    ]

    found = written(traced(spans, Run(pp=2).job), tmp_path_factory.mktemp("overlap"))

    assert len(found.slices) == len(spans)


def test_a_send_that_lasts_into_the_next_gets_a_second_thread(tmp_path: Path) -> None:
    spans = [
        Span(0, Action.parse(f"0SEND_F{i}"), 0, start, end, 1)
        for i, (start, end) in enumerate([(0, 10), (5, 15), (10, 20)])
    ]

    found = written(traced(spans, Run(pp=2).job), tmp_path)

    assert [found.thread_of(event) for event in found.slices] == ["send", "send 2", "send"]


def test_a_wait_of_no_length_needs_no_thread_of_its_own(tmp_path: Path) -> None:
    times = [(0, 10), (0, 0), (10, 10), (10, 20)]
    spans = [Span(0, Action(ActionKind.RECV_F, 1, i), 0, *each) for i, each in enumerate(times)]

    found = written(traced(spans, Run(pp=2).job), tmp_path)

    assert [found.thread_of(event) for event in found.slices] == ["receive"] * 4


# ----------------------------------------------------------------------- arrows


def test_an_arrow_runs_from_each_send_to_what_was_computed_from_it(tmp_path: Path) -> None:
    found = written(merge([RUN.write(tmp_path / "run")]), tmp_path)

    ends = [(a["s"]["slice"], a["f"]["slice"]) for a in found.arrows.values()]
    assert len(ends) == 2 * (RUN.pp - 1) * RUN.num_microbatches * RUN.dp * RUN.num_steps
    for send, computed in ends:
        forwards = send["name"] == "send forward"
        assert computed["name"] == ("forward" if forwards else "backward")
        assert computed["pid"] == send["args"]["peer"]
        assert computed["args"]["stage"] == send["args"]["stage"] + (1 if forwards else -1)
        assert computed["args"]["microbatch"] == send["args"]["microbatch"]
        assert computed["args"]["step"] == send["args"]["step"]


def test_an_arrow_of_a_split_backward_leads_to_its_input_gradient(tmp_path: Path) -> None:
    spans = [
        Span(1, Action.parse("1SEND_B0"), 0, 10, 20, 0),
        Span(0, Action.parse("0RECV_B0"), 0, 5, 21, 1),
        Span(0, Action.parse("0I0"), 0, 30, 40),
        Span(0, Action.parse("0W0"), 0, 25, 29),
    ]

    found = written(traced(spans, Run(pp=2).job), tmp_path)

    (arrow,) = found.arrows.values()
    assert arrow["f"]["slice"]["args"]["action"] == "0I0"


@pytest.mark.parametrize("lost", ["0SEND_F0", "1RECV_F0", "1F0"])
def test_a_message_that_lacks_an_end_has_no_arrow(tmp_path: Path, lost: str) -> None:
    spans = [
        Span(0, Action.parse("0SEND_F0"), 0, 10, 20, 1),
        Span(1, Action.parse("1RECV_F0"), 0, 0, 21, 0),
        Span(1, Action.parse("1F0"), 0, 22, 30),
    ]
    left = [span for span in spans if span.action != Action.parse(lost)]

    whole = written(traced(spans, Run(pp=2).job), tmp_path)
    found = written(traced(left, Run(pp=2).job), tmp_path)

    assert (len(whole.arrows), len(found.arrows)) == (1, 0)


def test_an_arrow_that_would_run_backwards_is_left_out(tmp_path: Path) -> None:
    clocks = [Clock("a")] * 4 + [Clock("b", late_ns=-500_000_000)] * 4
    trace = merge([RUN.write(tmp_path / "run", clocks=clocks)])

    found = written(trace, tmp_path)

    over_the_hosts_forwards = RUN.num_microbatches * RUN.dp * RUN.num_steps
    assert len(found.arrows) == 2 * 3 * 4 * 2 * 2 - over_the_hosts_forwards


# ----------------------------------------------------------------------- the file


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run")])
    path = tmp_path / "trace.json"
    path.write_text("old")

    write_chrome(trace, path)

    checked(path.read_text(encoding="utf-8"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run", "trace.json"]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run")])

    with pytest.raises(InputError) as caught:
        write_chrome(trace, tmp_path / "absent" / "trace.json")

    assert str(caught.value) == (
        f"{tmp_path}/absent/trace.json cannot be written: No such file or directory"
    )


def test_what_fails_midway_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = merge([RUN.write(tmp_path / "run")])
    path = tmp_path / "trace.json"
    path.mkdir()

    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        write_chrome(trace, path)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["run", "trace.json"]
