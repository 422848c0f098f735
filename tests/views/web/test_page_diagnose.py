"""The page shows a diagnosis: the verdict, the culprits on the map, the evidence a click away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serried.trace.formats.reading import read_trace
from serried.trace.model.record import TracedJob
from serried.views.web.diagnose.cases import read_case
from serried.views.web.opening import followed
from serried.views.web.trace.payload import NamedTrace, question_of
from tests.page import Open
from tests.trace.recorded_run import Run
from tests.views.web.diagnose.test_cases import KILLED
from tests.views.web.served import served

MANY = question_of(TracedJob("megatron", 4096, {"dp": 4096}, "", "", 0))
CLOSED = "[rank2]: RuntimeError: Connection closed by peer [127.0.0.1]:4117\n"


def test_a_page_of_evidence_alone_opens_on_its_diagnosis(page_of: Open, tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(KILLED)
    with served(cases=[read_case(tmp_path / "console.log")]) as address:
        workbench = page_of(address)
        told = workbench.read("diagnosis()")
        assert "signal 9" in told["verdict"]
        assert "rank 5" in told["verdict"]
        assert told["states"][5] == 3
        workbench.click("#diagnose-quotes")
        assert "console.log:1" in workbench.text("#diagnose-evidence")
        assert "信号 9" in page_of(address, "lang=zh").text("#diagnose-verdict")
        workbench.click("#view-layout")
        assert workbench.read("diagnosis()") is None


def test_a_link_to_a_diagnosis_that_is_not_open_says_so_and_offers_those_that_are(
    page_of: Open, tmp_path: Path
) -> None:
    (tmp_path / "console.log").write_text(KILLED)
    with served(cases=[read_case(tmp_path / "console.log")]) as address:
        workbench = page_of(address, "view=diagnose&diagnosed=other.log&lang=en")
        assert "diagnosis other.log, which is not open here" in workbench.text("#absent")
        workbench.page.locator("#absent button", has_text="console.log").click()
        workbench.page.wait_for_url("**diagnosed=console.log*")
        workbench.settle()
        assert "rank 5" in workbench.read("diagnosis()")["verdict"]


def test_the_example_of_a_hang_draws_its_chain_and_its_cards_set_map_and_address(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain)
    workbench.page.locator("#examples button", has_text="A hang of 8 ranks").click()
    workbench.page.wait_for_url("**diagnosed=example*")
    workbench.settle()
    told = workbench.read("diagnosis()")
    assert told["states"] == [1, 1, 1, 1, 1, 3, 1, 2]
    assert told["arrows"] == 7
    lines = workbench.page.locator("#diagnose-verdict > *").all_inner_texts()
    assert len(lines) == 3
    assert "pyspy_rank_5.txt:7" in lines[1]
    columns = workbench.page.locator(".chain li").evaluate_all(
        "items => items.map(i => i.style.left)"
    )
    assert len(set(columns)) == 4
    assert "the cause: 1" in workbench.text("#map-key")
    workbench.click(".chain button.rank")
    workbench.page.wait_for_url("**rank=5*")


def test_a_card_of_another_finding_shows_its_own_ranks(page_of: Open, tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(KILLED + CLOSED)
    with served(cases=[read_case(tmp_path)]) as address:
        workbench = page_of(address)
        cards = workbench.page.locator("#diagnose-findings .card")
        assert cards.count() > 1
        cards.nth(1).click()
        workbench.page.wait_for_url("**finding=1*")
        workbench.settle()
        assert "rank 2 lost the connection" in workbench.read("diagnosis()")["verdict"]
        assert cards.nth(1).get_attribute("aria-pressed") == "true"


def test_a_link_to_a_second_diagnosis_shows_its_own_layout_and_a_click_brings_it_back(
    page_of: Open, tmp_path: Path
) -> None:
    logs = {"killed": KILLED, "closed": CLOSED}
    for name, text in logs.items():
        (tmp_path / name).write_text(text)
    with served(cases=[read_case(tmp_path / name) for name in logs]) as address:
        workbench = page_of(address, "view=diagnose&diagnosed=closed")
        assert workbench.value("world_size") == "3"
        assert not workbench.page.locator(".other-layout").count()
        workbench.fill(world_size="8")
        assert "another layout" in workbench.text(".other-layout")
        workbench.click(".other-layout button")
        assert workbench.value("world_size") == "3"
        assert workbench.page.locator("#map-key .state svg").count(), "shapes tell states too"


def test_a_cause_among_thousands_of_ranks_is_named_beside_its_cell(
    page_of: Open, tmp_path: Path
) -> None:
    (tmp_path / "console.log").write_text(KILLED)
    case = read_case(tmp_path)
    with served(
        cases=[case, replace(case, name="many", question=MANY, world_size=4096)]
    ) as address:
        workbench = page_of(address)
        assert workbench.read("diagnosis()")["named"] == 0, "large cells say it themselves"
        workbench.page.select_option("#diagnose-case", "many")
        workbench.settle()
        assert workbench.value("world_size") == "4096"
        assert workbench.read("diagnosis()")["named"] == 1


def test_a_diagnosis_in_view_follows_its_evidence(
    page_of: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "LOOK_S", 0.05)
    monkeypatch.setattr(followed, "REST", 1.0)
    log = tmp_path / "job" / "console.log"
    log.parent.mkdir()
    log.write_text("step 1 | loss 2.0\n")
    with served(cases=[read_case(log.parent)]) as address:
        workbench = page_of(address)
        assert "nothing wrong" in workbench.read("diagnosis()")["verdict"]
        assert "As of" in workbench.text("#diagnose-live")
        log.write_text(KILLED)
        workbench.page.get_by_text("signal 9").first.wait_for()
        workbench.settle()
        told = workbench.read("diagnosis()")
        assert "rank 5" in told["verdict"]
        assert told["states"][5] == 3
        workbench.page.goto("about:blank")


def test_a_recorded_run_in_view_is_diagnosed_in_its_tab(page_of: Open, tmp_path: Path) -> None:
    run = Run(pp=2, num_microbatches=2, num_steps=2).write(tmp_path / "first")
    with served([NamedTrace.read("first", read_trace([run]), run)]) as address:
        workbench = page_of(address, "view=diagnose")
        workbench.page.wait_for_url("**diagnosed=first*")
        workbench.settle()
        assert workbench.read("diagnosis()")["name"] == "first"
        assert workbench.value("world_size") == "2"
        workbench.page.goto("about:blank")


def test_of_several_runs_each_is_diagnosed_once_it_is_chosen(page_of: Open, tmp_path: Path) -> None:
    runs = [
        Run(pp=2, num_microbatches=2, num_steps=2).write(tmp_path / "first"),
        Run(pp=4, num_microbatches=4, num_steps=2).write(tmp_path / "second"),
    ]
    named = [NamedTrace.read(run.name, read_trace([run]), run) for run in runs]
    with served(named) as address:
        workbench = page_of(address, "view=diagnose")
        workbench.page.wait_for_url("**diagnosed=first*")
        workbench.settle()
        options = workbench.page.locator("#diagnose-case option")
        assert options.all_inner_texts() == ["first", "second: not diagnosed yet"]
        workbench.page.select_option("#diagnose-case", "run/1")
        workbench.page.wait_for_url("**diagnosed=second*")
        workbench.settle()
        assert options.all_inner_texts() == ["first", "second"]
        assert workbench.value("world_size") == "4"
        workbench.page.goto("about:blank")
