"""What is measured of a trace reaches the page as the command line prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_recording
from serried.trace.measure.ranks.period import PARTS
from serried.trace.model.progress import unheard
from serried.views.web.opening.apart import ReaderProcess
from serried.views.web.opening.kinds import Kind
from serried.views.web.trace import sample
from serried.views.web.trace.heat import heat_payload
from serried.views.web.trace.payload import NamedTrace, trace_payload
from serried.views.web.trace.statistics import gpus_answer, period_answer
from tests.conftest import Call
from tests.trace.carried import write_carried
from tests.trace.gpu.samples import FOLDER
from tests.trace.measure.ranks.test_slowest import even
from tests.trace.simulated_run import simulated_run
from tests.views.explain.reader import has_chinese
from tests.views.trace.test_verdict import data_parallel
from tests.views.web.reader import read


def asked(steps: int = 8) -> dict[str, Any]:
    own = even(4, steps)
    for row in own["loader"]:
        row[2] += 15
    return period_answer(NamedTrace("mine", data_parallel(own, loads=1.0)))


def test_ranks_come_with_host_and_parts_that_add_up_the_waited_for_first() -> None:
    answer = asked()
    ranks = answer["periods"]["ranks"]
    assert [each["rank"] for each in ranks] == [2, 0, 1, 3]
    assert (ranks[0]["host"], ranks[0]["waited_for_us"]) == ("a", 15_000)
    for each in ranks:
        assert sum(each[f"{name}_us"] for name in PARTS) == pytest.approx(each["period_us"])
    assert json.loads(json.dumps(answer)) == answer


def test_a_pipeline_has_a_bubble_and_no_period() -> None:
    answer = period_answer(NamedTrace("run", simulated_run()))
    assert answer["periods"] is None


def test_of_a_large_trace_the_last_steps_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each step of 4 ranks has 24 spans.
    monkeypatch.setattr(sample, "SPANS", 100)
    assert asked(steps=8)["periods"]["steps"] == [5, 6, 7]


SAMPLE = FOLDER / "sampled_rank-0.json.gz"


def test_its_figures_are_those_of_the_command(serried: Call) -> None:
    told = json.loads(serried("trace", "stats", str(SAMPLE), "--format", "json").out)
    named = NamedTrace.read("a", read_recording([SAMPLE]), SAMPLE)
    answer = json.loads(json.dumps(gpus_answer(named, {})))
    verdict, lines = told.pop("verdict"), answer.pop("verdict")["lines"]
    assert answer.pop("idlest") == 0
    assert answer == told
    # The command goes on with what to run next, and leaves out a third line for it.
    assert lines[:2] == verdict["lines"][: len(lines)]
    assert all(map(has_chinese, gpus_answer(named, {"lang": ["zh"]})["verdict"]["lines"]))
    assert read(trace_payload(named)).header["has_gpus"] is True


def test_a_profile_that_is_read_apart_keeps_them() -> None:
    (apart,) = ReaderProcess(Kind.EVENTS, [SAMPLE], "a").read(unheard).traces
    here = NamedTrace.read("a", read_recording([SAMPLE]), SAMPLE)
    assert gpus_answer(apart, {}) == gpus_answer(here, {})


def test_a_run_has_none(tmp_path: Path) -> None:
    named = NamedTrace.read("run", read_recording([write_carried(tmp_path)]))
    assert read(trace_payload(named)).header["has_gpus"] is False
    with pytest.raises(InputError, match="'run' is no profile of GPUs; serried trace stats"):
        gpus_answer(named, {})


def test_a_profile_of_one_gpu_offers_no_figure_of_ranks_and_refuses_those_it_lacks() -> None:
    answers = NamedTrace.read("a", read_recording([SAMPLE]), SAMPLE).answers
    assert read(heat_payload(answers, {})).header["figures"] == []
    with pytest.raises(InputError, match="'busy' is no figure of this trace; it has -"):
        heat_payload(answers, {"figure": ["busy"]})
