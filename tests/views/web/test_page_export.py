"""One menu saves what the tab in view shows: pictures, tables, the launch config."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.trace.merge.in_memory import merge
from serried.views.web.diagnose.cases import NamedCase
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.soaked import rows
from tests.trace.recorded_run import Run
from tests.views.web.diagnose.test_cases import HUNG
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

UNLIKE = """async ([svg, png]) => {
  const images = [];
  for (const source of [svg, png]) {
    const image = new Image();
    image.src = source;
    await image.decode();
    images.push(image);
  }
  const { width, height } = images[1];
  if (images[0].width !== width || images[0].height !== height) return 1;
  const [drawn, seen] = images.map((image) => {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, width, height).data;
  });
  let unlike = 0;
  for (let i = 0; i < drawn.length; i += 4)
    unlike += [0, 1, 2].some((each) => Math.abs(drawn[i + each] - seen[i + each]) > 60);
  return unlike / (width * height);
}"""
"""The share of pixels in which a drawing and a picture of one size differ plainly."""
STATES = {
    "view=layout&dims=dp,tp&rank=5&world_size=16": ["map-16"],
    "view=schedule&name=1f1b,zb-h1&stages=4": ["schedule-1f1b-zb-h1"],
    "view=plan&searched=1": ["map-8", "memory", "traffic-matrix", "search"],
    "view=run": ["map-8", "timeline-small"],
    "view=diagnose": ["map-8"],
    "view=layout&world_size=16&tp=1&pp=1&zero=3&sharded=1": ["map-16", "zero"],
    "view=layout&world_size=16&tp=2&pp=1&beside=world_size%3D16%26tp%3D4%26pp%3D1": [
        "map-16",
        "map-beside-16",
    ],
    "view=layout&world_size=8&tp=1&pp=1&collective=all-reduce&collective_of=dp:0&algorithm=ring"
    "&step=3": ["map-8", "play-all-reduce-ring"],
}
SOAKED = {
    "view=diagnose",
    "view=layout&dims=dp,tp&rank=5&world_size=16",
    "view=layout&world_size=16&tp=1&pp=1&zero=3&sharded=1",
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench with a run and a diagnosis."""
    run = Run(pp=2, tp=2, dp=2, num_microbatches=4)
    trace = merge([run.write(tmp_path_factory.mktemp("run") / "small")])
    diagnosis = Diagnosis((HUNG,), ranks_heard=(0, 1, 2, 3))
    case = NamedCase("job", diagnosis, {"world_size": "6"}, 6)
    with served([NamedTrace("small", trace)], cases=[case]) as address:
        yield address


def saved(workbench: Workbench, name: str, form: str) -> Path:
    """Saves what the open menu offers under a name; returns the file."""
    button = f"#exports-list [data-export='{name}'] [data-form={form}]"
    with workbench.page.expect_download() as made:
        workbench.page.click(button)
    assert made.value.suggested_filename == f"serried-{name}.{form}"
    return Path(made.value.path())


