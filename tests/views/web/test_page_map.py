"""The map shows structure at any size: one thing a cell, a cube of axes, a layout beside."""

from __future__ import annotations

import pytest

from tests.page import Open
from tests.views.web.workbench import Workbench


def key(workbench: Workbench) -> str:
    return workbench.text("#map-key") if workbench.page.is_visible("#map-key") else ""


def test_small_cells_show_one_thing_and_say_which(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp,pp&world_size=1024&tp=8&pp=4")
    assert "Each cell shows its stage" in key(workbench)
    workbench.choose("heat", "group:tp")
    assert "Each cell shows its TP group" in key(workbench)
    assert "heat=group:tp" in workbench.query()
    workbench.open("dims=dp,tp,pp&world_size=16&tp=2&pp=4")
    assert key(workbench) == "", "large cells show marks"


def test_x_turns_the_map_into_a_cube_whose_axes_can_be_chosen(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&world_size=32&tp=2&pp=4")
    workbench.page.mouse.move(2, 2)
    workbench.press("x")  # the map is all that there is to mean
    assert "arrange=cube" in workbench.query()

    def at(rank: int) -> tuple[int, int]:
        place = workbench.read(f"where({rank})")
        return round(place["x"]), round(place["y"])

    # Ranks 0 and 1 are of one row and two columns; ranks 0 and 8 stages of one column.
    assert at(0)[1] == at(1)[1]
    assert at(0)[0] == at(8)[0]
    workbench.page.get_by_label("tp (2)").select_option("rows")
    workbench.settle()
    assert "cube=pp,tp%2F%2Fdp" in workbench.query()
    assert at(0)[0] == at(1)[0]
    workbench.page.hover("#map")
    workbench.press("x")
    assert "arrange" not in workbench.query()


def test_another_framework_beside_says_how_many_ranks_differ(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp")
    workbench.choose("beside", "framework=internlm")
    assert "beside=framework" in workbench.query()
    told = workbench.text("#beside-told")
    assert told.startswith("16 of 16 ranks differ")
    assert told.endswith("16 in their DP group, 12 in their stage")
    assert workbench.text("#beside-title").startswith("InternLM")
    above_all = "document.querySelector('#map ~ .differing').toDataURL()"
    outlines = workbench.page.evaluate(above_all)
    assert workbench.page.evaluate(DRAWN), "what differs is outlined"
    workbench.hover_rank(5)
    assert workbench.page.evaluate(above_all) == outlines, "the veil lies below the outlines"
    workbench.choose("beside", "")
    assert not workbench.page.is_visible("#beside-half")
    workbench.open("dims=dp&cp=2&beside=framework%3Dinternlm")
    assert "internlm has no cp" in workbench.text("#beside-told")


def test_memory_of_the_plan_colours_ranks_from_0_and_says_its_range(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp&heat=plan.memory")
    assert key(workbench).startswith("memory (planned)\n0 B")
    workbench.page.get_by_role("button", name="around the median").click()
    workbench.settle()
    assert "scale=median" in workbench.query()
    assert "\n0 B" not in key(workbench)


DRAWN = """() => {
  const { width, height } = document.querySelector("#map ~ .differing");
  const context = document.querySelector("#map ~ .differing").getContext("2d");
  return context.getImageData(0, 0, width, height).data.some((value) => value === 255);
}"""


FOUND = "tp=2&pp=1&cp=2&zero=1&dims=tp&micro_batch=4&schedule=1f1b&searched=1&planned_step=1"


@pytest.mark.parametrize("job", ["world_size=32&dims=dp,tp", FOUND], ids=["as it opens", "found"])
def test_the_map_comes_to_rest_at_every_height(page_of: Open, plain: str, job: str) -> None:
    workbench = page_of(plain, f"view=plan&{job}")
    for height in range(640, 1000, 20):  # at some of them marks have room, at others they have not
        workbench.page.set_viewport_size({"width": 1400, "height": height})
        workbench.settle()
