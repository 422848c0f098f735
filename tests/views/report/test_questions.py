"""A report finds an answer however its question is written, and knows the page's own defaults."""

from __future__ import annotations

import random
from urllib.parse import urlencode

from hypothesis import given
from hypothesis import strategies as st

from serried.views.report.questions import full_state, job_questions, key_of

NAMES = st.sampled_from(["tp", "pp", "set", "dims", "figure"])
WORDS = st.lists(st.tuples(NAMES, st.text("a,=&1 ü+", max_size=4)), max_size=6)


@given(WORDS, st.randoms())
def test_a_key_holds_the_words_whatever_their_order_and_the_language(
    words: list[tuple[str, str]], chance: random.Random
) -> None:
    mixed = [*words, ("lang", "zh"), ("order", "")]
    chance.shuffle(mixed)
    # Values of one field keep no order either: they are sorted alike on both sides.
    assert key_of(f"plan?{urlencode(mixed)}") == key_of(f"plan?{urlencode(words)}")


def test_other_words_or_another_question_have_another_key() -> None:
    keys = [key_of(each) for each in ("rank?tp=2", "rank?tp=3", "rank?pp=2", "plan?tp=2", "rank")]
    assert len(set(keys)) == len(keys)


def test_what_a_state_leaves_out_is_what_a_page_opens_with() -> None:
    assert full_state({"view": "plan"})["world_size"] == "16"
    assert full_state({"world_size": "64"})["tp"] == "2"


def test_a_plan_has_chunks_of_its_own_and_a_schedule_only_those_that_it_leaves_open() -> None:
    words = {"plan_chunks": "5", "chunks": "2", "group": "4", "name": "1f1b,interleaved-1f1b"}
    asked = [*job_questions(full_state({"pp": "2", **words}), "en", 16)]
    (plan,) = (each for each in asked if each.startswith("plan?"))
    assert "chunks=5" in plan
    fixed, free = (each for each in asked if each.startswith("schedule?"))
    assert "chunks" not in fixed and "group" not in fixed
    assert "chunks=2" in free and "group=4" in free
