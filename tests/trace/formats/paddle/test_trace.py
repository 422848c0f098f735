"""Paddle's worker logs: read whole and in linear time, as a Trace and as its two timelines."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.paddle.log import read_paddle_logs
from serried.trace.formats.paddle.timeline import (
    CHROME,
    PERFETTO,
    num_left_out,
    write_paddle_timelines,
)
from serried.trace.formats.paddle.trace import action_of, paddle_trace
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.model.tracks import stages_of

SAMPLES = Path(__file__).parents[3] / "goldens" / "traces" / "paddle"
LINE = (
    "I1020 09:15:07.26 22317 standalone_executor.cc:217] Profiler Info: Job ({number}), "
    "type = {type}, micro_batch_id = {microbatch}, job_start_time = {start:.6f}, "
    "job_end_time = {end:.6f}\n"
)
T0 = 1_700_000_000_000


def line(type_: str, microbatch: int, start: float, end: float) -> str:
    return LINE.format(
        number=microbatch, type=type_, microbatch=microbatch, start=T0 + start, end=T0 + end
    )


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def timelines(sample: str, folder: Path) -> list[tuple[list[dict[str, Any]], Path]]:
    written = write_paddle_timelines(read_paddle_logs(SAMPLES / sample), folder)
    return [(events(path), SAMPLES / sample / path.name) for path in written]


def test_both_files_are_those_of_paddles_script(tmp_path: Path) -> None:
    for ours, theirs in timelines("single", tmp_path):
        assert ours == events(theirs)


def test_device_numbers_stay_in_the_chrome_file_and_name_the_perfetto_threads(
    tmp_path: Path,
) -> None:
    (chrome, theirs), (perfetto, _) = timelines("dev23", tmp_path)
    assert chrome == events(theirs)
    names = {e["tid"]: e["args"]["name"] for e in perfetto if e["ph"] == "M"}
    assert names == {2333: "STEP", 2334: "GPU:2", 2335: "GPU:3"}
    assert {event["tid"] for event in perfetto} == set(names)


def test_a_machine_is_called_what_its_folder_is_called(tmp_path: Path) -> None:
    (chrome, theirs), _ = timelines("multi", tmp_path)
    swapped = {"0": "1", "1": "0"}  # the script took machine1, listed first, for machine 0

    def renamed(event: dict[str, Any]) -> str:
        name, _, machine = event["tid"].partition("(machine:")
        tid = f"{name}(machine:{swapped[machine[0]]})" if machine else name
        return json.dumps({**event, "tid": tid}, sort_keys=True)

    assert sorted(map(renamed, chrome)) == sorted(
        json.dumps(event, sort_keys=True) for event in events(theirs)
    )
    assert next(e["ts"] for e in chrome if e["tid"] == "GPU0(machine:0)") == T0 * 1e3


def test_pieces_of_a_job_are_kept(tmp_path: Path) -> None:
    (chrome, theirs), _ = timelines("chunk", tmp_path)
    kept = [event for event in chrome if "chunk" in event["cat"]]
    assert [event for event in chrome if event not in kept] == events(theirs)
    assert len(kept) == 32
    assert {event["cname"] for event in kept} == {"rail_idle"}


def test_messages_are_left_out_as_by_paddles_script_and_kept_in_the_trace(tmp_path: Path) -> None:
    for ours, theirs in timelines("sendrecv", tmp_path):
        assert ours == events(theirs)
    assert num_left_out(read_paddle_logs(SAMPLES / "sendrecv")) == 16
    kinds = set(read_trace([SAMPLES / "sendrecv"]).spans.kind.tolist())
    assert {ActionKind.RECV_F, ActionKind.SEND_B} <= kinds


def test_messages_of_virtual_stages_stand_on_their_device_or_beside_it(tmp_path: Path) -> None:
    text = line("recv_forward0", 0, 0, 10) + line("forward0", 0, 10, 20)
    (tmp_path / "workerlog.0").write_text(text)
    write_paddle_timelines(read_paddle_logs(tmp_path), tmp_path)
    assert {e["tid"] for e in events(tmp_path / CHROME)} == {"GPU0", "Step"}
    assert [e["ts"] - T0 * 1e3 for e in events(tmp_path / CHROME) if e["cat"] == "step"] == [0, 2e4]
    (tmp_path / "workerlog.0").write_text(text + line("recv_forward0", 1, 12, 18))
    write_paddle_timelines(read_paddle_logs(tmp_path), tmp_path)
    tracks = {e["cat"]: e["tid"] for e in events(tmp_path / CHROME)}
    assert tracks["forward0"] == "GPU0"
    assert tracks["recv_forward0"].startswith("GPU0 messages")


@pytest.mark.parametrize("opener", ["forward", "forward0", "lr", "forward(chunk0)", "recv_forward"])
def test_a_step_begins_when_the_first_job_comes_again(tmp_path: Path, opener: str) -> None:
    step = [opener, "forward9", "backward", "optimizer"]
    for device in range(2):
        text = line("default", 0, 0, 1)
        for number in range(3):
            at = 100 * number + 10 * device
            text += "".join(
                line(each, 0, at + 5 * n, at + 5 * n + 5) for n, each in enumerate(step)
            )
            text += line(opener, 1, at + 20, at + 25) + line("default", 0, at + 25, at + 26)
        (tmp_path / f"workerlog.{device}").write_text(text)
    logs = read_paddle_logs(tmp_path)
    assert {job.step for log in logs.devices for job in log.jobs} == {0, 1, 2}
    write_paddle_timelines(logs, tmp_path)
    steps = [e for e in events(tmp_path / CHROME) if e["cat"] == "step"]
    shown = 5 if opener == "recv_forward" else 0
    assert [(e["name"], e["ts"] - T0 * 1e3) for e in steps] == [
        (f"step{number}", 1e3 * at)
        for number in range(3)
        for at in (100 * number + shown, 100 * number + 36)
    ]


def test_a_log_without_the_heading_counts_steps_from_that_of_another(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "single", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "workerlog.1"
    path.write_text(re.sub("Schedule Profiler .*", "", path.read_text()))
    assert read_paddle_logs(tmp_path).devices[1].jobs == (
        read_paddle_logs(SAMPLES / "single").devices[1].jobs
    )


@pytest.mark.parametrize("devices", ["0,1,2,3", "3,1,0,2"])
def test_threads_of_the_perfetto_file_are_numbered_by_machine_and_device(
    tmp_path: Path, devices: str
) -> None:
    for machine in range(12):
        for device in range(4):
            at = 10 * (4 * machine + device)
            path = tmp_path / f"machine{machine}" / f"workerlog.{device}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(line("forward", 0, at, at + 10))
    logs = read_paddle_logs(tmp_path, tuple(map(int, devices.split(","))), multi_machine=True)
    write_paddle_timelines(logs, tmp_path)
    names = {e["tid"]: e["args"]["name"] for e in events(tmp_path / PERFETTO) if e["ph"] == "M"}
    assert names == {2333: "STEP"} | {
        2334 + 4 * machine + device: f"GPU:{device}(machine:{machine})"
        for machine in range(12)
        for device in range(4)
    }
    begun = {e["tid"]: e["ts"] for e in events(tmp_path / PERFETTO) if e["cat"] == "forward"}
    assert begun == {2334 + n: 1e3 * (T0 + 10 * n + 10) for n in range(48)}


def test_machines_whose_names_differ_by_a_dash_keep_tracks_of_their_own(tmp_path: Path) -> None:
    names = ("machine1", "machine_1")
    for at, name in enumerate(names):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workerlog.0").write_text(line("forward", 0, 10 * at, 10 * at + 10))
    write_paddle_timelines(read_paddle_logs(tmp_path), tmp_path)
    tracks = {e["tid"] for e in events(tmp_path / CHROME)} - {"Step"}
    assert tracks == {f"GPU0(machine:{name})" for name in names}


def test_a_copy_of_a_machines_folder_counts_once(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "multi", tmp_path, dirs_exist_ok=True)
    shutil.copytree(tmp_path / "machine1", tmp_path / "machine1 (copy)")
    trace = read_trace([tmp_path])
    assert trace.job.world_size == 4
    (copied,) = trace.warnings
    same = f"{tmp_path / 'machine1 (copy)'} holds the same as {tmp_path / 'machine1'}; counted once"
    assert str(copied) == same


def test_jobs_that_intersect_get_tracks_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "workerlog.0").write_text(line("forward", 0, 0, 10) + line("backward", 0, 5, 15))
    write_paddle_timelines(read_paddle_logs(tmp_path), tmp_path)
    starts = {e["name"]: e["tid"] for e in events(tmp_path / CHROME) if e["ph"] == "B"}
    assert starts["forward_0"] == "GPU0"
    assert starts["backward_0"] == "GPU0 (2)"
    assert len({e["tid"] for e in events(tmp_path / PERFETTO)}) == 3


@pytest.mark.parametrize("sample", ["single", "sendrecv", "vpp", "chunk", "dev23"])
def test_the_bubble_of_two_stages_and_four_microbatches_is_a_fifth(sample: str) -> None:
    assert measure(read_trace([SAMPLES / sample])).bubble == pytest.approx(1 / 5)


def test_four_stages_on_two_machines_stand_in_machine_and_device_order() -> None:
    trace = read_trace([SAMPLES / "multi"])
    assert measure(trace).bubble == pytest.approx(3 / 11)
    assert [(host.name, host.ranks) for host in trace.hosts] == [
        ("machine0", (0, 1)),
        ("machine1", (2, 3)),
    ]
    assert set(zip(trace.spans.rank.tolist(), trace.spans.stage.tolist(), strict=True)) == {
        *((rank, rank) for rank in range(4)),
        *((rank, -1) for rank in range(4)),
    }


@pytest.mark.parametrize("in_pieces", [False, True])
def test_machines_are_brought_together_whatever_their_clocks(
    tmp_path: Path, in_pieces: bool
) -> None:
    late = [0, 31.25, -17.5, 4.125, 60, -3.75, 12, 8.5, -44, 2.5, 19, -8]
    pieces = ("backward(chunk0)", "backward(chunk1)") if in_pieces else ("backward",)
    for machine, by in enumerate(late):
        text = ""
        for microbatch in range(3):
            at = 1000 * microbatch + 10 * machine
            text += line("forward", microbatch, at + by, at + by + 10)
            at, length = 1000 * microbatch + 120 + 20 * (11 - machine), 20 / len(pieces)
            for number, type_ in enumerate(pieces):
                start = at + by + number * length
                text += line(type_, microbatch, start, start + length)
        (tmp_path / f"machine{machine}").mkdir()
        (tmp_path / f"machine{machine}" / "workerlog.0").write_text(text)
    trace = read_trace([tmp_path])
    assert [host.name for host in trace.hosts] == [f"machine{number}" for number in range(12)]
    moved = [clock.offset_ns for clock in trace.clocks]
    assert moved == pytest.approx([-1e6 * by for by in late], abs=100)
    # A stamp tells a microsecond, so each machine on the way adds no more than two of them.
    assert all((clock.uncertainty_ns or 0) <= 2_000 * at for at, clock in enumerate(trace.clocks))


def test_sizes_place_ranks_by_paddles_own_topology() -> None:
    trace = read_trace([SAMPLES / "multi"], {"pp": 2, "dp": 2})
    forwards = trace.spans.kind == ActionKind.F
    of_rank = dict(zip(trace.spans.rank[forwards], trace.spans.stage[forwards], strict=True))
    assert trace.layout is not None
    (column,) = trace.layout.groups_of(1)[trace.layout.kind_of("pp")]
    assert [of_rank[rank] for rank in column] == [0, 1]


def test_the_log_of_one_machine_is_of_the_rank_that_its_name_says() -> None:
    trace = read_trace([SAMPLES / "dev23"])
    assert (trace.ranks, trace.missing) == ((2, 3), ())
    assert trace.layout is not None
    assert trace.layout.groups("pp").lists() == [[2, 3]]
    assert {*trace.spans.stage[trace.spans.rank == 3].tolist()} == {-1, 1}
    again = read_trace([SAMPLES / "dev23"], {"pp": 2})
    assert again.spans.rank.tolist() == trace.spans.rank.tolist()


def test_sizes_that_do_not_make_the_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="but there are 4 ranks"):
        read_trace([SAMPLES / "multi"], {"pp": 3})


def test_virtual_stages_go_round_the_devices() -> None:
    assert action_of("backward_w1") == (ActionKind.W, 1)
    spans = read_trace([SAMPLES / "vpp"]).spans
    assert sorted(set(spans.stage[spans.rank == 1].tolist())) == [-1, 1, 3]


def test_steps_are_numbered_from_the_header_even_when_it_is_repeated(tmp_path: Path) -> None:
    header = "Schedule Profiler start at step 7 and end at step 9\n"
    step = line("lr", 0, 0, 1) + line("forward", 0, 1, 2) + line("backward", 0, 2, 3)
    (tmp_path / "workerlog.0").write_text(header + step + header + step)
    jobs = read_paddle_logs(tmp_path).devices[0].jobs
    assert [job.step for job in jobs if job.type == "forward"] == [7, 8]


def test_a_second_window_of_steps_is_numbered_by_its_own_header(tmp_path: Path) -> None:
    windows = [
        f"Schedule Profiler start at step {first} and end at step {first + 1}\n"
        + line("forward", 0, first, first + 1)
        for first in (3, 10)
    ]
    (tmp_path / "workerlog.0").write_text("".join(windows))
    assert [job.step for job in read_paddle_logs(tmp_path).devices[0].jobs] == [3, 10]


@pytest.mark.parametrize("sample", ["single", "sendrecv", "vpp", "chunk"])
def test_a_log_that_a_second_run_was_appended_to_is_said_to_hold_two(
    tmp_path: Path, sample: str
) -> None:
    shutil.copytree(SAMPLES / sample, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "workerlog.1"
    text = path.read_text()
    path.write_text(text + text)
    (found,) = (each for each in read_trace([tmp_path]).warnings if each.kind == "two runs")
    at = 2 + text.count("\n")
    assert f"workerlog.1 holds two runs, or one that was started again: in line {at} " in str(found)


def test_a_log_that_was_resumed_at_the_next_step_holds_one_run(tmp_path: Path) -> None:
    header = "Schedule Profiler start at step 7 and end at step 10\n"
    steps = [
        line("forward", 0, at, at + 1) + line("backward", 0, at + 1, at + 2) for at in (0, 2, 4)
    ]
    path = tmp_path / "workerlog.0"
    path.write_text(header + steps[0] + header + header + steps[1] + header + steps[2])
    assert not read_paddle_logs(tmp_path).findings
    path.write_text(header + steps[0] + header + header + "".join(steps))
    (found,) = read_paddle_logs(tmp_path).findings
    assert "in line 4 " in str(found)


@pytest.mark.parametrize("sample", ["single", "sendrecv", "vpp", "chunk", "dev23", "multi"])
def test_no_sample_is_taken_for_two_runs(sample: str) -> None:
    assert not read_paddle_logs(SAMPLES / sample).findings


def test_noise_of_any_kind_between_the_lines_changes_nothing(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "single", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "workerlog.0"
    noise = b"\xff\xfe\x00 Profiler Info: Job (\n" + b"x" * 20_000 + b"\n"
    path.write_bytes(noise.join(path.read_bytes().splitlines(keepends=True)))
    assert read_paddle_logs(tmp_path).devices == read_paddle_logs(SAMPLES / "single").devices


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    text = line("forward", 0, 0, 10) + line("backward", 0, 10, 30)
    (tmp_path / "workerlog.0").write_text(text[:-40])
    assert [job.type for job in read_paddle_logs(tmp_path).devices[0].jobs] == ["forward"]


def test_jobs_without_a_time_are_counted_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "workerlog.0").write_text(line("forward", 0, 0, 10) + line("x", 0, -T0, -T0))
    logs = read_paddle_logs(tmp_path)
    assert len(logs.devices[0].jobs) == 1
    assert "holds 1 jobs without a usable time" in str(logs.findings[0])


def test_a_device_without_a_log_is_reported_and_the_others_are_read() -> None:
    logs = read_paddle_logs(SAMPLES / "single", (0, 1, 2))
    assert [log.device for log in logs.devices] == [0, 1]
    assert str(logs.findings[0]).endswith("holds no workerlog.2")


@pytest.mark.parametrize(("machine", "device"), [(0, 1), (1, 0), (0, 0), (1, 1)])
def test_a_missing_log_leaves_the_stages_of_the_others(
    tmp_path: Path, machine: int, device: int
) -> None:
    shutil.copytree(SAMPLES / "multi", tmp_path, dirs_exist_ok=True)
    (tmp_path / f"machine{machine}" / f"workerlog.{device}").unlink()
    trace = read_trace([tmp_path])
    lost = 2 * machine + device
    assert (trace.job.world_size, trace.missing) == (4, (lost,))
    assert stages_of(trace) == {rank: [rank] for rank in range(4) if rank != lost}
    assert [host.ranks for host in trace.hosts] == [(0, 1), (2, 3)]


def test_a_gap_in_the_numbers_is_a_missing_log(tmp_path: Path) -> None:
    for device in (0, 1, 3):
        at = 10 * device
        (tmp_path / f"workerlog.{device}").write_text(line("forward", 0, at, at + 10))
    trace = read_trace([tmp_path])
    assert (trace.job.world_size, trace.missing) == (4, (2,))
    assert stages_of(trace) == {0: [0], 1: [1], 3: [3]}
    assert any("holds no workerlog.2" in str(each) for each in trace.warnings)
    (tmp_path / "workerlog.900000").write_text(line("forward", 0, 0, 1))
    assert len(read_paddle_logs(tmp_path).places) == 4  # no count of devices


def test_a_log_without_jobs_is_reported_and_the_others_keep_their_stages(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "multi", tmp_path, dirs_exist_ok=True)
    (tmp_path / "machine0" / "workerlog.1").write_bytes(b"")
    logs = read_paddle_logs(tmp_path)
    assert "workerlog.1 holds no timed job" in str(logs.findings[0])
    trace = paddle_trace(logs)
    assert (trace.job.world_size, trace.missing) == (4, (1,))
    assert stages_of(trace) == {0: [0], 2: [2], 3: [3]}


@pytest.mark.parametrize("lost", ["number", "time"])
def test_a_number_that_no_trace_can_hold_is_refused(tmp_path: Path, lost: str) -> None:
    text = (SAMPLES / "single" / "workerlog.0").read_text()
    old, new = {
        "number": ("micro_batch_id = 1,", "micro_batch_id = 999999999,"),
        "time": ("job_end_time = 1", "job_end_time = 9991"),
    }[lost]
    (tmp_path / "workerlog.0").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=r"is beyond \d+, the most that a trace can hold"):
        paddle_trace(read_paddle_logs(tmp_path))


def test_a_clock_decades_off_is_refused(tmp_path: Path) -> None:
    text = (SAMPLES / "single" / "workerlog.0").read_text()
    broken = line("forward", 0, 50 - T0, 60 - T0)
    (tmp_path / "workerlog.0").write_text(broken + text)
    with pytest.raises(InputError, match="are 54 years apart; one of its clocks is wrong"):
        paddle_trace(read_paddle_logs(tmp_path))


def test_machine10_comes_after_machine2(tmp_path: Path) -> None:
    for at, name in enumerate(("machine10", "machine2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workerlog.0").write_text(line("forward", 0, at, at + 1))
    assert read_paddle_logs(tmp_path).machines == ("machine2", "machine10")


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no workerlog\.N file"):
        read_paddle_logs(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        read_paddle_logs(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no folder whose name begins with machine"):
        read_paddle_logs(tmp_path, multi_machine=True)


def test_logs_without_a_timed_job_say_how_to_make_them(tmp_path: Path) -> None:
    (tmp_path / "workerlog.0").write_text("loss: 1.0\n")
    with pytest.raises(InputError, match="hold no timed job; run with"):
        read_paddle_logs(tmp_path)


def test_logs_without_an_action_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "workerlog.0").write_text(line("lr", 0, 0, 1))
    with pytest.raises(InputError, match="holds no forward, no backward and no message"):
        paddle_trace(read_paddle_logs(tmp_path))


def test_several_folders_are_refused_where_one_holds_paddles_logs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="put each machine's logs into machine0"):
        read_trace([SAMPLES / "single", tmp_path])


def test_timelines_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    (tmp_path / CHROME).mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_paddle_timelines(read_paddle_logs(SAMPLES / "single"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CHROME]
