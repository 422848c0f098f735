"""Values in a notebook without a browser: text, HTML that stands alone, and tables."""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serried
from serried.errors import EnvironmentProblem, InputError
from serried.shown import Displayed
from serried.views.notebook.frame import LIBRARIES, frame
from serried.views.notebook.values import drawn

LAYOUT = serried.layout(world_size=16, tp=2, pp=4)
SCHEDULE = serried.schedule("zb-h1", stages=4, microbatches=8)
PLAN = serried.plan_job(
    model="llama3-8b", cluster="h100", world_size=16, tp=2, pp=4, sequence=8192, global_batch=64
)
TRACE = serried.read_trace("tests/goldens/traces/megatronapp")
HANG = serried.diagnose_job("benchmarks/diagnosis/hangs/fewer_batches_56")
VALUES: dict[str, Displayed] = {
    **{"layout": LAYOUT, "schedule": SCHEDULE, "plan": PLAN, "trace": TRACE, "diagnosis": HANG}
}
EMPTY = ("rect", "path", "br", "img")


CRASH = "[rank5000]: RuntimeError: CUDA error: an illegal memory access was encountered\n"


class Tags(HTMLParser):
    """Holds what an HTML names, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_shows_a_picture_that_asks_for_nothing(name: str) -> None:
    html = VALUES[name]._repr_html_()
    tags = Tags(html)
    assert (tags.wrong, tags.open) == ([], [])
    assert "svg" in tags.names
    assert tags.names & {"script", "link", "img", "iframe", "style"} == set()
    assert re.findall(r"(?:href|src|url)\s*[=(]", html) == []


@pytest.mark.parametrize("name", VALUES)
def test_the_rows_of_a_picture_are_those_that_ranks_are_named_for(name: str) -> None:
    found = drawn(VALUES[name])
    marked = {int(row) for row in re.findall(r'data-row="(\d+)"', found.picture)}
    assert marked == set(range(len(found.rows))) != set()
    assert sorted(rank for ranks in found.rows for rank in ranks) == sorted(
        {rank for ranks in found.rows for rank in ranks}
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_text_where_there_is_no_browser(name: str, lang: str) -> None:
    text = drawn(VALUES[name], lang=lang).text()
    assert text and "<" not in text.split("\n")[0]
    assert bool(re.search(r"[一-鿿]", text)) == (lang == "zh")


def test_a_user_s_words_do_not_become_tags_of_the_page() -> None:
    wicked = serried.layout(world_size=4, framework="custom", settings={"axes": "a=2,b=2"})
    assert "<script" not in wicked._repr_html_()
    hostile = drawn(LAYOUT)
    object.__setattr__(hostile, "headline", "<script>alert(1)</script>")
    assert "<script" not in hostile.html()


def test_a_layout_of_many_ranks_says_how_many_are_not_drawn() -> None:
    found = drawn(serried.layout(world_size=4096, tp=8))
    assert len(found.rows) == 1024
    assert found.below[0] == ("the first 1,024 of 4,096 ranks are drawn; serried serve shows all")
    assert len(found.html()) < 500_000


@pytest.mark.parametrize("into", LIBRARIES)
@pytest.mark.parametrize("name", VALUES)
def test_a_value_becomes_a_table_of_each_library(name: str, into: str) -> None:
    table = VALUES[name].table(into=into)
    assert type(table).__module__.split(".")[0] == LIBRARIES[into]
    assert len(table) > 0


def rows(value: Displayed, part: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value.table(part, into="arrow").to_pylist()
    return found


def test_a_layout_s_table_holds_every_member_of_every_group() -> None:
    found: dict[tuple[str, int], list[int]] = {}
    for row in rows(LAYOUT):
        found.setdefault((row["kind"], row["group"]), []).append(row["rank"])
    for kind in LAYOUT.kinds:
        groups = [ranks for (name, _), ranks in found.items() if name == kind.name]
        assert groups == LAYOUT.groups(kind.name).lists()
    assert rows(LAYOUT, "dp")[:2] == [
        {"kind": "dp", "group": 0, "position": 0, "rank": 0},
        {"kind": "dp", "group": 0, "position": 1, "rank": 2},
    ]


def test_a_schedule_s_table_holds_its_actions_and_their_times() -> None:
    found = rows(SCHEDULE)
    for rank in range(4):
        mine = [row["action"] for row in found if row["rank"] == rank]
        assert mine == SCHEDULE.schedule.texts(rank)
    assert max(row["end"] for row in found) == SCHEDULE.simulation.makespan
    idle = sum(row["end"] - row["start"] for row in rows(SCHEDULE, "idle"))
    assert idle == SCHEDULE.idle.total()


def test_a_plan_s_tables_hold_bytes_and_seconds() -> None:
    memory = rows(PLAN)
    for row, place in zip(memory, PLAN.memory.of_ranks, strict=True):
        sizes = [size for name, size in row.items() if name.endswith("_bytes")]
        assert (
            row["total_bytes"] == place.total == sum(sizes) - row["total_bytes"] - row["card_bytes"]
        )
    assert sum(row["seconds"] for row in rows(PLAN, "time")) == pytest.approx(PLAN.step_s)
    assert [row["kind"] for row in rows(PLAN, "traffic")] == [each.kind for each in PLAN.traffic]


def test_a_trace_s_table_holds_its_spans() -> None:
    found = TRACE.table(into="polars")
    assert found["start_ns"].to_numpy().tolist() == TRACE.spans.start_ns.tolist()
    assert found["kind"].to_list() == [span.action.kind.name for span in TRACE.spans]
    assert {"rank", "compute_us", "idle_warm_up_us"} <= {
        *TRACE.table("ranks", into="polars").columns
    }


def test_a_diagnosis_s_tables_are_typed_though_they_are_empty() -> None:
    healthy = serried.diagnose_job("benchmarks/diagnosis/excerpts/23.log")
    waiting = healthy.table("waiting", into="pandas")
    assert len(waiting) == 0
    assert waiting["rank"].dtype == np.int64


def test_a_table_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        InputError, match="no table bubbles here; those that there are: actions, idle"
    ):
        SCHEDULE.table("bubbles")
    with pytest.raises(InputError, match="pandas, polars or arrow, not excel"):
        SCHEDULE.table(into="excel")


def test_a_table_is_of_the_library_that_the_program_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    import polars

    for package in LIBRARIES.values():
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setitem(sys.modules, "polars", polars)
    assert isinstance(frame({"rank": [0]}), polars.DataFrame)


def test_without_a_library_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in LIBRARIES.values():
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr("serried.views.notebook.frame.find_spec", lambda _: None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'serried\[trace\]' adds pyarrow"):
        frame({"rank": [0]})
    monkeypatch.setattr(
        "serried.views.notebook.frame.import_module",
        lambda name: importlib.import_module(f"absent_{name}"),
    )
    with pytest.raises(EnvironmentProblem, match="pip install 'polars' adds it"):
        frame({"rank": [0]}, "polars")


def test_what_is_no_value_of_serried_is_refused() -> None:
    with pytest.raises(InputError, match="a list has no view; layouts, schedules, plans"):
        serried.view([1, 2])


def test_of_more_ranks_than_are_drawn_the_culprit_is(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(CRASH)
    found = replace(serried.diagnose_job(tmp_path / "job.log"), world_size=8192)
    shown = drawn(found)
    assert len(shown.rows) == 1024 and (5000,) in shown.rows
    assert "1,024 of 8,192 ranks are drawn" in shown.text()
    assert "共 8,192 个 rank，只画出 1,024 个" in drawn(found, lang="zh").text()
