"""What the page is told of a profile of GPUs: the figures that ``serried trace stats`` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_recording
from serried.trace.model.progress import unheard
from serried.views.web.opening.apart import ReaderProcess
from serried.views.web.opening.kinds import Kind
from serried.views.web.trace.gpus import gpus_answer
from serried.views.web.trace.heat import heat_payload
from serried.views.web.trace.payload import NamedTrace, trace_payload
from tests.conftest import Call
from tests.trace.carried import write_carried
from tests.trace.gpu.samples import FOLDER
from tests.views.explain.reader import has_chinese
from tests.views.web.reader import read

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
