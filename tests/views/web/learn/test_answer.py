"""What the page asks of words: a card for the job in view, priced where its plan can be made."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.questions import answer_document, questions

JOB = "world_size=16&tp=2&pp=4"
MODEL = "model=llama3-8b&cluster=h100&sequence=8192&global_batch=64"
ANSWERS = questions(OpeningDesk())


def test_a_card_has_the_numbers_of_the_job_in_view_and_the_price_of_its_plan() -> None:
    found = answer_document(f"term?{JOB}&{MODEL}&term=dp&rank=5", ANSWERS)
    assert found["here"][0] == "dp is 2 here: 8 groups (dp), each inside one node"
    assert found["cost"][0].startswith("Estimated: reduce_scatter of 3.49 GB")
    assert found["unplanned"] == ""


def test_a_plan_that_cannot_be_leaves_the_card_and_says_why() -> None:
    found = answer_document(f"term?{JOB}&term=dp&model=llama3-8b&cluster=no-such", ANSWERS)
    assert found["cost"][0].startswith("By all-reduce")
    assert "no-such" in found["unplanned"]


def test_a_word_without_a_card_is_refused() -> None:
    with pytest.raises(InputError, match="no card on 'nonsense'"):
        answer_document(f"term?{JOB}&term=nonsense", ANSWERS)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_lesson_opens_an_address_that_the_server_answers(lang: str) -> None:
    told = answer_document(f"learn?lang={lang}", ANSWERS)
    assert len(told["lessons"]) == 12
    for lesson in told["lessons"]:
        assert lesson["look"] and lesson["card"]["text"]
        answer_document(f"layout?lang={lang}&{lesson['address']}", ANSWERS)
    assert "etp" in [each["key"] for each in told["terms"]]
