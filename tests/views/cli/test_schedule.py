"""``serried schedule``: drawn, measured, written, and refused in one sentence."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.pipeline import ENTRIES, Costs, Request, generate, planned_spans, simulate, to_csv
from tests.conftest import Call
from tests.schemas.conform import conform
from tests.trace.recorded_run import Run

ONE = ("--stages", "4", "--microbatches", "8")

DRAWN = """\
1f1b: 4 ranks, 8 microbatches, 1 stage a rank

rank 0  F0F1F2F3············B0──F4B1──F5B2──F6B3──F7B4──··B5──··B6──··B7──
rank 1  ··F0F1F2········B0──F3B1──F4B2──F5B3──F6B4──F7B5──··B6──··B7──····
rank 2  ····F0F1····B0──F2B1──F3B2──F4B3──F5B4──F6B5──F7B6──··B7──········
rank 3  ······F0B0──F1B1──F2B2──F3B3──F4B4──F5B5──F6B6──F7B7──············

         F forward    B backward   · idle

makespan     33, of which work 24 on each rank
bubble       27.3% of the makespan, 37.5% over the ideal, 27.3% of the longest window
activations  4, 3, 2, 1 at most, counted to W; 4, 3, 2, 1 to I
idle         36 on all ranks: warm-up 6, dependency 18, cool-down 12
latency      each unit more adds 16 to the makespan
waits        9 for stage 1, 6 for stage 2, 3 for stage 3
closed form  (p - 1)(f + b) = 9, most idle time of any rank; exact for c = 0
closed form  min(m, p) = 4, most activations on any rank, counted to W; exact for any sizes
"""


def document(serried: Call, *words: str) -> dict[str, Any]:
    shown = serried("schedule", *words, "--format", "json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def test_a_small_schedule_is_drawn_with_its_numbers(serried: Call) -> None:
    assert serried("schedule", "1f1b", *ONE).out == DRAWN


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        (
            "en",
            "warning: PyTorch 2.13.0 (Schedule1F1B) refuses 1f1b of these sizes: 3 microbatches "
            "are fewer than 4 stages; Megatron Core 0.16.1 runs it cure: near these it runs 4 "
            "microbatches or 3 ranks",
        ),
        (
            "zh",
            "注意：PyTorch 2.13.0（Schedule1F1B）不接受这样大小的 1f1b：3 个微批次少于 4 个 "
            "stage；Megatron Core 0.16.1 可以运行 解决办法："
            "它能运行的相近大小：4 个微批次或 3 个 rank",
        ),
    ],
)
def test_a_package_that_refuses_the_sizes_is_named_below_the_drawing(
    serried: Call, lang: str, told: str
) -> None:
    sizes = ("--stages", "4", "--microbatches", "3", "--lang", lang)
    for names in ("1f1b", "1f1b,gpipe"):
        shown = serried("schedule", names, *sizes)
        assert shown.code == 0
        # A line may end after any Chinese character.
        assert told.replace(" ", "") in "".join(shown.out.split())
    for each in ("gpipe", "eager-1f1b"):
        shown = serried("schedule", each, *sizes)
        assert "PyTorch" not in shown.out


def test_the_document_names_the_package_the_rule_and_the_sizes_that_run(serried: Call) -> None:
    sizes = ("--stages", "4", "--microbatches", "17", "--group", "8")
    torch, megatron = document(serried, "interleaved-1f1b", *sizes, "--summary")["findings"]
    assert (torch["package"], torch["nearest"]["microbatches"]) == ("PyTorch", [16, 20])
    assert (megatron["package"], megatron["version"]) == ("Megatron Core", "0.16.1")
    assert megatron["nearest"]["group"] == [6, 9]
    assert megatron["evidence"] == megatron["in"]["en"]["evidence"]
    assert "最后一组剩 1 个" in megatron["in"]["zh"]["evidence"][0]
    assert document(serried, "1f1b", *ONE)["findings"] == []


def test_the_name_is_an_option_too_and_pp_means_stages(serried: Call) -> None:
    words = ("schedule", "--name", "1f1b", "--pp", "4", "--microbatches", "8")
    assert serried(*words).out == DRAWN


def test_small_letters_are_the_other_stages_of_a_rank(serried: Call) -> None:
    shown = serried("schedule", "zbv", "--stages", "2", "--microbatches", "3").out
    assert "rank 0  F0F1F2f0i0w0f1i1w1I0W0f2i2w2I1W1I2W2" in shown
    assert "rank 1  ··F0f0F1f1i0w0F2I0W0f2i1w1I1i2I2W1w2W2" in shown
    assert "small: other stages" in shown


def test_an_overlapped_pair_is_drawn_in_two_halves(serried: Call) -> None:
    shown = serried("schedule", "dualpipev", "--stages", "1", "--microbatches", "2").out
    assert "rank 0  F0f0F1b0──f1─B0─b1──I1W1" in shown


def test_a_picture_too_wide_for_the_terminal_is_drawn_to_scale(serried: Call) -> None:
    lines = serried("schedule", "1f1b", "--stages", "3", "--microbatches", "500").out.splitlines()
    assert [len(line) for line in lines[2:5]] == [100, 100, 100]
    # 1,506 slots stand in 92 columns, so a column is wider than a microbatch; none is drawn twice.
    assert set(lines[2][8:]) <= set("FB0123456789─·")


def test_the_document_follows_the_design(serried: Call) -> None:
    found = document(serried, "zb-h1", "--stages", "2", "--microbatches", "2")
    assert found["schema"] == "serried.schedule/1"
    assert (found["name"], found["stages_per_rank"], found["microbatches"]) == ("zb-h1", 1, 2)
    assert found["actions"] == [
        ["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"],
        ["1F0", "1I0", "1F1", "1I1", "1W0", "1W1"],
    ]
    assert found["makespan"] == 7
    assert found["bubble"] == {"makespan": 1 / 7, "over_ideal": 1 / 6, "window": 1 / 7}
    assert found["peak_activations"] == {"to_weight": [2, 2], "to_input": [2, 1]}
    assert found["idle"]["total"] == 2
    assert found["idle_intervals"][0] == {
        "rank": 0, "start": 2, "end": 3, "cause": "dependency", "waits_for": "1I0",
    }  # fmt: skip
    assert found["critical_path"][0] == {
        "rank": 0, "action": "0F0", "message": False, "start": 0, "end": 1,
    }  # fmt: skip


def test_a_summary_leaves_the_lists_out(serried: Call) -> None:
    whole = document(serried, "zbv", *ONE)
    summary = document(serried, "zbv", *ONE, "--summary")
    lists = {"actions", "critical_path", "idle_intervals", "latency_adds"}
    assert set(whole) - set(summary) == lists
    assert all(whole[key] == summary[key] for key in summary)


def test_several_are_compared_in_one_table_and_one_document(serried: Call) -> None:
    shown = serried("schedule", "gpipe,1f1b,zb-h2", *ONE).out
    table = shown[shown.index("schedule ") :].splitlines()
    assert [line.split() for line in table[1:]] == [
        ["gpipe", "33", "24", "27.3%", "37.5%", "27.3%", "8", "8", "6"],
        ["1f1b", "33", "24", "27.3%", "37.5%", "27.3%", "4", "4", "16"],
        ["zb-h2", "27", "24", "11.1%", "12.5%", "0.0%", "7", "7", "3"],
    ]
    found = document(serried, "gpipe,1f1b", *ONE)
    conform(found, "serried.schedules/1")
    assert [each["name"] for each in found["schedules"]] == ["gpipe", "1f1b"]


def test_without_a_name_all_schedules_are_listed(serried: Call) -> None:
    shown = serried("schedule")
    assert shown.code == 0
    assert [line.split()[0] for line in shown.out.splitlines()[1:] if line[0] != " "] == [*ENTRIES]
    refused = serried("schedule", "--format", "json")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("serried: json is of a schedule and none is named; there are g")


@pytest.mark.parametrize("name", ENTRIES)
def test_every_name_answers(serried: Call, name: str) -> None:
    found = document(serried, "--name", name, "--stages", "4", "--microbatches", "16", "--summary")
    assert found["name"] == name


def test_times_are_exact_and_may_differ_by_stage(serried: Call) -> None:
    words = ("gpipe", "--stages", "2", "--microbatches", "1", "--forward", "1/3,0.5")
    assert document(serried, *words)["makespan"] == pytest.approx(4 + 5 / 6)
    words = ("gpipe", "--stages", "2", "--microbatches", "1", "--latency", "0.25")
    assert document(serried, *words)["makespan"] == 6.5


def test_every_option_of_time_counts(serried: Call) -> None:
    words: tuple[str, ...]
    words = ("gpipe", "--stages", "1", "--microbatches", "1", "--summary")
    for option, value, makespan in (
        ("--forward", "2", 4), ("--input-grad", "2", 4), ("--weight-grad", "2", 4),
        ("--backward", "5", 6), ("--recompute", "1", 4), ("--embedding", "1,2,3", 9),
        ("--loss", "1,2,3", 9), ("--all-reduce", "7", 10), ("--optimizer", "7", 10),
    ):  # fmt: skip
        assert document(serried, *words, option, value)["makespan"] == makespan
    words = ("gpipe", "--stages", "2", "--microbatches", "2", "--summary", "--latency", "1")
    assert document(serried, *words)["makespan"] == 11
    assert document(serried, *words, "--blocking")["makespan"] == 13
    assert document(serried, *words, "--message-bytes", "6", "--bandwidth", "2")["makespan"] == 17
    words = ("gpipe", "--stages", "2", "--microbatches", "1", "--recompute", "1", "--summary")
    assert document(serried, *words, "--recompute-early")["makespan"] == 7
    words = ("dualpipev", "--stages", "1", "--microbatches", "2", "--overlap", "2", "--summary")
    assert document(serried, *words)["makespan"] == 11


def test_a_memory_limit_bounds_auto_and_explains_the_rest(serried: Call) -> None:
    words = ("--stages", "4", "--microbatches", "12", "--memory-limit", "6", "--summary")
    assert document(serried, "auto", *words)["peak_activations"]["to_weight"] == [6] * 4
    causes = document(serried, "1f1b", "--stages", "2", "--microbatches", "4", "--memory-limit",
                      "2")["idle"]["causes"]  # fmt: skip
    assert causes["memory limit"] == 2
    found = document(serried, "auto", *words[:4], "--memory-limit", "10", "--memory", "2,-1,-1",
                     "--forward", "5", "--input-grad", "6", "--weight-grad", "4")  # fmt: skip
    assert max(found["peak_activations"]["to_input"]) <= 5


def test_a_schedule_beyond_the_limit_is_told(serried: Call) -> None:
    words = ("schedule", "1f1b", *ONE, "--memory-limit")
    told = "1f1b needs 4 on rank 0, more than the limit of 2; ranks beyond it: 2 of 4"
    assert f"memory       {told}\n" in serried(*words, "2").out
    assert "more than the limit" not in serried(*words, "4").out
    several = serried("schedule", "1f1b,zb-h2", *ONE, "--memory-limit", "4").out
    assert several.splitlines()[-1] == (
        "zb-h2 needs 7 on rank 0, more than the limit of 4; ranks beyond it: 4 of 4"
    )
    weighed = ("--memory", "2,-1,-1", "--memory-limit", "10")
    assert "more than the limit" not in serried("schedule", "auto", *ONE, *weighed).out


def test_names_may_be_written_in_capitals(serried: Call) -> None:
    assert serried("schedule", "1F1B", *ONE).out == DRAWN


def test_sizes_that_contradict_a_file_are_refused(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    assert serried("schedule", "1f1b", *ONE, "-o", str(path)).code == 0
    assert serried("schedule", str(path), *ONE).code == 0
    shown = serried("schedule", str(path), "--stages", "8")
    assert (shown.code, shown.err) == (
        2, "serried: plan.csv has stages=4, and --stages is 8; leave that out\n",
    )  # fmt: skip


def test_groups_and_chunks_are_passed_on(serried: Call) -> None:
    words = ("interleaved-1f1b", *ONE, "--chunks", "3", "--group", "8", "--moe-overlap")
    found = document(serried, *words)
    made = generate("interleaved-1f1b", Request(4, 8, 3, 8, moe_overlap=True))
    assert found["actions"] == [made.texts(rank) for rank in range(4)]
    assert (found["group"], found["stages_per_rank"]) == (8, 3)


def test_a_group_where_there_are_none_is_left_aside(serried: Call) -> None:
    shown = serried("schedule", "1f1b", *ONE, "--group", "4")
    assert shown.out == DRAWN
    assert shown.err == "serried: 1f1b has no groups; --group does nothing to it\n"


def test_csv_goes_out_and_comes_back(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    assert serried("schedule", "v-half", *ONE, "-o", str(path)).code == 0
    assert path.read_text(encoding="utf-8") == to_csv(generate("v-half", Request(4, 8)))
    ours, theirs = document(serried, str(path)), document(serried, "v-half", *ONE)
    assert ours["name"] == "plan.csv"
    assert [ours[key] for key in ("actions", "makespan", "idle")] == [
        theirs[key] for key in ("actions", "makespan", "idle")
    ]


def test_a_picture_is_written_as_svg(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    assert serried("schedule", "dualpipe", *ONE, "-o", str(path)).code == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<svg ")
    boxes = len(generate("dualpipe", Request(4, 8)).code)
    assert text.count("<g><title>") == boxes
    shown = serried("schedule", "1f1b", "--pp", "8", "--microbatches", "2000", "--format", "svg")
    assert (shown.code, shown.err) == (
        2,
        "serried: a picture of 32000 actions cannot be drawn; up to 20000 can, and serried serve "
        "shows any number\n",
    )


def test_a_picture_is_written_as_png(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    assert serried("schedule", "1f1b", *ONE, "-o", str(path)).code == 0
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    # 4 rows of 26 below 8, 30 for the legend, two pixels each.
    assert (width, height) == (2400, 2 * (8 + 4 * 26 + 30))
    length = struct.unpack(">I", data[33:37])[0]
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8)
    page = lines.reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)
    # The first cell of rank 0 is a forward, and the last column of rank 3 is idle.
    assert page[2 * 26, 2 * 72].tolist() == [0x50, 0x93, 0xC2]
    assert page[2 * (8 + 3 * 26 + 11), 2 * 1180].tolist() == [0xF1, 0xF3, 0xF5]


def test_a_chrome_trace_holds_every_action(serried: Call) -> None:
    shown = serried("schedule", "dualpipev", "--pp", "2", "--microbatches", "4", "--format",
                    "chrome")  # fmt: skip
    events = [each for each in json.loads(shown.out)["traceEvents"] if each["ph"] == "X"]
    spans = planned_spans(simulate(generate("dualpipev", Request(2, 4)), Costs()))
    assert len(events) == len(spans)
    assert events[0] == {
        "ph": "X", "pid": 0, "tid": 1, "name": "0F0", "cat": "F", "ts": 0.0, "dur": 1000.0,
        "args": {"stage": 0, "microbatch": 0},
    }  # fmt: skip
    assert {each["tid"] for each in events} == {1, 2}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("1f1b",), "the number of stages is missing; give it, such as --stages 4"),
        (("1f1b", "--pp", "4"),
         "the number of microbatches is missing; give it, such as --microbatches 4"),
        (("1f1b", "--pp", "four"), "stages=four is not a whole number; one such as 16 is"),
        (("1f2b", *ONE), "there is no schedule '1f2b'; there are "),
        (("1f1b", *ONE, "--forward", "-1"),
         "forward=-1 cannot be; it needs a number of 0 or more"),
        (("1f1b", *ONE, "--latency", "nan"),
         "latency=nan is no number; it needs one of 0 or more"),
        (("1f1b", *ONE, "--forward", "fast"),
         "--forward takes numbers, such as 10, 0.5 or 1/3; it got 'fast'"),
        (("1f1b", *ONE, "--latency", "1/0"),
         "--latency takes numbers, such as 10, 0.5 or 1/3; it got '1/0'"),
        (("1f1b", *ONE, "--latency", "1,2"), "--latency takes one number; it got 2"),
        (("1f1b", *ONE, "--loss", "1,2"),
         "--loss takes three numbers, for F, I and W, such as 1,0,2; it got 2"),
        (("1f1b,gpipe", *ONE, "--format", "csv"),
         "csv holds one schedule and 2 are named; name one, or take table or json"),
        (("1f1b", *ONE, "-o", "plan.pdf"), "plan.pdf has no suffix that says what to write; "),
        (("none.csv",), "none.csv cannot be read: No such file or directory\n"),
        (("1f1b", *ONE, "--forward", "inf"),
         "forward=inf is no number; it needs one of 0 or more"),
        (("1f1b", *ONE, "--memory-limit", "nan"),
         "memory-limit=nan is no number; it needs one of 0 or more"),
        (("auto", *ONE, "--memory-limit", "inf"),
         "memory-limit=inf is no number; it needs one of 0 or more"),
        (("1f1b", *ONE, "--memory-limit", "0"),
         "memory-limit=0 holds no activation; a schedule needs room for at least 1"),
        (("1f1b", "--name", "zb-h1", *ONE),
         "schedules are named twice, '1f1b' and --name 'zb-h1'; name them once"),
        (("plans",), "there is no schedule 'plans'; there are "),
        (("dualpipe", "--pp", "3", "--microbatches", "8"), "dualpipe with 3 ranks cannot be; "),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(
    serried: Call, words: tuple[str, ...], sentence: str
) -> None:
    shown = serried("schedule", *words)
    assert shown.code == 2
    assert shown.err.startswith(f"serried: {sentence}")
    assert shown.err.count("\n") == 1


def test_a_recorded_run_gives_the_plan_its_times(serried: Call, tmp_path: Path) -> None:
    Run().write(tmp_path)
    planned = document(serried, "1f1b", *ONE, "--fit", str(tmp_path), "--summary")
    assert planned["makespan"] == Run().window_ns
    shorter = document(serried, "zb-h1", *ONE, "--fit", str(tmp_path), "--summary")
    assert shorter["makespan"] < planned["makespan"]


@pytest.mark.parametrize("typed", [("--forward", "2"), ("--backward", "3", "--input-grad", "1")])
def test_times_of_a_run_and_typed_ones_are_not_mixed(
    serried: Call, tmp_path: Path, typed: tuple[str, ...]
) -> None:
    shown = serried("schedule", "1f1b", *ONE, "--fit", str(tmp_path), *typed)
    names = "--forward" if len(typed) == 2 else "--input-grad and --backward"
    assert shown.code == 2
    assert shown.err == (
        f"serried: --fit takes the times of {tmp_path}, and {names} says others; "
        "leave out one of them\n"
    )


def test_a_million_actions_are_measured(serried: Call) -> None:
    found = document(serried, "interleaved-1f1b", "--stages", "64", "--microbatches", "1024",
                     "--chunks", "8", "--summary")  # fmt: skip
    assert found["makespan"] == (1024 * 8 + 63) * 3
