from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise

import pytest
from rich.cells import cell_len

from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.job_plan import JobPlan, job_plan
from serried.views.drawing import DrawnArea
from serried.views.plan.document import plan_document
from serried.views.plan.explain import explained, of_memory, of_parameters
from serried.views.plan.picture import plan_picture
from serried.views.plan.text import plan_parts
from serried.views.plan.words import COLOURS, MEMORY, TIME
from serried.views.table import Table

UNITS = {"MiB": 1.0, "GiB": 1024.0}


@cache
def plan(model: str = "llama3-8b", world: int = 16, ep: int = 1, compute: str = "bf16") -> JobPlan:
    sizes = LayoutRequest.of({"world_size": world, "tp": 2, "pp": 4, "ep": ep})
    told = {"model": model, "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    return job_plan(plan_request(sizes, told | {"compute": compute}))


def shown(made: JobPlan, lang: str = "en") -> str:
    lines: list[str] = []
    for part in plan_parts(made, columns=100, lang=lang):
        lines += part.lines(140) if isinstance(part, Table) else [str(part)]
    return "\n".join(lines)


def test_the_verdict_stands_first_and_tables_follow() -> None:
    text = shown(plan())
    assert text.startswith("fits: at most 33.1 GiB of 79.6 GiB, on stage 0 (rank 0)")
    assert "MFU" in text and "causal attention" in text
    assert re.search(r"(?m)^step +[\d.]+ s +100\.0%", text)
    assert re.search(r"(?m)^tp +all_gather +2 ", text)


def test_a_job_that_does_not_fit_says_how_much_is_too_much() -> None:
    assert shown(plan("llama3-70b")).startswith("does not fit: ")
    assert re.search(r"stage 0 \(rank 0\) at \w+, [\d.]+ GiB\s+too much", shown(plan("llama3-70b")))


def test_the_same_is_said_in_chinese() -> None:
    text = shown(plan(), "zh")
    assert text.startswith("放得下：最多用 33.1 GiB")
    assert not re.search(r"[a-z]{4,} [a-z]{4,} [a-z]{4,}", text)


def test_every_item_and_part_has_a_word_and_a_colour() -> None:
    made = plan("mixtral-8x7b", 64, ep=4)
    items = {item.name for each in made.memory.of_ranks for item in each.items}
    assert items <= set(MEMORY) and set(made.parts) <= set(TIME)
    assert (set(MEMORY) | set(TIME)) <= set(COLOURS)


def test_the_document_holds_what_the_text_says_and_sums_up() -> None:
    made = plan()
    document = json.loads(json.dumps(plan_document(made)))
    assert document["schema"] == "serried.plan/1"
    for each in document["memory"]:
        assert sum(each["items"].values()) == each["total"]
    assert [each["layers"] for each in document["memory"]] == [
        [[0, 8]],
        [[8, 16]],
        [[16, 24]],
        [[24, 32]],
    ]
    assert sum(document["time"]["parts_s"].values()) == pytest.approx(document["time"]["step_s"])
    assert document["flops_convention"] == "causal"
    assert document["mfu_by_convention"]["full"] > document["mfu"]
    assert document["asked"]["model"]["parameters"] == 8_030_261_248


@pytest.mark.parametrize(
    ("model", "tp", "pp"),
    [("mixtral-8x7b", 2, 4), ("deepseek-v2-lite", 1, 1), ("deepseek-v2", 1, 4)],
)
def test_explained_formulas_give_what_their_numbers_make(model: str, tp: int, pp: int) -> None:
    sizes = LayoutRequest.of({"world_size": 64, "tp": tp, "pp": pp, "ep": 4})
    told = {"model": model, "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    made = job_plan(plan_request(sizes, told))
    found = {str(each.what): each for each in of_parameters(made)}
    is_latent = made.asked.model.latent is not None
    assert ("latent attention (MLA) of a layer" in found) == is_latent
    for each in found.values():
        value = int(str(each.value).replace(",", ""))
        numbers = str(each.numbers).replace(",", "").replace(" x ", " * ")
        if re.fullmatch(r"[\d *+()]+", numbers):
            assert eval(numbers) == value, each.formula
    states = [each for each in of_memory(made) if str(each.formula).startswith("bytes x")]
    assert len(states) == 3


def test_explanations_name_sources_and_come_in_both_languages() -> None:
    text = "\n".join(map(str, explained(plan(), columns=100)))
    assert "attention of a layer: h (a + 2 kv) d + a d h = 4,096 x (32 + 2 x 8) x 128" in text
    assert "theoretical_memory_usage.py" in text and "arXiv 2104.04473" in text
    assert "一层的注意力" in "\n".join(map(str, explained(plan(), columns=100, lang="zh")))


def test_bars_of_the_picture_are_as_tall_as_the_memory() -> None:
    made = plan()
    drawing = plan_picture(made)
    areas = [mark for mark in drawing.marks if isinstance(mark, DrawnArea)]
    place = made.memory.of_ranks[0]
    tall = sum(each.height for each in areas if each.x == areas[0].x)
    assert tall / 300 == pytest.approx(place.total / place.card_bytes, rel=1e-6)
    assert drawing.svg().startswith("<svg") and drawing.png()[:4] == b"\x89PNG"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_of_memory_keeps_to_the_terminal_and_its_sum(lang: str) -> None:
    table = next(
        part for part in plan_parts(plan(), columns=100, lang=lang) if part and _rows(part)
    )
    lines = _rows(table)
    assert max(map(cell_len, lines)) <= 100
    last = lines[-1].split()
    sizes = [float(size) * UNITS[unit] for size, unit in pairwise(last[2:]) if unit in UNITS]
    *items, whole, _ = sizes
    assert sum(items) == pytest.approx(whole, rel=0.02)


def _rows(part: str | Table) -> list[str]:
    return list(part.lines(100)) if isinstance(part, Table) else []
