"""Answers of any size are written in parts, and read back as what they were."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from serried.action import ActionKind
from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.views.cli.output import (
    TABLE_OR_JSON,
    OutputChoice,
    _in_sixteen,
    as_json,
    json_parts,
    rendered,
    write_parts,
)
from serried.views.colours import ACTIONS, OF_SIXTEEN
from serried.views.layout.document import groups_csv, groups_document
from serried.views.layout.text import table

RANKS = 1 << 18
F, W = ActionKind.F, ActionKind.W
OF_A_PIPELINE = (F, ActionKind.B, ActionKind.I, W)


def test_json_of_many_ranks_comes_in_small_parts_that_read_back_whole() -> None:
    made = layout("megatron", Sizes(RANKS, tp=8, pp=8))
    parts = list(json_parts(groups_document(made, ["tp", "dp"])))
    assert len(parts) > 8
    assert max(map(len, parts)) < 1_000_000
    groups = json.loads("".join(parts))["groups"]
    assert groups == {kind: made.groups(kind).lists() for kind in ("tp", "dp")}


def test_json_has_a_line_per_kind() -> None:
    made = layout("megatron", Sizes(4, tp=2))
    assert as_json(groups_document(made, ["tp", "pp"])).endswith(
        '  "groups": {\n    "tp": [[0, 1], [2, 3]],\n    "pp": [[0], [1], [2], [3]]\n  }\n}'
    )


@pytest.mark.parametrize("columns", [20, 40, 80, 100, 120])
def test_no_number_and_no_unit_is_cut_in_a_table_however_narrow(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = table("kind", "最慢的 rank", "time", "bandwidth", "over", "ranks")
    quantities = ["12", "1.60 ms", "12.5 GB/s", "+33.0%", "0.85 x"]
    rows.add_row("tp", *quantities[:-1], " ".join(map(str, range(64))))
    rows.add_row("expert-data-parallel", *quantities[1:], "0 1")
    rows.columns[3].no_wrap = True
    text = rendered(rows, plain=True)
    for each in quantities:
        assert text.count(each) >= 1
    assert max(map(cell_len, text.splitlines())) <= max(columns, 90)


def test_csv_has_a_row_per_member_of_every_group() -> None:
    made = layout("internlm", Sizes(80, tp=2, pp=4))
    text = "".join(groups_csv(made, ["nettest", "pipe"]))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["kind", "group", "position", "rank"]
    assert rows[1:] == [
        [kind, str(number), str(place), str(rank)]
        for kind in ("nettest", "pipe")
        for number, ranks in enumerate(made.groups(kind).lists())
        for place, rank in enumerate(ranks)
    ]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_parts(["one ", b"two"], tmp_path / "all.txt")
    assert (tmp_path / "all.txt").read_text(encoding="utf-8") == "one two"
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        write_parts(["one"], tmp_path / "none" / "all.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["all.txt"]


@pytest.mark.parametrize(
    ("asked", "name", "form"),
    [
        (None, None, "table"),
        ("json", None, "json"),
        (None, "a.txt", "table"),
        (None, "a.JSON", "json"),
        ("csv", "a.json", "csv"),
    ],
)
def test_a_form_is_the_one_asked_for_else_what_the_ending_says(
    asked: str | None, name: str | None, form: str
) -> None:
    assert OutputChoice("en", asked, Path(name) if name else None).form_among() == form


def test_a_form_that_the_answer_lacks_and_an_ending_that_says_none_are_refused() -> None:
    with pytest.raises(InputError, match="has no csv form; it has table, json"):
        OutputChoice("en", None, Path("a.csv")).form_among(TABLE_OR_JSON)
    with pytest.raises(InputError, match=r"a\.csv has no suffix .* those that do: \.txt, \.json"):
        OutputChoice("en", None, Path("a.csv"), TABLE_OR_JSON).form_among(TABLE_OR_JSON)


def test_an_answer_in_a_file_is_plain_and_ends_its_last_line(tmp_path: Path) -> None:
    OutputChoice("en", None, tmp_path / "a.txt").show("one", "two")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"


def test_in_sixteen_colours_forward_and_weight_gradient_are_apart() -> None:
    assert len({OF_SIXTEEN[kind] for kind in OF_A_PIPELINE}) == 4
    text = Text("F").append("W")
    text.stylize(f"on {ACTIONS[F]}", 0, 1)
    text.stylize(f"on {ACTIONS[W]}", 1, 2)
    assert [span.style for span in _in_sixteen(text).spans] == ["on cyan", "on green"]
