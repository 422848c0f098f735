"""What is selected in one view is selected in the others, and read back."""

from __future__ import annotations

import subprocess
import sys

import pytest

import serried
from serried.errors import InputError
from serried.views.notebook.selection import NOTHING, Selected, Selection

JOB = serried.layout(world_size=16, tp=2, pp=4)
SCHEDULE = serried.schedule("1f1b", stages=4, microbatches=8)


def test_a_selected_rank_is_read_back_with_its_group() -> None:
    view = serried.view(JOB, kind="dp", selection=Selection())
    view.select(rank=5)
    assert view.selected == Selected(5, "dp", 3, (5, 7))
    view.select(kind="pp", group=1)
    assert view.selected == Selected(None, "pp", 1, (1, 5, 9, 13))
    view.select()
    assert view.selected == NOTHING


def test_what_is_selected_in_a_layout_is_the_row_of_its_stage() -> None:
    both = Selection()
    ranks = serried.view(JOB, kind="tp", selection=both)
    rows = serried.view(SCHEDULE, layout=JOB, selection=both)
    ranks.select_row(9)
    assert rows.selected.rank == 9
    assert rows.rows_of_selected() == ([2], [])
    rows.select_row(3)
    assert ranks.selected.ranks == (12, 13, 14, 15)
    assert ranks.rows_of_selected() == ([12], [13, 14, 15])


def test_views_share_one_selection_unless_they_are_given_another() -> None:
    one, other = serried.view(JOB), serried.view(JOB, kind="pp")
    apart = serried.view(JOB, selection=Selection())
    one.select(rank=3)
    assert other.selected.rank == 3
    assert apart.selected == NOTHING
    one.select()


def test_a_rank_that_another_view_does_not_have_lights_nothing_there() -> None:
    both = Selection()
    large = serried.view(serried.layout(world_size=64), selection=both)
    small = serried.view(JOB, selection=both)
    large.select(rank=63)
    assert small.rows_of_selected()[0] == []
    assert small.told().startswith("selected ranks: ")


def test_another_kind_of_groups_keeps_the_rank_and_changes_its_group() -> None:
    view = serried.view(JOB, kind="tp", selection=Selection())
    view.select(rank=5)
    before = view.drawn.picture
    view.show_kind("pp")
    assert view.selected == Selected(5, "pp", 1, (1, 5, 9, 13))
    assert view.drawn.picture != before
    assert view.told() == "rank 5: tp 1, dp 0, pp 1; pp group 1: [1 5 9 13]"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"rank": 16}, "rank 16 is outside the world"),
        ({"rank": -1}, "rank -1 is below 0"),
        ({"kind": "data"}, "makes no group kind 'data'"),
        ({"group": 9}, "tp has no group 9; its groups are 0 to 7"),
    ],
)
def test_what_cannot_be_selected_is_refused(asked: dict[str, int], sentence: str) -> None:
    view = serried.view(JOB, kind="tp", selection=Selection())
    with pytest.raises(InputError, match=sentence):
        view.select(**asked)  # type: ignore[arg-type]
    assert view.selected == NOTHING


def test_a_schedule_without_a_layout_knows_no_groups() -> None:
    with pytest.raises(InputError, match="no layout tells of groups here"):
        serried.view(SCHEDULE, kind="dp")
    with pytest.raises(InputError, match="no layout tells of groups here"):
        serried.view(SCHEDULE, selection=Selection()).select(group=0)


def test_a_view_without_anywidget_is_its_still_picture() -> None:
    code = (
        "import sys; sys.modules.update(anywidget=None, IPython=None); import serried; "
        "view = serried.view(serried.layout(world_size=4, tp=2)); view.select(rank=1); "
        "print(view.selected.ranks, '<svg' in view._repr_html_(), view)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("(0, 1) True megatron")


def test_a_layout_tells_the_group_of_its_own_kind_whichever_view_selected_the_rank() -> None:
    shared = Selection()
    job = serried.layout(world_size=4, pp=4)
    rows = serried.view(
        serried.schedule("1f1b", stages=4, microbatches=8), layout=job, selection=shared
    )
    pipelines = serried.view(job, kind="pp", selection=shared)
    smaller = serried.view(serried.layout(world_size=2, tp=2), kind="tp", selection=shared)
    rows.select(rank=3)
    assert pipelines.selected == Selected(3, "pp", 0, (0, 1, 2, 3))
    assert rows.selected.rank == smaller.selected.rank == 3
