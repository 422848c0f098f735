"""The page tells the figures of a profile of GPUs, in both languages, also of another rank."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from serried.trace.formats.reading import read_recording
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.soaked import rows
from tests.trace.gpu.samples import FOLDER
from tests.views.web.served import served
from tests.views.web.test_page_export import rows_of, saved

SAMPLED = [FOLDER / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)]
TOLD = {
    "en-US": ["the GPU of rank 1 is idle for 54.7% of 601 ms", "computation + communication"],
    "zh-CN": ["rank 1 的 GPU 在 601 ms 里空闲 54.7%", "计算 + 通信"],
}


@pytest.fixture(scope="module")
def profile() -> Iterator[str]:
    """The address of a workbench with a profile of two ranks."""
    with served([NamedTrace.read("profile", read_recording(SAMPLED))]) as address:
        yield address


@pytest.mark.parametrize("lang", rows(TOLD, {"zh-CN"}))
def test_a_profile_tells_where_the_time_of_its_gpus_went(
    page_of: Open, profile: str, lang: str
) -> None:
    workbench = page_of(profile, lang=lang)
    told = workbench.text("#gpus").replace("\t", " ")
    for words in (*TOLD[lang], "54.7% 22.6% 22.4% 0.4% 20.1%", "53.6% 17.7% 28.7%"):
        assert words in told
    workbench.choose("gpus-rank", "0")
    assert "195.3 ms" in workbench.text("#gpus-one") != told


def test_the_figures_of_a_profile_are_saved_as_a_table_and_whole(
    page_of: Open, profile: str
) -> None:
    workbench = page_of(profile, lang="en")
    workbench.click("#export")
    heads, *ranks = rows_of(saved(workbench, "statistics-profile", "csv"))
    document = json.loads(saved(workbench, "statistics-profile", "json").read_text("utf-8"))
    workbench.click("#exports-close")
    assert document["schema"] == "serried.gpu-stats/1"
    idle = [float(row[heads.index("idle_us")]) for row in ranks]
    assert idle == [each["time"]["idle_us"] for each in document["ranks"]]
    assert [row[heads.index("rank")] for row in ranks] == ["0", "1"]


def test_a_workbench_without_a_profile_shows_no_such_panel(page_of: Open, plain: str) -> None:
    assert not page_of(plain).page.is_visible("#gpus")
