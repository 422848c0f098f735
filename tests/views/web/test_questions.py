"""What the page is told, the command line prints: each question over HTTP and by --ask."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serried.trace.formats.reading import read_recording
from serried.views.web.check.heat import read_check
from serried.views.web.diagnose.cases import read_case
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.questions import questions
from serried.views.web.trace.payload import NamedTrace
from tests.conftest import Call
from tests.trace.gpu.samples import FOLDER
from tests.trace.planned_run import write_planned_run
from tests.trace.recorded_run import Run
from tests.views.web import slow_node
from tests.views.web.diagnose.test_cases import KILLED
from tests.views.web.reader import read
from tests.views.web.served import served

RUN = Run(pp=2, tp=2, num_microbatches=3)
PROFILE = FOLDER / "mi250.json.gz"
ASKED = (
    "page?lang=zh",
    "words?lang=zh",
    "layout?world_size=16&tp=2&pp=4&dims=dp,tp",
    "case/example?lang=en",
    "layout/written?world_size=16&tp=2&pp=4",
    "layout/fitted?framework=fsdp&world_size=16&tp=2&pp=4&dims=dp,tp&lang=zh",
    "layout/beside?world_size=16&tp=2&pp=4&dims=dp,tp&beside=framework%3Dinternlm&lang=zh",
    "rank?world_size=16&tp=2&pp=4&rank=5",
    "sharding?world_size=16&zero=3&parameters=7.5B&microbatches=1",
    "learn?lang=zh",
    "plan/matrix?world_size=16&tp=2&pp=4&model=llama3-8b&cluster=h100&sequence=8192&global_batch=64",
    "plan/compare?a=world_size%3D16%26tp%3D2%26model%3Dllama3-8b%26cluster%3Dh100%26sequence%3D8192"
    "%26global_batch%3D64&b=world_size%3D16%26tp%3D4%26model%3Dllama3-8b%26cluster%3Dh100"
    "%26sequence%3D8192%26global_batch%3D64",
    "term?world_size=16&tp=2&pp=4&term=dp&rank=5",
    "plans",
    "plan?world_size=16&tp=2&pp=4&model=llama3-8b&cluster=h100&sequence=8192&global_batch=64",
    "plan/links?world_size=8&tp=2&model=llama3-8b&cluster=h100&sequence=8192&global_batch=64",
    "layout/links?world_size=8&tp=2&dims=tp,dp",
    "plan/heat?figure=sent_across&world_size=16&tp=2&sequence=8192&global_batch=64"
    "&model=llama3-8b&cluster=h100",
    "search?world_size=8&model=llama3-8b&cluster=h100&sequence=8192&global_batch=64",
    "schedules",
    "schedule?name=zb-h1&stages=4&microbatches=8",
    "collective?name=all-reduce&algorithm=ring&bytes=1MiB&world_size=16&tp=2&kind=dp&rank=3",
    "traces",
    "trace",
    "trace/window?bucket=1024&first=0&last=40&tracks=0-1",
    "trace/rows?by=tp",
    "trace/overview",
    "trace/growth",
    "trace/bubble",
    "trace/period",
    "trace/scale?of=lateness",
    "trace/links?slice=3",
    "trace/span?slice=3&by=1",
    "trace/heat?figure=busy",
    "trace/plan",
    "trace/measured",
    "trace/statistics",
    "trace/sharding?trace=1&rank=1&step=1&lang=zh",
    "trace/late?rank=0&start=0&kinds=F",
    "trace/found?kinds=F,B",
    "trace/gpus?trace=2&lang=zh",
    "trace/findings?trace=0",
    "trace/why?trace=0&slice=0",
    "trace/stretch?from=0&to=1000000000&ranks=0-1",
    "checks",
    "check/heat?figure=worst_receive",
    "cases",
    "case/states",
    "case/whole",
    "several?ask=plans&ask=page%3Flang%3Dzh",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RUN.write(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planned_run(tmp_path_factory.mktemp("runs") / "planned")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("checks") / "monday.json"
    file.write_text(json.dumps(slow_node.document()))
    return file


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("evidence") / "console.log"
    file.write_text(KILLED)
    return file


@pytest.fixture(scope="module")
def page(run: Path, planned: Path, report: Path, killed: Path) -> Iterator[httpx.Client]:
    places = (run, planned, PROFILE)
    traces = [NamedTrace.read(each.name, read_recording([each]), each) for each in places]
    checks = [read_check(report)]
    opened = served(traces, checks=checks, cases=[read_case(killed)])
    with opened as address, httpx.Client(base_url=address) as visitor:
        yield visitor


def document_of(answer: httpx.Response) -> dict[str, Any]:
    """Reads an answer as the page does, and writes it as JSON would be."""
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"] == "application/json":
        return dict(answer.json())
    found = read(answer.content)
    columns = {
        name: [None if math.isnan(value) else value for value in column.tolist()]
        for name, column in found.columns.items()
    }
    return found.header | {"columns": columns}


@pytest.mark.parametrize("question", ASKED)
def test_the_command_line_prints_what_the_page_is_told(
    question: str,
    page: httpx.Client,
    run: Path,
    planned: Path,
    report: Path,
    killed: Path,
    serried: Call,
) -> None:
    places = [*map(str, (run, planned, PROFILE)), "--check", str(report), "--evidence", str(killed)]
    answer = serried("serve", *places, "--ask", question)
    assert answer.code == 0, answer.err
    printed, told = json.loads(answer.out), document_of(page.get(f"/api/{question}"))
    for document in (printed, told):
        for case in document.get("cases", ()) if question == "cases" else ():
            case.pop("read_at")  # each server reads the evidence at its own time
    assert printed == told


def test_every_question_is_among_those() -> None:
    assert {question.partition("?")[0] for question in ASKED} | {"openings"} == set(
        questions(OpeningDesk())
    )


def test_an_address_of_the_page_is_a_question_too(serried: Call) -> None:
    whole = serried(
        "serve", "--ask", "http://127.0.0.1:8765/api/rank?world_size=16&tp=2&pp=4&rank=5"
    )
    assert whole.out == serried("serve", "--ask", "rank?world_size=16&tp=2&pp=4&rank=5").out


def test_a_question_that_there_is_not_is_one_sentence(serried: Call) -> None:
    answer = serried("serve", "--ask", "weather?lang=en")
    assert answer.code == 2
    assert answer.err.startswith(
        "serried: the page asks no 'weather'; it asks words, page, layout, rank,"
    )


def test_a_refused_question_is_the_sentence_that_the_page_shows(serried: Call) -> None:
    answer = serried("serve", "--ask", "trace/bubble?trace=1")
    assert answer.code == 2
    assert answer.err == "serried: there is no trace 1 here; 0 are open, numbered from 0\n"