def link(file: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def opened(page_of: Open, address: str, query: str) -> Workbench:
    workbench = page_of(address, f"{query}&lang=en", width=1000, height=600)
    workbench.click("#export")
    return workbench


@pytest.mark.parametrize("query", rows(STATES, SOAKED))
def test_every_picture_is_saved_as_it_is_seen_and_as_a_drawing_of_shapes(
    page_of: Open, full: str, query: str
) -> None:
    workbench = opened(page_of, full, query)
    pictures = workbench.page.locator("#exports-list li:has([data-form=svg])")
    names = [pictures.nth(i).get_attribute("data-export") for i in range(pictures.count())]
    assert names == STATES[query]
    for name in STATES[query]:
        png, svg = saved(workbench, name, "png"), saved(workbench, name, "svg")
        assert png.read_bytes().startswith(b"\x89PNG")
        tags = [each.tag.rpartition("}")[2] for each in ElementTree.parse(svg).iter()]
        assert tags.count("path") > 3 and tags.count("text") > 1
        pair = [link(svg, "image/svg+xml"), link(png, "image/png")]
        assert workbench.page.evaluate(UNLIKE, pair) < 0.03, name
    workbench.click("#exports-close")


def rows_of(file: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"))))


def test_tables_hold_what_the_page_shows(page_of: Open, full: str) -> None:
    workbench = opened(page_of, full, "view=plan&searched=1")
    for name, body in (
        ("plan-memory", "plan-memory-rows"),
        ("plan-step", "plan-time-rows"),
        ("plan-traffic", "plan-traffic-rows"),
        ("plan-search", "plan-found-rows"),
    ):
        shown = workbench.page.evaluate(
            "(id) => [...document.getElementById(id).rows].map((row) =>"
            " [...row.cells].map((cell) => cell.innerText.trim()))",
            body,
        )
        heads, *rows = rows_of(saved(workbench, name, "csv"))
        assert [heads, *rows] == shown and len(rows) > 1
        document = json.loads(saved(workbench, name, "json").read_text(encoding="utf-8"))
        named = [head or f"column {i + 1}" for i, head in enumerate(heads)]
        assert [[row[head] for head in named] for row in document] == rows
    workbench.click("#exports-close")


def test_groups_spans_actions_and_diagnoses_are_saved_whole(page_of: Open, full: str) -> None:
    workbench = opened(page_of, full, "view=layout&dims=dp,tp&world_size=16")
    groups = workbench.read("groups()")
    rows = rows_of(saved(workbench, "groups-16", "csv"))[1:]
    told = {(kind, int(group)): [*map(int, ranks.split())] for kind, group, ranks in rows}
    assert told == {(k, i): ranks for k, each in groups.items() for i, ranks in enumerate(each)}
    document = json.loads(saved(workbench, "groups-16", "json").read_text(encoding="utf-8"))
    assert document["schema"] == "serried.groups/1" and document["groups"] == groups
    workbench.click("#exports-close")

    workbench = opened(page_of, full, "view=run")
    workbench.click("#exports-close")
    workbench.click("#timeline-fit")
    workbench.click("#export")
    heads, *spans = rows_of(saved(workbench, "spans-small", "csv"))
    first = dict(zip(heads, spans[0], strict=True))
    assert len(spans) == workbench.read("slices()")
    assert first["name"] == workbench.read("slice(0)")["name"]
    workbench.click("#exports-close")

    workbench = opened(page_of, full, "view=diagnose")
    document = json.loads(saved(workbench, "diagnosis-job", "json").read_text(encoding="utf-8"))
    assert document["findings"][0]["verdict"] in workbench.page.inner_text("#centre")
    workbench.click("#exports-close")


def test_the_launch_config_is_what_the_command_line_writes(page_of: Open, plain: str) -> None:
    workbench = opened(page_of, plain, "view=layout&tp=4&pp=2&world_size=64")
    text = saved(workbench, "launch-megatron", "txt").read_text(encoding="utf-8")
    assert "--tensor-model-parallel-size 4" in text
    workbench.click("#exports-close")
    workbench.choose("framework", "custom")
    workbench.click("#export")
    workbench.click("[data-export='launch-custom'] button")
    assert "custom" in workbench.text("#exports-told"), "what cannot be written is said"
    workbench.click("#exports-close")


def test_moves_idle_time_statistics_and_cards_are_saved_too(page_of: Open, full: str) -> None:
    played = "collective=all-reduce&collective_of=dp:0&algorithm=ring&step=3"
    workbench = opened(page_of, full, f"view=layout&world_size=8&tp=1&pp=1&{played}")
    moves = rows_of(saved(workbench, "all-reduce-ring", "csv"))
    assert moves[0] == ["step", "from", "to", "bytes", "blocks"]
    assert len(moves) == 1 + 14 * 8, "a ring of 8 sends 2 (8 - 1) times from each rank"
    assert moves[1][:4] == ["1", "rank 0", "rank 1", str(2**30 // 8)]
    workbench.click("#exports-close")

    workbench = opened(page_of, full, "view=schedule&name=gpipe&stages=4&microbatches=4")
    idle = rows_of(saved(workbench, "schedule-idle", "csv"))
    total = sum(float(row[2]) for row in idle[1:])
    assert {row[0] for row in idle[1:]} == {"gpipe"} and total == pytest.approx(4 * 3 * 3)
    assert "torchrun" in saved(workbench, "launch-megatron", "txt").read_text(encoding="utf-8")
    workbench.click("#exports-close")

    workbench = opened(page_of, full, "view=run")
    heads, *ranks = rows_of(saved(workbench, "statistics-small", "csv"))
    document = json.loads(saved(workbench, "statistics-small", "json").read_text("utf-8"))
    assert document["schema"] == "serried.trace-stats/1" and len(ranks) == 8
    assert [row[heads.index("rank")] for row in ranks] == [str(rank) for rank in range(8)]
    assert {"steps", "bubble", "critical_path"} <= {*document}
    workbench.click("#exports-close")

    workbench = opened(page_of, full, "view=learn&card=dp&side=learn")
    card = saved(workbench, "card-dp", "txt").read_text(encoding="utf-8")
    assert card.startswith("Data parallelism (DP)") and "https" not in card
    workbench.click("#exports-close")
