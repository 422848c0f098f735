"""The page's form is the table of sizes: its module is written from it, and holds every size."""

from __future__ import annotations

from serried.mesh.sizes import PLACES, SIZES
from serried.views.web.layout.form import MODULE, OPENS_WITH, module
from serried.views.web.wire.query import read_query


def test_the_module_is_what_the_table_writes() -> None:
    stale = "stale: run python -m serried.views.web.layout.form"
    assert MODULE.read_text(encoding="utf-8") == module(), stale


def test_every_size_but_what_the_others_leave_is_asked_for() -> None:
    text = module()
    asked = (*SIZES, *PLACES, "nvlink_domain")
    named = [name for name in asked if f'name: "{name}"' in text]
    assert named == [name for name in asked if name != "dp"]


def test_the_job_that_a_page_opens_with_can_be_laid_out() -> None:
    query = read_query({name: [str(size)] for name, size in OPENS_WITH.items()})
    assert query.layout.sizes["dp"] == 2
