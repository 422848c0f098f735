"""What the page draws of a planned step's traffic, and of two plans beside one another."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import pytest

from serried.errors import InputError
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.questions import answer_document, questions

PLAN = "model=llama3-8b&cluster=h100&sequence=8192&global_batch=64"
ANSWERS = questions(OpeningDesk([]))


def plan(tp: int, pp: int, **more: str) -> str:
    return f"world_size=16&tp={tp}&pp={pp}&{PLAN}&{urlencode(more)}"


def compared(a: str, b: str, lang: str = "en") -> dict[str, Any]:
    return answer_document(f"plan/compare?a={quote(a)}&b={quote(b)}&lang={lang}", ANSWERS)


def test_a_matrix_has_a_row_for_each_rank_and_sums_to_the_links_of_the_map() -> None:
    found = answer_document(f"plan/matrix?{plan(2, 4)}", ANSWERS)
    links = answer_document(f"plan/links?{plan(2, 4)}", ANSWERS)
    sent = sum(flow["within_bytes"] + flow["across_bytes"] for flow in links["flows"])
    assert (found["unit"], found["rows"], len(found["sent"])) == ("rank", 16, 256)
    assert found["total"] == pytest.approx(sent, rel=1e-6)
    assert found["most"] == max(found["sent"])


def test_plans_beside_one_another_tell_what_was_asked_otherwise() -> None:
    found = compared(plan(2, 4), plan(4, 2, recompute="full"))
    asked = {row["name"] for row in found["asked"] if row["differs"]}
    assert asked == {"tp", "pp", "etp", "recomputation", "layers of the stages"}
    step = found["found"][0]
    assert step["name"] == "step" and step["change"].startswith("+")
    [mfu] = [row for row in found["found"] if row["name"] == "MFU"]
    assert mfu["change"].endswith(" points"), "the difference of two shares is no share"


def test_a_plan_is_as_itself() -> None:
    found = compared(plan(2, 4), plan(2, 4))
    assert not [row for row in (*found["asked"], *found["found"]) if row["differs"]]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_plan_that_does_not_fit_is_named(lang: str) -> None:
    verdict = str(compared(plan(2, 4), plan(1, 1, zero="0"), lang)["verdict"])
    assert ("does not fit: B" in verdict) if lang == "en" else ("放不下：B" in verdict)


def test_one_plan_alone_is_not_compared() -> None:
    with pytest.raises(InputError, match="b is missing"):
        answer_document(f"plan/compare?a={quote(plan(2, 4))}", ANSWERS)
