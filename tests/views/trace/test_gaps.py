"""The longest waits as sentences: who waited for whom, and why, in both languages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.trace.measure.path.gaps import Gap, GapPiece
from serried.views.sentences import say
from serried.views.trace.gaps import gap_document, gap_head, gap_lines, gap_sentences

MS = 1_000_000


def piece(
    rank: int, kind: str, ms: int, action: str | None = None, name: str = "", usual: int = 0
) -> GapPiece:
    return GapPiece(rank, kind, action, name, 0, ms * MS, ms * MS, usual * MS or None)


def gap(*pieces: GapPiece, planned: int | None = None) -> Gap:
    return Gap(5, 7, "1F0", 0, 160 * MS, planned and planned * MS, pieces, 1, 160 * MS)


def many(first: Gap) -> Gap:
    return replace(first, alike=39, alike_ns=1_430 * MS, alike_steps=(2, 7))


MESSAGE = piece(5, "transfer", 1)
FORWARD = piece(1, "forward", 12, "0F0", usual=12)
CASES = {
    "the other began late": (
        gap(MESSAGE, FORWARD, piece(1, "other", 147)),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which began late because nothing of "
        "rank 1 was recorded for 147 ms",
    ),
    "it loaded data": (
        gap(MESSAGE, FORWARD, piece(1, "other", 147, name="data")),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which began late because rank 1 loaded "
        "data for 147 ms",
    ),
    "it was in something with a name": (
        gap(MESSAGE, FORWARD, piece(1, "other", 147, name="save")),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which began late because rank 1 spent "
        "147 ms in save",
    ),
    "the other took longer": (
        gap(piece(1, "forward", 160, "0F0", usual=12)),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which took 160 ms where 12.0 ms is "
        "usual",
    ),
    "another before it took longer": (
        gap(FORWARD, piece(0, "backward", 148, "0B3", usual=24)),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which began late because rank 0 took "
        "148 ms for 0B3 where 24.0 ms is usual",
    ),
    "the message took long": (
        gap(piece(5, "transfer", 148), FORWARD),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which arrived late because a message "
        "to rank 5 took 148 ms",
    ),
    "a collective": (
        gap(FORWARD, piece(1, "exchange", 148, "0F0")),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1, which began late because a collective "
        "held rank 1 up for 148 ms",
    ),
    "the schedule has it": (
        gap(FORWARD, planned=150),
        "in step 7 rank 5 waited 160 ms for 0F0 of rank 1; nothing before it took much longer than "
        "usual; the plan has 150 ms of it",
    ),
    "nobody was waited for": (
        gap(piece(5, "other", 160)),
        "in step 7 rank 5 waited 160 ms before 1F0: nothing of rank 5 was recorded for 160 ms",
    ),
    "nothing is known": (gap(), "in step 7 rank 5 waited 160 ms before 1F0"),
}


@pytest.mark.parametrize(("case", "told"), CASES.values(), ids=CASES)
def test_a_wait_is_one_sentence_with_its_cause(case: Gap, told: str) -> None:
    assert [say(each, "en") for each in gap_sentences(case)] == [told]
    (chinese,) = (say(each, "zh") for each in gap_sentences(case))
    assert chinese.startswith("第 7 步里 rank 5 ")
    assert "waited" not in chinese


def test_waits_of_one_cause_are_counted() -> None:
    case = many(CASES["the other began late"][0])
    told = "39 waits come from the same, 1.43 s in all, in steps 2 to 7"
    assert say(gap_sentences(case)[1], "en") == told
    assert say(gap_head(case), "en") == "39 waits, 1.43 s, in steps 2 to 7"
    for name in ("a collective", "the message took long"):
        told = say(gap_sentences(many(CASES[name][0]))[1], "en")
        assert " waits come from " in told
        assert "the same" not in told
    lines = gap_lines([case])
    assert lines[0].startswith("longest waits       in step 7 rank 5 waited 160 ms")
    assert max(map(len, lines)) <= 100


def test_a_document_says_what_the_sentence_is_made_of() -> None:
    found = gap_document(CASES["it loaded data"][0])
    assert found["awaited"] == {"rank": 1, "action": "0F0"}
    assert found["root"]["name"] == "data"
    assert found["length_us"] == 160_000
    assert found["way"]["en"] == [
        "rank 1: 0F0, 12.0 ms; 12.0 ms is usual",
        "rank 1 loaded data for 147 ms",
    ]
    assert {*found["lines"]} == {"en", "zh"}
