"""The verdict on a run: whom the others wait for, what it costs, and nobody without ground."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from serried.action import COMPUTE, Action, ActionKind, Span
from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import Analysis, analyse
from serried.trace.measure.ranks.slowest import COMPUTING
from serried.trace.measure.statistics import measure
from serried.trace.measure.verdict import RunVerdict, Trouble, run_verdict
from serried.trace.model.trace import Host, Trace
from serried.views.trace.text import bubble_lines
from serried.views.trace.verdict import verdict_document, verdict_lines
from tests.trace.measure.ranks.test_slowest import even, meeting
from tests.trace.measure.test_statistics import traced
from tests.trace.recorded_run import Run
from tests.trace.simulated_run import FORWARD, simulated_run
from tests.views.explain.reader import has_chinese

MS = 1_000_000


@pytest.fixture
def run(tmp_path: Path) -> Trace:
    return read_trace([Run(pp=2, dp=2, num_microbatches=4, num_steps=3).write(tmp_path)])


def judged(trace: Trace, *places: str, lang: str = "en") -> tuple[RunVerdict, list[str]]:
    analysis = analyse(trace)
    verdict = run_verdict(trace, analysis)
    return verdict, verdict_lines(trace, analysis, verdict, places=places, lang=lang)


def with_slow(analysis: Analysis, **changes: object) -> Analysis:
    first, *others = analysis.paces
    slow = replace(first, is_slow=True, waited_for_ns=5e6, slower=0.25, **changes)  # type: ignore[arg-type]
    return replace(analysis, paces=(slow, *others))


def data_parallel(own: dict[str, list[list[float]]], *, loads: float = 0.0) -> Trace:
    """Returns data parallel ranks that meet in each backward; ``loads`` of loading is recorded."""
    spans = meeting(own)
    world = len(own["F"][0])
    span = Action(ActionKind.SPAN)
    data = [
        Span(s.rank, span, s.step, round(s.start_ns - loads * wait * MS), s.start_ns, 0)
        for s in spans
        if str(s.action) == "0F0" and (wait := own["loader"][s.step][s.rank])
    ]
    job = dataclasses.replace(Run(pp=1).job, world_size=world, sizes={"dp": world})
    trace = traced([*spans, *(data if loads else [])], job)
    return replace(trace, names=("data",))


# ----------------------------------------------------------------------- pipelines


def test_a_healthy_run_names_no_rank_and_says_what_to_ask(run: Trace) -> None:
    verdict, (bubble, standing, following) = judged(run, "runs/a")
    assert (verdict.trouble, verdict.ranks) == (Trouble.NONE, ())
    assert bubble == "the bubble is 20.0% of a step of 15.0 ms; 1f1b itself has 20.0%"
    assert standing.startswith("no rank stands out")
    assert following == "next: serried trace compare runs/a --plan"


def test_a_rank_that_the_others_wait_for_comes_first_with_its_host(run: Trace) -> None:
    analysis = with_slow(analyse(run), evidence="waits")
    verdict = run_verdict(run, analysis)
    head, _, following = verdict_lines(run, analysis, verdict, places=["runs/a"])
    rank = analysis.paces[0].rank
    assert head.startswith(f"rank {rank} on a (stage 0) holds the others up: 5.00 ms of each step")
    assert following == "next: serried serve runs/a"
    assert verdict_document(run, analysis, verdict)["ranks"] == [rank]


def test_where_only_computing_is_known_nobody_is_said_to_wait(run: Trace) -> None:
    analysis = with_slow(analyse(run), evidence=COMPUTING)
    head, *_ = verdict_lines(run, analysis, run_verdict(run, analysis))
    assert "computes 25.0% longer than its like: " in head


def test_a_stage_that_computes_longer_is_named_with_what_even_ones_would_save() -> None:
    trace = simulated_run(
        forward=lambda pipeline, step, stage, mb: FORWARD * (1 + 2 * (stage == 2))
    )
    verdict, (head, why, _) = judged(trace)
    assert (verdict.trouble, verdict.stages, verdict.ranks) == (Trouble.SLOW_STAGE, (2,), (4, 5))
    assert head == "stage 2 (ranks 4, 5 on a) computes 40.0 ms a step, 66.7% longer than the others"
    assert why.startswith("even stages would save")
    assert 0 < verdict.share < 0.5


@pytest.mark.parametrize("pp", [2, 3, 4, 8])
@pytest.mark.parametrize("dp", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_equal_ranks_whose_times_vary_by_a_fifth_accuse_nobody(pp: int, dp: int, seed: int) -> None:
    rng = random.Random(seed)
    trace = simulated_run(
        pp=pp,
        dp=dp,
        num_steps=6,
        forward=lambda *_: round(FORWARD * rng.uniform(0.8, 1.2)),
    )
    verdict, lines = judged(trace)
    assert verdict.ranks == ()
    assert not any(line.startswith(("rank", "stage")) for line in lines)


def test_where_no_step_was_finished_it_says_who_recorded_least(tmp_path: Path) -> None:
    folder = Run(pp=2, num_steps=2).write(
        tmp_path, keep=lambda span: (span.rank, span.step) < (1, 0)
    )
    verdict, (head, who, following) = judged(read_trace([folder]), "runs/a")
    assert verdict.trouble is Trouble.UNFINISHED
    assert head == "no step was finished by every rank, so nothing is measured"
    assert who == "rank 1 on a recorded no step"
    assert following == "next: serried serve runs/a"


@pytest.mark.parametrize(
    ("cores", "said"),
    [
        (1, "; 4 ranks share one core there, which may be why"),
        (2, "; 4 ranks share 2 cores there, which may be why"),
        (4, ""),
        (0, ""),
    ],
)
def test_of_ranks_that_share_cores_it_is_said_that_this_may_make_one_late(
    cores: int, said: str
) -> None:
    own = even(4, 8)
    for row in own["loader"]:
        row[1] += 15
    trace = data_parallel(own, loads=1.0)
    trace = replace(trace, job=replace(trace.job, cores=cores))
    _, (_, why, _) = judged(trace)
    assert why == f"it takes longer than they do: loading data 15.0 ms; in 8 of 8 steps{said}"


def test_a_run_of_collectives_alone_is_not_called_unfinished() -> None:
    trace = simulated_run(pp=1, dp=2, num_steps=3)
    spans = trace.spans.where(~np.isin(trace.spans.kind, list(COMPUTE)))
    trace = replace(trace, spans=spans)
    _, (head, how, _) = judged(trace)
    assert head == "no forward or backward was recorded, so nothing is measured"
    assert how == "mark those that are your own: serried.span('F'), serried.span('B')"
    assert bubble_lines(trace, measure(trace)) == [
        "idle time: not measured, for no forward or backward was recorded"
    ]


# ----------------------------------------------------------------------- without a pipeline


def test_a_slow_loader_is_named_with_its_rank_and_what_it_costs() -> None:
    own = even(4, 8)
    for row in own["loader"]:
        row[1] += 15
    verdict, (head, why, _) = judged(data_parallel(own, loads=1.0))
    assert (verdict.trouble, verdict.ranks) == (Trouble.SLOW_RANK, (1,))
    assert head == "rank 1 on a holds the others up: 15.0 ms of each step of 49.0 ms (30.6%)"
    assert why == "it takes longer than they do: loading data 15.0 ms; in 8 of 8 steps"


def test_loaders_slow_on_every_rank_alike_accuse_none_of_them() -> None:
    own = even(4, 8)
    own["loader"] = [[20.0] * 4 for _ in own["loader"]]
    verdict, (head, standing, _) = judged(data_parallel(own, loads=1.0))
    assert (verdict.trouble, verdict.ranks) == (Trouble.DATA, ())
    assert head.startswith("loading data takes 20.0 ms of each step of 53.0 ms (37.7%)")
    assert standing.startswith("no rank stands out")


def test_time_of_which_nothing_was_recorded_says_how_to_record_it() -> None:
    own = even(4, 8)
    own["loader"] = [[20.0] * 4 for _ in own["loader"]]
    verdict, (head, how, _) = judged(data_parallel(own))
    assert verdict.trouble is Trouble.UNRECORDED
    assert head == "of 20.0 ms in each step of 53.0 ms (37.7%) nothing was recorded"
    assert "serried.record(loader, DIR)" in how


def test_ranks_that_differ_as_much_as_they_vary_accuse_nobody() -> None:
    # Each rank is steadily off by its own 1 to 4 ms: none is beyond what the others differ by.
    own = even(8, 8)
    for row in own["F"]:
        for rank in range(8):
            row[rank] += rank * 0.6
    assert judged(data_parallel(own, loads=1.0))[0].ranks == ()


# ----------------------------------------------------------------------- as it is printed


def test_it_is_said_in_chinese(run: Trace) -> None:
    assert all(map(has_chinese, judged(run, "runs/a", lang="zh")[1]))


def test_a_long_host_and_folder_are_cut_to_fit_a_line() -> None:
    own = even(2, 8)
    for row in own["F"]:
        row[1] += 15
    trace = data_parallel(own)
    trace = replace(trace, hosts=(Host("gpu-cluster-a3-highgpu-8g-000017.internal", (0, 1), 0),))
    _, lines = judged(trace, "/shared/projects/llm/experiments/2026-11-23/with-a-name/" * 2)
    assert max(map(cell_len, lines)) <= 100
    assert lines[0].startswith("rank 1 on gpu-cluster-a3-… holds")
    assert lines[-1] == "next: serried serve DIR"
