"""The page plays a collective over a group: what it shows is what Python executed."""

from __future__ import annotations

from typing import Any

import pytest

from serried.collective.blocks import execute
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import make
from serried.views.explain.collectives import explained_collective
from tests.page import Open
from tests.views.web.workbench import Workbench

JOB = "world_size=16&tp=8&pp=1&dims=tp"
RANKS = 8
WHOLE = (1 << RANKS) - 1
PLAYED_ON = """new Promise((done) => {
  const look = () => serried.collective().shown[0].done > 2 ? done() : requestAnimationFrame(look);
  look();
})"""


def shown(workbench: Workbench, number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = workbench.read("collective()")["shown"][number]
    return found


def whole_after(steps: int) -> int:
    """Returns how many blocks of a ring over 8 ranks are summed, over all ranks."""
    states = list(execute(make("all-reduce", "ring", PlacedGroup.first(RANKS))))
    return int((states[steps][:RANKS, :, 0] == WHOLE).sum())


@pytest.mark.parametrize("lang", ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)])
def test_a_group_is_chosen_its_collective_played_stepped_and_dragged(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, f"{JOB}&pinned_group=tp:1", lang=lang)
    workbench.click("#collective-open")
    workbench.choose("collective-algorithm", "ring")
    assert shown(workbench) == shown(workbench) | {"name": "all-reduce", "steps": 14, "done": 0}
    assert workbench.picture("map-moves") != ""
    assert "0 ns / " in workbench.text("figure.collective")

    workbench.page.focus("#collective-slider")
    for steps in range(1, 9):
        before = workbench.page.locator("figure.collective canvas").evaluate("c => c.toDataURL()")
        workbench.press("ArrowRight")
        assert shown(workbench)["done"] == steps
        assert shown(workbench)["whole"] == whole_after(steps)
        after = workbench.page.locator("figure.collective canvas").evaluate("c => c.toDataURL()")
        assert before != after
    workbench.press("End")
    assert shown(workbench) == shown(workbench) | {"done": 14, "whole": RANKS * RANKS, "links": 0}
    workbench.press("Home")
    assert workbench.read("collective()")["time"] == 0
    workbench.press("ArrowRight", "ArrowRight", "ArrowLeft")
    assert shown(workbench)["done"] == 1
    workbench.page.evaluate("serried.written()")
    assert "collective=all-reduce&collective_of=tp:8&algorithm=ring&step=1" in workbench.query()

    workbench.press("Space")
    assert workbench.read("collective()")["playing"]
    workbench.page.evaluate(PLAYED_ON)
    workbench.click("#collective-play")
    held = workbench.read("collective()")
    assert not held["playing"]
    assert workbench.read("collective()") == held

    workbench.page.locator("#collective-moves summary").click()
    workbench.page.locator("#collective-moves li").first.wait_for()
    moves = workbench.page.locator("#collective-moves li").all_inner_texts()
    assert len(moves) == shown(workbench)["links"] == RANKS
    assert all("128 MiB" in move for move in moves)
    title = explained_collective("all-reduce", lang=lang[:2]).title
    told = workbench.page.locator("#collective-explained").text_content() or ""
    assert told.startswith(title) and "2 (n - 1) / n S" in told


def test_two_algorithms_share_a_time_and_a_link_holds_the_moment(page_of: Open, plain: str) -> None:
    place = "collective=all-reduce&collective_of=tp:0&algorithm=ring,tree&bytes=4MiB&step=5"
    workbench = page_of(plain, f"{JOB}&{place}")
    ring, tree = shown(workbench), shown(workbench, 1)
    assert (ring["algorithm"], ring["done"], tree["algorithm"]) == ("ring", 5, "tree")
    assert workbench.read("collective()")["total"] == max(ring["seconds"], tree["seconds"])
    assert "ring" in workbench.text("figure:nth-of-type(1)")
    assert "tree" in workbench.text("figure:nth-of-type(2)")

    workbench.click("#collective-frames")
    frames = workbench.page.locator("#collective-steps button")
    assert frames.count() == ring["steps"] + tree["steps"]
    current = workbench.page.locator("#collective-steps [aria-current]")
    assert current.first.inner_text().startswith("6.")
    frames.nth(2).click()
    assert shown(workbench)["done"] == 2

    workbench.fill(**{"collective-bytes": "-1"})
    assert "bytes" in workbench.text("#collective-alert")
    workbench.click("#collective-close")
    assert workbench.read("collective()") is None
    assert "collective" not in workbench.query()


