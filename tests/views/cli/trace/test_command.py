"""``serried trace`` writes one timeline and says what it measured, or says what is wrong."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from serried.trace.measure.what_if import RankGain, WhatIf
from serried.trace.model.record import HEADER_BYTES, file_name
from serried.views.trace.text import what_if_lines
from tests.conftest import Call, Outcome
from tests.schemas.conform import conform
from tests.trace.chrome_rules import checked
from tests.trace.perfetto_rules import read
from tests.trace.recorded_run import Clock, Run

TRACES = Path(__file__).parents[3] / "goldens" / "traces"

RUN = Run(pp=4, tp=1, dp=2, num_microbatches=8, num_steps=2)

STATS = """\
the bubble is 27.3% of a step of 33.0 ms; 1f1b itself has 27.3%
of fewer than 3 steps no rank is judged
next: …

run run-a: 8 ranks on 1 host, 2 complete steps, 656 spans
megatron, pp 4, dp 2, edp 2; 1f1b with 8 microbatches; compute is emulated by fixed times

step   window  busy, a rank  bubble
   0  33.0 ms       24.0 ms   27.3%
   1  33.0 ms       24.0 ms   27.3%

rank  stage  host  compute  receive wait    other  others wait
   0      0     a  24.0 ms       9.00 ms     0 ns
   1      0     a  24.0 ms       9.00 ms     0 ns
   2      1     a  24.0 ms       7.00 ms  2.00 ms
   3      1     a  24.0 ms       7.00 ms  2.00 ms
   4      2     a  24.0 ms       5.00 ms  4.00 ms
   5      2     a  24.0 ms       5.00 ms  4.00 ms
   6      3     a  24.0 ms       3.00 ms  6.00 ms
   7      3     a  24.0 ms       3.00 ms  6.00 ms

means               of 2 steps; none left out, for of fewer than 3 none is the usual one
bubble measured      27.3%   1 - busy / (ranks x window), of emulated compute; waits are not busy
idle time by cause  late peer 13.6%, cool-down 9.1%, warm-up 4.5%
bubble planned       27.3%   1f1b, each stage's own times; 27.3% with equal ones
order               that of 1f1b on every rank
communication       exposed 0.0% of the ranks' time, behind computations 0.2%
throughput          470.6 microbatches/s; a step every 34.0 ms, jitter 0.0%
critical path       backward 65.3%, forward 32.6%, optimizer 2.1%
                    rank 7 73.3%, rank 1 8.9%, rank 3 8.9%, 1 more rank
