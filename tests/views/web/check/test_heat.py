"""A check's report on the cluster map: figures of ranks, findings in both languages, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.views.web.check.heat import NamedCheck, check_heat_payload, checks_answer, read_check
from tests.views.web import reader, slow_node


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return slow_node.document()


@pytest.fixture
def read(document: dict[str, Any], tmp_path: Path) -> NamedCheck:
    file = tmp_path / "monday.json"
    file.write_text(json.dumps(document))
    return read_check(file)


def test_a_rank_is_as_fast_as_its_links_between_nodes_beside_their_like(read: NamedCheck) -> None:
    # Rank 5 receives only inside its node, rank 1 likewise: those are compared with their own.
    assert {name: values.tolist() for name, values in read.figures.items()} == {
        "best_send": [1, 1, 0.25, 0.25, 1, 1],
        "best_receive": [1, 1, 1, 1, 1, 1],
        "worst_send": [1, 1, 0.25, 0.25, 1, 1],
        "worst_receive": [0.25, 1, 1, 1, 0.25, 1],
    }


def test_the_figures_are_those_that_the_command_line_prints(
    read: NamedCheck, document: dict[str, Any]
) -> None:
    assert document["figures"] == {name: values.tolist() for name, values in read.figures.items()}


def test_a_figure_comes_as_a_heat_payload(read: NamedCheck) -> None:
    found = reader.read(check_heat_payload([read], {"figure": ["best_send"]}))
    header = found.header
    assert (header["kind"], header["unit"], header["median"]) == ("heat", "ratio", 1)
    assert header["farthest"] == [{"rank": 2, "value": 0.25}, {"rank": 3, "value": 0.25}]
    assert found.columns["value"].tolist() == [1, 1, 0.25, 0.25, 1, 1]


def test_the_layout_that_was_checked_is_asked_for(read: NamedCheck) -> None:
    asks = {
        name: read.question[name] for name in ("framework", "world_size", "tp", "gpus_per_node")
    }
    assert asks == {"framework": "megatron", "world_size": "6", "tp": "2", "gpus_per_node": "2"}
    assert read.question["set"] == ["create_gloo_process_groups=false"]


def test_findings_are_told_in_each_language_of_the_page(read: NamedCheck) -> None:
    (check,) = checks_answer([read])["checks"]
    (found,) = check["findings"]
    assert check["name"] == "monday" and found["ranks"] == [2, 3]
    assert "slower than its like" in found["in"]["en"]["evidence"][0]
    assert "同类" in found["in"]["zh"]["evidence"][0]


def test_a_check_that_is_not_open_is_refused_with_how_many_are(read: NamedCheck) -> None:
    with pytest.raises(InputError) as caught:
        check_heat_payload([read], {"check": ["1"]})
    assert str(caught.value) == "there is no check 1 here; 1 are open, numbered from 0"


def test_a_figure_that_there_is_not_is_refused_with_those_there_are(read: NamedCheck) -> None:
    with pytest.raises(InputError) as caught:
        check_heat_payload([read], {"figure": ["heat"]})
    assert str(caught.value) == (
        "'heat' is no figure of this check; it has best_send, best_receive, worst_send, "
        "worst_receive"
    )


def _far(document: dict[str, Any]) -> None:
    document["links"][0]["to"] = 99


def _many(document: dict[str, Any]) -> None:
    document["world_size"] = 10**9


def _still(document: dict[str, Any]) -> None:
    document["links"][0]["time_us"] = {"4096": 0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda document: document.pop("links"), "'links'"),
        (_far, "to=99"),
        (_many, "world_size=1000000000"),
        (_still, "time_us=0.0"),
    ],
)
def test_a_damaged_report_is_refused_with_what_is_wrong(
    change: Callable[[dict[str, Any]], None],
    reason: str,
    document: dict[str, Any],
    tmp_path: Path,
) -> None:
    broken = json.loads(json.dumps(document))
    change(broken)
    file = tmp_path / "check.json"
    file.write_text(json.dumps(broken))
    with pytest.raises(InputError) as caught:
        read_check(file)
    assert str(caught.value) == f"check.json is a report of a check, but damaged: {reason}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{"schema": "serried.busbw/1"}',
            "check.json is no report of a check: its schema is not serried.check/1; "
            "serried check -o check.json writes one",
        ),
        ("[" * 100_000, "check.json is no JSON: "),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_report_is_refused(
    text: str | None, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "check.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_check(file)
    assert sentence in str(caught.value)
