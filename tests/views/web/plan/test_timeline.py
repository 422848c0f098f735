"""The planned step that the page draws is the one that ``serried plan --trace`` writes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_trace
from serried.trace.merge.files import place_of
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.plan.answer import plan_answer
from serried.views.web.plan.timeline import planned_step, step_words
from serried.views.web.questions import answer_document, questions
from serried.views.web.wire.query import read_query
from tests.conftest import Call

JOB = "world_size=16&tp=2&pp=4&model=llama3-8b&cluster=h100&sequence=8192&global_batch=16"
WORDS = {name: [text] for name, text in (each.split("=") for each in JOB.split("&"))}


def test_the_page_is_sent_the_step_that_its_command_writes(serried: Call, tmp_path: Path) -> None:
    command = shlex.split(plan_answer(read_query(WORDS), WORDS, "en")["command"])[1:]
    serried(*command, "--trace", str(tmp_path / "plan.json"))
    written = read_trace([place_of(str(tmp_path / "plan.json"))])
    shown = planned_step(step_words(WORDS))
    assert len(shown.spans) == len(written.spans)
    for name, column in shown.spans.columns().items():
        assert (column == written.spans.columns()[name]).all(), name
    assert shown.job.compute == "planned"


def test_every_question_of_a_trace_can_be_asked_of_the_planned_step() -> None:
    answers = questions(OpeningDesk())
    named = f"trace=plan&{JOB}"
    whole = answer_document(f"trace?{named}", answers)
    assert whole["scales"] == [] and whole["whole"]
    bubble = answer_document(f"trace/bubble?{named}", answers)
    assert 0 < bubble["bubble"] < 1
    links = answer_document(f"trace/links?{named}&slice=3", answers)
    assert links["columns"]["arrow:from"]
    asked = {name: ["7"] for name in ("slice", "from", "rank", "microbatch")}
    assert step_words(WORDS | asked) == step_words(WORDS), "made once, whatever is asked of it"


def test_a_large_job_is_shown_by_one_replica_and_says_so() -> None:
    large = WORDS | {"world_size": ["8192"], "global_batch": ["8192"]}
    trace = planned_step(step_words(large))
    assert len(trace.ranks) == 8 and trace.job.world_size == 8192
    assert "one replica" in str(trace.warnings[0].evidence[0])


def test_a_plan_that_cannot_be_has_no_step() -> None:
    with pytest.raises(InputError, match="there is no model"):
        planned_step(step_words(WORDS | {"model": ["lama"]}))