slowdown            1.001x   a step replays in 33.7 ms; in 33.7 ms with ideal durations
sends and receives pair: 384 of 384
--all prints every step, rank and figure
"""


def told(answer: Outcome) -> str:
    """Returns what was printed, whatever folder comes next."""
    return re.sub("(?m)^next: .*$", "next: …", answer.out)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RUN.write(tmp_path / "run")


# ----------------------------------------------------------------------- merge


def test_merge_writes_the_timeline_beside_the_recordings_and_measures_it(
    serried: Call, folder: Path
) -> None:
    answer = serried("trace", "merge", str(folder))

    path = folder / "trace.json"
    size = f"{path.stat().st_size / 1000:.0f} kB"
    assert answer.code == 0
    assert told(answer) == STATS
    assert answer.err == f"wrote {path}, {size}; open it in https://ui.perfetto.dev\n"
    assert len(checked(path.read_text(encoding="utf-8")).slices) == 656


def test_merge_writes_where_it_is_asked_to(serried: Call, folder: Path, tmp_path: Path) -> None:
    answer = serried("trace", "merge", str(folder), "-o", str(tmp_path / "other.JSON"))

    assert answer.code == 0
    checked((tmp_path / "other.JSON").read_text(encoding="utf-8"))
    assert not (folder / "trace.json").exists()


def test_merge_takes_the_folders_of_several_nodes(serried: Call, tmp_path: Path) -> None:
    RUN.write(tmp_path / "node0", only=range(4))
    RUN.write(tmp_path / "node1", only=range(4, 8))

    answer = serried("trace", "merge", str(tmp_path / "node0"), str(tmp_path / "node1"))

    assert told(answer) == STATS
    assert (tmp_path / "node0" / "trace.json").exists()


def test_merging_again_gives_the_same_bytes(serried: Call, folder: Path) -> None:
    texts = set()
    for _ in range(2):
        serried("trace", "merge", str(folder))
        texts.add((folder / "trace.json").read_bytes())

    assert len(texts) == 1


def test_merge_with_json_prints_nothing_else_to_stdout(serried: Call, folder: Path) -> None:
    answer = serried("trace", "merge", str(folder), "--format", "json")

    assert json.loads(answer.out)["schema"] == "serried.trace-stats/1"
    assert (folder / "trace.json").exists()


def test_merge_to_any_other_name_writes_a_store_that_stats_reads(
    serried: Call, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.store"
    answer = serried("trace", "merge", str(folder), "-o", str(path))

    assert (answer.code, told(answer)) == (0, STATS)
    assert re.fullmatch(f"wrote {path}, .* of Parquet; every trace command .*\n", answer.err)
    assert told(serried("trace", "stats", str(path))) == STATS


def test_merge_says_that_it_cannot_write(serried: Call, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "absent" / "trace.json"

    answer = serried("trace", "merge", str(folder), "-o", str(path))

    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"serried: {path} cannot be written: No such file or directory\n"


# ----------------------------------------------------------------------- stats


def test_stats_prints_the_same_and_writes_nothing(serried: Call, folder: Path) -> None:
    answer = serried("trace", "stats", str(folder))

    assert (answer.code, told(answer), answer.err) == (0, STATS, "")
    assert not (folder / "trace.json").exists()


def test_the_table_fits_a_hundred_columns(serried: Call, folder: Path) -> None:
    answer = serried("trace", "stats", str(folder))

    assert max(map(len, answer.out.splitlines())) <= 100


def test_real_compute_is_not_called_emulated(serried: Call, tmp_path: Path) -> None:
    folder = dataclasses.replace(RUN, compute="real").write(tmp_path / "run")

    answer = serried("trace", "stats", str(folder))

    assert "emulated" not in answer.out
    assert "compute  receive wait" in answer.out


def test_json_holds_all_that_the_table_shows(serried: Call, folder: Path) -> None:
    document = json.loads(serried("trace", "stats", str(folder), "--format", "json").out)

    assert document["run"] == "run-a"
    assert document["compute"] == "emulated"
    assert document["bubble"] == {
        "definition": "makespan",
        "measured": pytest.approx(3 / 11),
        "ideal": pytest.approx(3 / 11),
        "of_makespan": pytest.approx(3 / 11),
        "over_ideal": pytest.approx(3 / 8),
        "longest_window": pytest.approx(3 / 11),
        "causes": document["bubble"]["causes"],
        "exposed": pytest.approx(0.002, abs=0.002),
        "overlapped": pytest.approx(0.002, abs=0.002),
        "exchange": 0.0,
        "step_jitter": 0.0,
    }
    assert sum(document["bubble"]["causes"].values()) == pytest.approx(3 / 11)
    assert document["steps"][1] == {
        "step": 1,
        "window_us": 33_000.0,
        "busy_us": 192_000.0,
        "bubble": pytest.approx(3 / 11),
    }
    assert document["ranks"][7] == {
        "rank": 7,
        "compute_us": 24_000.0,
        "receive_wait_us": 3_000.0,
        "exchange_wait_us": 0.0,
        "other_us": 6_000.0,
        "work_us": {
            **{"forward": 8_000.0, "backward": 16_000.0, "weight": 0.0, "send": 40.0},
            **{"reduce": 0.0, "exchange": 0.0, "optimizer": 700.0},
        },
        "idle_us": document["ranks"][7]["idle_us"],
    }
    assert sum(document["ranks"][7]["idle_us"].values()) == pytest.approx(9_000.0)
    assert document["messages"] == {
        "spans": 384,
        "expected_spans": 384,
        "pairs": 192,
        "lone_sends": 0,
        "lone_receives": 0,
    }
    assert document["alignment"] == {
        "hosts": 1,
        "uncertainty_us": 0.0,
        "causality_violations": 0,
        "checked": 192,
        "clocks": [
            {
                **document["alignment"]["clocks"][0],
                **{"host": "a", "source": "own", "offset_us": 0.0, "drift_ppm": 0.0},
                "uncertainty_us": 0.0,
            }
        ],
    }
    assert document["what_if"]["slowdown"] == pytest.approx(1, abs=2e-3)
    assert [each["rank"] for each in document["what_if"]["without_rank"]] != []
    assert document["hosts"] == [{"name": "a", "ranks": list(range(8))}]
    assert (document["left_out"], document["missing"], document["torn"]) == ([], [], [])
    assert document["warnings"] == []


def test_long_tables_are_cut_and_all_prints_them(serried: Call, tmp_path: Path) -> None:
    folder = str(Run(pp=2, num_microbatches=1, num_steps=40).write(tmp_path / "run"))

    lines = serried("trace", "stats", folder).out.splitlines()
    assert "   …  37 more" in lines
    whole = serried("trace", "stats", folder, "--all").out.splitlines()
    assert "   …  37 more" not in whole
    assert len([each for each in whole if each.endswith("50.0%")]) >= 40


_OF_A_PIPELINE = re.compile(r"bubble|p - 1|1f1b|gpipe|schedule|stage|warm-up|cool-down|pair:")
_OF_ONE_IN_CHINESE = re.compile("气泡|p - 1|1f1b|调度|stage|预热|收尾|配上对")


@pytest.mark.parametrize("schedule", ["1f1b", "unknown"])
@pytest.mark.parametrize(("tp", "dp"), [(1, 1), (1, 4), (2, 2)])
def test_a_job_without_a_pipeline_is_told_in_no_words_of_one(
    serried: Call, tmp_path: Path, schedule: str, tp: int, dp: int
) -> None:
    run = Run(pp=1, tp=tp, dp=dp, num_microbatches=3, schedule=schedule)
    folder = run.write(tmp_path / "run", longer={0: 400_000})

    answer = serried("trace", "stats", str(folder))
    assert answer.code == 0
    assert "; no pipeline, 3 microbatches a step; " in answer.out
    assert "\nperiod  " in answer.out
    assert "idle measured " in serried("trace", "stats", str(folder), "--all").out
    assert not _OF_A_PIPELINE.search(answer.out)
    assert not _OF_ONE_IN_CHINESE.search(serried("trace", "stats", str(folder), "--lang", "zh").out)
    document = json.loads(serried("trace", "stats", str(folder), "--format", "json").out)
    assert document["bubble"]["ideal"] is None
    assert (document["order"], document["planned"]) == (None, None)
    assert document["what_if"]["last_stage_share"] is None


def test_a_replay_that_is_no_slower_is_called_no_slowdown() -> None:
    told = [
        what_if_lines(WhatIf(3, recorded, 0.1, (RankGain(0, 0.2),), 1.0, 1.0, {}))
        for recorded in (0.086, 0.1, 0.118)
    ]
    assert told[0] == [
        "no slowdown         a step replays in 86.0 ms; ideal durations would make it 100 ms"
    ]
    assert told[1] == ["no slowdown         a step replays in 100 ms, as with ideal durations"]
    assert told[2][0].startswith("slowdown            1.180x   a step replays in 118 ms; in 100 ms")


def test_another_schedule_has_no_ideal_beside_it(serried: Call, tmp_path: Path) -> None:
    run = Run(pp=2, schedule="zbv")

    answer = serried("trace", "stats", str(run.write(tmp_path / "run")), "--all")

    assert "bubble ideal        not known in closed form for zbv\n" in answer.out
    assert "sends and receives pair: 64 of 64\n" in answer.out


# ----------------------------------------------------------------------- damaged


def test_a_killed_rank_is_a_warning_and_its_last_step_left_out(serried: Call, folder: Path) -> None:
    path = folder / file_name(3)
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + 60 * 40 + 5])

    answer = serried("trace", "merge", str(folder))

    assert answer.code == 0
    assert answer.err.startswith(
        f"warning: {path} has no proper end: rank 3 was killed or still runs; "
        "its 60 complete spans are kept; if it runs, merge again later\n"
    )
    assert "8 ranks on 1 host, 1 complete step, " in answer.out
    assert "left out, not finished by every rank: step 1\n" in answer.out
    assert "sends and receives pair: 192 of 192\n" in answer.out


def test_a_missing_rank_is_a_warning_and_its_partners_are_alone(
    serried: Call, tmp_path: Path
) -> None:
    folder = RUN.write(tmp_path / "run", only=[0, 1, 2, 3, 4, 5, 6])

    answer = serried("trace", "stats", str(folder))

    assert answer.code == 0
    assert answer.err == (
        "warning: 1 of 8 ranks have no file here: 7; give the folders of all nodes at once\n"
    )
    assert (
        "sends and receives pair: 320 of 384; 16 sends and 16 receives without a partner\n"
        in answer.out
    )


def test_no_complete_step_is_said_instead_of_a_bubble(serried: Call, tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run", keep=lambda span: span.rank != 0)

    answer = serried("trace", "merge", str(folder))

    assert answer.code == 0
    assert "bubble: not measured, for no step was finished by every rank\n" in answer.out
    assert "left out, not finished by every rank: step 0, 1\n" in answer.out
    assert len(checked((folder / "trace.json").read_text(encoding="utf-8")).slices) > 0


def test_warnings_stand_in_the_json_too(serried: Call, tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run", only=range(7))

    document = json.loads(serried("trace", "stats", str(folder), "--format", "json").out)

    assert document["warnings"] == [
        {
            "kind": "missing",
            "ranks": [7],
            "evidence": ["1 of 8 ranks have no file here: 7"],
            "cure": "give the folders of all nodes at once",
        }
    ]


def test_clocks_of_two_hosts_are_judged_by_their_messages(serried: Call, tmp_path: Path) -> None:
    clocks = [Clock("a")] * 4 + [Clock("b", late_ns=-500_000_000)] * 4

    answer = serried("trace", "stats", str(RUN.write(tmp_path / "run", clocks=clocks)))

    told = r"clocks of 2 hosts: aligned to \S+ .?s; 0 of 192 messages received before sent\n"
    assert re.search(told, answer.out)


# ----------------------------------------------------------------------- refused


@pytest.mark.parametrize("command", ["merge", "stats"])
def test_two_runs_are_refused_in_one_line(serried: Call, tmp_path: Path, command: str) -> None:
    a = RUN.write(tmp_path / "a")
    b = dataclasses.replace(RUN, name="run-b").write(tmp_path / "b")

    answer = serried("trace", command, str(a), str(b))

    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        f"serried: two runs are mixed: {a}/rank-00000.spans is of run run-a, "
        f"{b}/rank-00000.spans of run run-b; merge each run from a folder of its own\n"
    )
    assert not (a / "trace.json").exists()


@pytest.mark.parametrize("command", ["merge", "stats"])
def test_an_empty_folder_is_refused_in_one_line(
    serried: Call, tmp_path: Path, command: str
) -> None:
    answer = serried("trace", command, str(tmp_path))

    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        f"serried: {tmp_path} holds no rank-*.spans files; give the folder that --trace-dir named\n"
    )


def test_a_folder_must_be_given(serried: Call) -> None:
    answer = serried("trace", "merge")

    assert answer.code == 2
    assert "DIR..." in answer.err


def test_merge_writes_perfettos_own_format(serried: Call, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.pftrace"
    answer = serried("trace", "merge", str(folder), "-o", str(path))
    assert (answer.code, told(answer)) == (0, STATS)
    assert answer.err.startswith(f"wrote {path}, ")
    assert len(read(path.read_bytes()).slices) == 656


@pytest.mark.parametrize("command", ["stats", "merge"])
def test_a_damaged_file_of_another_tool_is_refused_in_one_line(
    serried: Call, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"name": "forward-compute", "ph": "X", "ts": 1, "dur": 1, "args": []}]')
    answer = serried("trace", command, str(path))
    assert answer.code == 2
    assert "holds no ndtimeline event with a rank" in answer.err
    assert answer.err.count("\n") == 1


def test_paddles_timelines_say_that_their_folder_cannot_be_made(
    serried: Call, tmp_path: Path
) -> None:
    sample = Path(__file__).parents[3] / "goldens" / "traces" / "paddle" / "single"
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "below"
    answer = serried("trace", "paddle", "--log_dir", str(sample), "-o", str(output))
    assert answer.code == 2
    assert f"{output} cannot be written: Not a directory" in answer.err


# ----------------------------------------------------------------------- what is measured


def test_rows_are_printed_by_the_axes_that_are_asked_for(serried: Call, folder: Path) -> None:
    answer = serried("trace", "stats", str(folder), "--by", "step,stage")
    assert answer.out.splitlines()[7:10] == [
        "step  stage  forward  backward     send  receive wait  optimizer     idle",
        "   0      0  8.00 ms   16.0 ms  40.0 us       9.00 ms     700 us  9.00 ms",
        "   0      1  8.00 ms   16.0 ms  80.0 us       7.00 ms     700 us  9.00 ms",
    ]


def test_json_has_the_figures_of_every_rank_that_the_page_colours_by(
    serried: Call, folder: Path
) -> None:
    document = json.loads(serried("trace", "stats", str(folder), "--format", "json").out)
    asked = ("serve", str(folder), "--ask")
    offered = json.loads(serried(*asked, "trace/heat").out)["figures"]
    assert [name.removesuffix("_us") for name in document["figures"]] == offered
    for name, values in document["figures"].items():
        figure = name.removesuffix("_us")
        told = json.loads(serried(*asked, f"trace/heat?figure={figure}").out)["columns"]["value"]
        scale = 1e3 if name.endswith("_us") else 1
        assert [each and each / scale for each in told] == pytest.approx(values)


def test_json_has_the_rows_and_all_that_the_lines_say(serried: Call, folder: Path) -> None:
    asked = ("--by", "rank,step,stage", "--tokens", "1000", "--format", "json")
    document = json.loads(serried("trace", "stats", str(folder), *asked).out)
    assert len(document["by"]) == 16
    assert document["by"][0] == {
        **{"step": 0, "rank": 0, "stage": 0, "forward_us": 8000.0, "backward_us": 16000.0},
        **{"weight_us": 0.0, "send_us": 40.0, "receive_wait_us": 9000.0, "reduce_us": 0.0},
        **{"exchange_us": 0.0, "optimizer_us": 700.0, "idle_us": 9000.0},
    }
    planned = {"of_makespan": 3 / 11, "over_ideal": 3 / 8, "longest_window": 3 / 11}
    assert document["planned"]["schedule"] == "1f1b"
    assert document["planned"]["own_times"] == pytest.approx(planned)
    assert document["planned"]["uniform"] == pytest.approx(planned)
    assert document["order"]["is_exact"]
    assert document["throughput"]["microbatches_per_s"] == pytest.approx(16 / 0.034)
    assert document["throughput"]["tokens_per_s"] == pytest.approx(16_000 / 0.034)
    assert [each["is_slow"] for each in document["paces"]] == [False] * 8
    assert sum(document["critical_path"]["by_kind"].values()) == pytest.approx(1)
    assert document["critical_path"]["pieces"][0]["action"] == "0F0"


def test_an_axis_that_rows_are_not_grouped_by_is_refused(serried: Call, folder: Path) -> None:
    answer = serried("trace", "stats", str(folder), "--by", "node")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "serried: --by node cannot be; rows are grouped by step, rank, stage, or several of them\n"
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "sample", ["paddle/single", "paddle/vpp", "paddle/multi", "kineto", "megatronapp"]
)
def test_every_line_about_a_foreign_trace_fits_a_hundred_columns(
    serried: Call, sample: str, lang: str
) -> None:
    answer = serried("trace", "stats", str(TRACES / sample), "--lang", lang)
    assert answer.code == 0
    assert max(map(cell_len, answer.out.splitlines())) <= 100


_QUANTITY = re.compile(r"\d[\d.,]* ?(?:ns|us|ms|min|s|h|%|x)(?![a-z])")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", ["60", "80", "100", "120"])
@pytest.mark.parametrize(
    "words",
    [
        ("stats", "megatronapp"),
        ("stats", "paddle/multi", "--by", "step,rank,stage"),
        ("stats", "megatron_timers/all.log"),
        ("compare", "paddle/multi", "--plan"),
    ],
)
def test_no_number_loses_its_unit_on_a_narrow_terminal(
    serried: Call, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: str, lang: str
) -> None:
    command, sample, *more = words

    def told(width: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", width)
        answer = serried("trace", command, str(TRACES / sample), *more, "--lang", lang)
        assert answer.code == 0
        return _QUANTITY.findall(answer.out)

    assert told(columns) == told("400")


def test_a_foreign_order_is_named_or_the_nearest_with_where_it_departs(serried: Call) -> None:
    known = serried("trace", "stats", str(TRACES / "megatronapp")).out
    assert "\norder               that of interleaved-1f1b on every rank\n" in known
    other = serried("trace", "stats", str(TRACES / "paddle" / "vpp")).out
    assert "\norder               nearest to interleaved-1f1b, 47% match\n" in other
    assert "rank 0: after 1 alike, 2F1 instead of 2F0\n" in other


def test_a_slow_rank_is_named_beside_its_like(serried: Call, tmp_path: Path) -> None:
    run = dataclasses.replace(RUN, num_steps=3)
    folder = run.write(tmp_path / "run", longer={5: 250_000})
    answer = serried("trace", "stats", str(folder))
    # Rank 5 and rank 4 hold stage 2; each of its 8 forwards takes 1.25 ms and not 1.
    head, why, *_ = answer.out.splitlines()
    assert head == "rank 5 on a (stage 2) computes 8.3% longer than its like: 2.00 ms a step"
    assert why.endswith("; in 3 of 3 steps")


def test_megatrons_timers_are_measured_without_a_timeline(serried: Call, tmp_path: Path) -> None:
    answer = serried("trace", "stats", str(TRACES / "megatron_timers" / "all.log"))
    assert answer.code == 0
    assert "   3      1   166 ms    397 ms   97.6 ms  66.3 ms          22.6%\n" in answer.out
    head = "rank 3 (stage 1) computes 14.1% longer than others of its stage: 69.3 ms of a step of "
    assert answer.out.startswith(head)
    assert "timers are totals without time stamps: no timeline, and no bubble\n" in answer.out
    document = json.loads(
        serried(
            "trace", "stats", str(TRACES / "megatron_timers" / "max.log"), "--format", "json"
        ).out
    )
    conform(document, "serried.timer-stats/1")
    assert document["form"] == "max"
    log = tmp_path / "alone.log"
    text = (TRACES / "megatron_timers" / "all.log").read_text()
    log.write_text(re.sub(r"[a-z-]+-parallel size: \d+ *", "", text))
    alone = serried("trace", "stats", str(log), "--dp", "4").out
    assert "rank 3 computes " in alone and "longer than others: " in alone
    assert not re.search("stage|bubble", alone)
    log.write_text(text + text)
    assert "第 10 次迭代之后又是第 1 次" in serried("trace", "stats", str(log), "--lang", "zh").err
    twice = serried("trace", "stats", str(log), "--format", "json")
    assert json.loads(twice.out)["warnings"][0]["kind"] == "two runs"
    refused = serried("trace", "compare", str(TRACES / "megatron_timers" / "max.log"), "--plan")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
