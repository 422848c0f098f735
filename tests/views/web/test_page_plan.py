"""The page plans the job in view: what Python plans is what stands in the panel."""

from __future__ import annotations

from typing import Any

import pytest

from serried.units import memory_text
from serried.views.web.plan.answer import plan_answer
from serried.views.web.plan.search import search_answer
from serried.views.web.wire.query import read_query
from tests.page import Open

ASKED = {
    **{"model": "llama3-8b", "cluster": "dgx-h100", "sequence": "8192", "global_batch": "64"},
    **{"micro_batch": "1", "recompute": "none"},
}


def planned(**changed: str) -> dict[str, Any]:
    job = {"world_size": "16", "tp": "2", "pp": "4", **ASKED, **changed}
    words = {name: [text] for name, text in job.items()}
    answer = plan_answer(read_query(words), words, "en")
    return {
        "verdict": answer["verdict"],
        "fits": answer["fits"],
        "step_s": answer["time"]["step_s"],
        "totals": [place["total"] for place in answer["memory"]],
    }


def test_the_plan_of_the_job_in_view_follows_every_field(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")

    def shown() -> dict[str, Any]:
        return {name: each for name, each in workbench.read("plan()").items() if name != "command"}

    workbench.click("#view-plan")
    assert shown() == planned()
    rows = workbench.page.locator("#plan-memory-rows tr").all()
    totals = [memory_text(total) for total in planned()["totals"]]
    assert rows[-1].locator("td").all_inner_texts() == totals
    # Eight pairs of tp, eight links of pp and of dp within nodes, and one that crosses.
    assert workbench.read("traffic()")["links"] == 8 + 8 + 8 + 1
    assert workbench.page.locator("#traffic-scale li").count() == 3
    workbench.page.locator("#traffic-kinds button").first.click()
    workbench.settle()
    assert workbench.read("traffic()")["links"] == 8 + 8 + 1
    assert "no_traffic=tp" in workbench.query()
    workbench.page.go_back()
    workbench.settle()
    before = workbench.picture("plan")

    workbench.fill(**{"plan-model": "gpt3-175b"})
    assert shown() == planned(model="gpt3-175b")
    assert not workbench.read("plan()")["fits"]
    assert workbench.picture("plan") != before
    workbench.click("#plan_a")
    workbench.fill(tp="4")
    assert shown() == planned(model="gpt3-175b", tp="4")
    compared = workbench.page.locator("#plan-compared-rows th").all_inner_texts()
    assert compared.index("tp") < compared.index("estimated") < len(compared) - 1
    workbench.click("#plan_a")

    workbench.fill(**{"plan-global_batch": "7", "plan-micro_batch": "2"})
    assert "7" in workbench.text("#plan-fault-global_batch")
    assert workbench.page.get_attribute("#plan-global_batch", "aria-invalid") == "true"
    assert workbench.text("#plan-alert") == ""
    assert workbench.query().startswith("view=plan&")
    assert "model=gpt3-175b&global_batch=7&micro_batch=2" in workbench.query()
    workbench.page.go_back()
    workbench.page.go_back()
    workbench.settle()
    assert shown() == planned(model="gpt3-175b", tp="4")
    workbench.click("#view-layout")
    assert workbench.read("plan()") is None


def test_a_layout_that_was_found_becomes_the_job_s_and_its_plan_the_one_found(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp&planned=1")
    workbench.click("#plan-search")
    words = {name: [text] for name, text in {"world_size": "16", **ASKED}.items()}
    best = search_answer(read_query(words), words, "en")["best"]
    rows = workbench.page.locator("#plan-found-rows button")
    assert rows.count() == len(best)
    rows.nth(1).click()
    workbench.settle()
    sizes = best[1]["asked"]["sizes"]
    assert [workbench.value(name) for name in ("tp", "pp")] == [
        str(sizes[name]) for name in ("tp", "pp")
    ]
    assert workbench.value("order") == best[1]["asked"]["order"]
    assert workbench.read("plan()")["step_s"] == pytest.approx(best[1]["step_s"], rel=1e-9)
    assert rows.nth(1).get_attribute("aria-pressed") == "true"
    assert "searched=1" in workbench.query()
    # Its planned step stands below, as what it is: every rank, and as long as the plan's step.
    assert workbench.page.is_visible("#planned") and not workbench.page.is_visible("#emulated")
    assert "planned_step=1" in workbench.query()
    last = workbench.page.evaluate(
        "Math.max(...Array.from({ length: serried.slices() }, (_, i) => serried.slice(i).end_ns))"
    )
    assert last / 1e9 == pytest.approx(best[1]["step_s"], rel=0.05)
    workbench.fill(**{"plan-global_batch": "63"})
    assert workbench.page.is_visible("#timeline"), "what is refused leaves the step that stood"
    workbench.fill(**{"plan-global_batch": "64"})

    # By keyboard from the quickest of the front to another layout, and by Enter into the job.
    workbench.page.focus("#plan-front")
    workbench.press("ArrowRight", "ArrowDown")
    told = workbench.text("#tip").splitlines()
    workbench.press("Enter")
    sizes = dict(zip(*[iter(told[0].split(",")[0].split())] * 2, strict=True))
    shown = {name: workbench.value(name) for name in ("tp", "pp", "cp")}
    assert {name: size for name, size in shown.items() if size != "1"} == {
        name: size for name, size in sizes.items() if name in shown
    }
    assert told[0].split(", ")[1].split()[0] == workbench.value("plan-schedule")

    # A player stands in place of the plan, and leaves it as it was.
    workbench.click("#sharding-open")
    assert not workbench.page.is_visible("#plan") and not workbench.page.is_visible("#timeline")
    workbench.click("#sharding-close")
    assert workbench.page.is_visible("#plan") and workbench.page.is_visible("#timeline")


def test_links_of_the_chosen_groups_are_drawn_without_the_plan_tab(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp")
    workbench.click("#links-open")
    assert workbench.page.get_attribute("#links-open", "aria-pressed") == "true"
    shown = workbench.read("traffic()")
    assert (shown["links"], shown["isEven"]) == (8, False), "pairs of tp alone"
    with_tp = workbench.picture("map-links")
    assert "llama3-8b" in workbench.text("#traffic-model")
    workbench.click("#dims button:has-text('PP')")
    assert workbench.read("traffic()")["links"] == 8 + 8 + 1
    assert workbench.picture("map-links") != with_tp
    workbench.page.locator("#traffic-kinds button").first.click()
    workbench.settle()
    assert workbench.read("traffic()")["links"] == 8 + 1
    again = page_of(plain, f"{workbench.query()}&model=no-such-model")
    shown = again.read("traffic()")
    assert (shown["links"], shown["isEven"]) == (8 + 1, True)
    assert "no-such-model" in again.text("#traffic-model")
    assert again.page.locator("#traffic-scale li").count() == 0
    again.click("#links-open")
    assert not again.read("traffic()")["isShown"]