def test_a_large_group_is_drawn_by_nodes_and_one_rank_has_nothing_to_play(
    page_of: Open, plain: str
) -> None:
    group = "collective=all-reduce&collective_of=dp:0&algorithm=ring"
    workbench = page_of(plain, f"world_size=128&tp=1&pp=1&dims=dp&{group}&step=100")
    assert shown(workbench) == shown(workbench) | {"ranks": 128, "steps": 254, "links": 32}
    workbench.open(f"world_size=8&tp=8&pp=1&dims=dp&{group}")
    assert shown(workbench) == shown(workbench) | {"ranks": 1, "steps": 0}
    assert workbench.page.is_disabled("#collective-play")


def test_what_there_is_stays_to_be_chosen_where_an_address_names_what_there_is_not(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, f"{JOB}&collective=ring-attention&collective_of=tp:0")
    assert "there is no collective 'ring-attention'" in workbench.text("#collective-alert")
    assert workbench.page.input_value("#collective-name") == "ring-attention"
    workbench.choose("collective-name", "all-gather")
    assert workbench.text("#collective-alert") == ""
    assert shown(workbench)["name"] == "all-gather"
    workbench.open(f"{JOB}&collective=all-gather&collective_of=tp:0&algorithm=none,ring")
    assert "all-gather has no algorithm 'none'" in workbench.text("#collective-alert")
    workbench.choose("collective-algorithm", "recursive")
    assert shown(workbench)["algorithm"] == "recursive"


def test_attention_is_as_even_as_its_split(page_of: Open, plain: str) -> None:
    workbench = page_of(
        plain,
        "world_size=4&cp=4&tp=1&pp=1&dims=cp&collective=attention"
        "&collective_of=cp:0&algorithm=ring,ulysses&step=1",
    )
    assert shown(workbench)["pairs"] == [2, 2, 2, 2]
    assert "2 pairs of blocks, 8 in all" in workbench.text("figure:nth-of-type(1)")
    workbench.choose("collective-split", "contiguous")
    assert "2–14 in all" in workbench.text("figure:nth-of-type(1)")
    assert shown(workbench, 1)["algorithm"] == "ulysses"
    workbench.choose("collective-mask", "none")
    assert "4 pairs of blocks, 16 in all" in workbench.text("figure:nth-of-type(1)")
    workbench.page.evaluate("serried.written()")
    assert "split=contiguous&mask=none" in workbench.query()
    workbench.choose("collective-name", "all-gather")
    assert not workbench.page.is_visible("#collective-split")


def test_under_learn_each_collective_plays_on_a_group_of_the_job_as_it_is_planned(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "view=learn&world_size=64&tp=8&pp=4")
    plays = workbench.page.locator("#learn-plays button")
    assert {"all-reduce", "send-receive"} <= set(plays.all_inner_texts())
    workbench.click("#learn-plays button:text-is('send-receive')")
    assert "PP group of rank 0: 4 ranks" in workbench.text("#collective-group")
    assert workbench.page.is_visible("#map"), "it is played on the map as well"
    assert workbench.value("collective-bytes") == "1GiB"
    workbench.click("#collective-priced")
    assert workbench.value("collective-bytes") == "8MiB", "1 x 8192 tokens x 4096 x 2, tp shares it"
    assert "llama3-8b on dgx-h100" in workbench.text("#collective-planned")
    workbench.fill(**{"collective-bytes": "1MiB"})
    assert "priced" not in workbench.query()
