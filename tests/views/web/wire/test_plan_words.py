"""Words of a plan that have no field of their own, and settings, stand in one word."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.views.web.plan.query import command, field_of, read_plan_request
from serried.views.web.wire.plan_words import given
from serried.views.web.wire.query import read_query

JOB = {"world_size": "16", "tp": "2", "pp": "4", "model": "llama3-8b", "cluster": "h100"}
BATCH = {"sequence": "4096", "global_batch": "64"}


def words(more: str) -> dict[str, list[str]]:
    return {name: [text] for name, text in {**JOB, **BATCH, "more": more}.items()}


def test_further_words_and_settings_reach_the_plan_and_its_command() -> None:
    asked = words("states=fp16-adam lora=16 tp_comm_overlap=true")
    query = read_query(asked)
    made = read_plan_request(query, asked)
    assert (made.states, made.lora and made.lora.rank) == ("fp16-adam", 16)
    assert made.options["tp_comm_overlap"] == "true"
    line = command(query, asked)
    assert "--states fp16-adam --lora 16" in line and "--set tp_comm_overlap=true" in line


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("states", "'states' is not read here; write NAME=VALUE"),
        ("states=fp1", "fp1"),
        ("offload=disk", "'disk' is not offloaded"),
        ("fp8_param_gather=perhaps", "it is true or false"),
        ("cluster=own.toml", "megatron has no setting 'cluster'"),
        ("model=/etc", "megatron has no setting 'model'"),
    ],
)
def test_a_further_word_that_cannot_be_is_refused(more: str, says: str) -> None:
    asked = words(more)
    with pytest.raises(InputError, match=says):
        read_plan_request(read_query(asked), asked)


def test_a_refusal_is_of_the_field_that_holds_them() -> None:
    with pytest.raises(InputError) as caught:
        given(words("states"))
    assert field_of(caught.value) == "more"
