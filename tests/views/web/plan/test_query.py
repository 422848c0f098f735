"""The Plan panel's question: the words of ``serried plan``, and refusals with their field."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import SerriedError
from serried.views.web.plan.query import field_of, read_plan_request
from serried.views.web.wire.query import read_query

JOB = {"world_size": "16", "tp": "2", "pp": "4"}
TOLD = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}


def refused(**changed: str) -> SerriedError:
    words = {name: [text] for name, text in {**JOB, **TOLD, **changed}.items()}
    with pytest.raises(SerriedError) as caught:
        read_plan_request(read_query(words), words)
    return caught.value


def test_a_question_asks_for_the_job_in_view_and_its_batch() -> None:
    words = {name: [text] for name, text in {**JOB, **TOLD, "compute": ""}.items()}
    asked = read_plan_request(read_query(words), words)
    assert (asked.model.name, asked.cluster.gpu.name, asked.compute) == (
        "llama3-8b",
        "h100",
        "bf16",
    )
    assert (asked.degrees.dp, asked.degrees.pp, asked.num_microbatches) == (2, 4, 32)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("model", "lama"),
        ("model", ""),
        ("cluster", "h1000"),
        ("sequence", "0"),
        ("sequence", ""),
        ("global_batch", "63"),
        ("global_batch", "x"),
        ("micro_batch", "1.5"),
        ("recompute", "some"),
        ("compute", "fp7"),
    ],
)
def test_a_refusal_names_the_field_that_it_is_about(field: str, text: str) -> None:
    assert field_of(refused(**{field: text})) == field


def test_an_address_opens_no_file(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    cluster = tmp_path / "own.toml"
    cluster.write_text("")
    assert "there is no model" in str(refused(model=str(config)))
    assert "there is no model" in str(refused(model=str(tmp_path)))
    assert "there is no cluster" in str(refused(cluster=str(cluster)))
