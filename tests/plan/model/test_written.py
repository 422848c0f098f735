"""A model in one line is the model again, and a line that is wrong is refused by what it lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.catalog import model_asked, model_named, model_names
from serried.plan.model.written import is_written, shape_of_text, text_of


@pytest.mark.parametrize("name", model_names())
def test_every_model_is_itself_again(name: str) -> None:
    shape = model_named(name)
    text = text_of(shape)
    assert is_written(text) and not is_written(name)
    assert replace(model_asked(text), source=shape.source) == shape


def test_heads_that_do_not_divide_are_written_with_their_size() -> None:
    shape = replace(model_named("llama3-8b"), hidden=4100, head_dim=128)
    assert shape_of_text(text_of(shape)).head_dim == 128


def test_a_name_stays_on_one_line() -> None:
    shape = replace(model_named("llama3-8b"), name="my\nown: model")
    assert shape_of_text(text_of(shape)).name == "my own: model"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mine:layers=4", "written without hidden, heads and vocab"),
        ("mine:layers=x,hidden=8,heads=8,vocab=9", "layers=x is not a whole number"),
        ("mine:layers=4,hidden=8,heads=0,vocab=9", "heads=0; it is at least 1"),
        ("mine:layers=4,hidden=8,heads=8,vocab=9,depth=3", "a model has no 'depth'"),
        ("mine:layers=4,hidden=8,heads=8,vocab=9,norm=group", "it is rms or layer"),
        ("mine:layers=4,hidden=8,heads=8,vocab=9,is_tied=1", "it is true or false"),
        ("mine:layers=4,hidden=8,heads=8,vocab=9,experts.count=8", "without experts.top_k and"),
        (
            "mine:layers=4,hidden=64,heads=5,vocab=9",
            "heads=5 does not divide hidden=64; write head",
        ),
        ("mine:layers=4,layers=5,hidden=8,heads=8,vocab=9", "layers is written as 4 and as 5"),
        ("mine:layers=4,hidden=8,heads=8,vocab=99999999", "it is at most 10000000"),
    ],
)
def test_a_line_that_is_wrong_says_what_of_it(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        model_asked(text)
