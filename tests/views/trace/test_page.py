"""What stats prints of any run fits a screen: forty lines of a hundred columns, verdict first."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from serried.trace.measure.analysis import analyse
from serried.trace.measure.verdict import run_verdict
from serried.trace.model.trace import Trace
from serried.views.cli.output import rendered
from serried.views.trace.page import LINES, stats_parts
from serried.views.trace.verdict import verdict_lines
from tests.conftest import Call
from tests.trace.measure.ranks.test_slowest import even
from tests.trace.simulated_run import FORWARD, simulated_run
from tests.views.explain.reader import has_chinese
from tests.views.trace.test_verdict import data_parallel

TRACES = Path(__file__).parents[2] / "goldens" / "traces"
SAMPLES = [
    *("paddle/single", "paddle/vpp", "paddle/multi", "kineto", "megatronapp"),
    *("straggler_analysis", "store_1", "megatron_timers/all.log", "megatron_timers/max.log"),
    *("hta/sampled_rank-0.json.gz", "hta/alexnet.json.gz", "hta/mi250.json.gz"),
]


def slow_first(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    return FORWARD * (3 if step < 2 else 1)


def loaders(world: int) -> Trace:
    own = even(world, 12)
    for row in own["loader"]:
        row[1] += 15
    return data_parallel(own, loads=1.0)


RUNS: dict[str, Callable[[], Trace]] = {
    "2 ranks, 40 steps": lambda: simulated_run(pp=2, dp=1, num_steps=40),
    "8 ranks, 40 steps": lambda: simulated_run(pp=4, dp=2, num_steps=40, forward=slow_first),
    "64 ranks, 8 steps": lambda: simulated_run(pp=8, dp=8, num_steps=8),
    "2 replicas": lambda: loaders(2),
    "64 replicas": lambda: loaders(64),
}


def printed(trace: Trace, *, lang: str = "en", is_whole: bool = False) -> list[str]:
    analysis = analyse(trace)
    parts = stats_parts(trace, analysis, lang=lang, places=["runs/a"], is_whole=is_whole)
    return rendered(*parts, plain=True).splitlines()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_our_own_fits_a_screen(name: str, lang: str) -> None:
    trace = RUNS[name]()
    lines = printed(trace, lang=lang)
    analysis = analyse(trace)
    verdict = run_verdict(trace, analysis)
    told = verdict_lines(trace, analysis, verdict, places=["runs/a"], lang=lang)
    assert lines[: len(told) + 1] == [*told, ""]
    assert len(told) <= 3
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= 100


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_trace_of_another_tool_fits_a_screen(serried: Call, sample: str, lang: str) -> None:
    answer = serried("trace", "stats", str(TRACES / sample), "--lang", lang)
    lines = answer.out.splitlines()
    assert answer.code == 0
    assert 2 <= lines.index("") <= 3
    assert any(each.startswith(("next: ", "接下来：")) for each in lines[:3])
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= 100
    assert lang == "en" or all(map(has_chinese, lines[: lines.index("") - 1]))


def test_the_slowest_steps_and_ranks_stand_first() -> None:
    lines = printed(simulated_run(num_steps=6, forward=slow_first))
    steps = lines.index(next(each for each in lines if each.startswith("step ")))
    assert [each.split()[0] for each in lines[steps + 1 : steps + 4]] == ["0", "1", "2"]
    late = printed(loaders(64))
    ranks = late.index(next(each for each in late if each.startswith("rank  ")))
    assert late[ranks + 1].split()[0] == "1"


def test_steps_of_a_warm_up_are_in_no_mean_and_the_rule_is_said() -> None:
    even_steps = printed(simulated_run(num_steps=8))
    warm = printed(simulated_run(num_steps=8, forward=slow_first))
    bubble = next(each for each in even_steps if each.startswith("bubble measured"))
    assert bubble in warm
    (rule,) = [each for each in warm if each.startswith("means ")]
    assert rule.endswith("of 6 steps; left out, as starting up over 1.25x the median: step 0, 1")


def test_one_bubble_is_defined_and_all_prints_the_others() -> None:
    trace = simulated_run()
    short, whole = printed(trace), printed(trace, is_whole=True)
    assert len([each for each in short if "1 - busy / (ranks x window)" in each]) == 1
    assert not [each for each in short if "of the longest window" in each]
    assert [each for each in whole if "of the longest window" in each]
    assert "--all prints every step, rank and figure" in short
    assert "--all prints every step, rank and figure" not in whole


def test_all_prints_every_step_and_rank() -> None:
    whole = printed(simulated_run(pp=8, dp=8, num_steps=40), is_whole=True)
    rows = [each for each in whole if re.match(r" {1,8}\d+ ", each)]
    assert len(rows) == 64 + 40


def test_a_period_is_said_with_parts_that_add_up_to_it() -> None:
    lines = printed(loaders(4))
    at = next(row for row, each in enumerate(lines) if each.startswith("period "))
    told = " ".join(lines[at : at + 3])
    whole, *parts = [float(each) for each in re.findall(r"([\d.]+) (?:ms|us)", told)[:6]]
    assert told.count("%") == 5
    assert sum(parts) == pytest.approx(whole, rel=0.01)
    (loader,) = [each for each in lines if each.startswith("data ")]
    assert "longest on rank 1 on a: 16.0 ms of a step" in loader
