"""Which schedules a run can follow, and the sentence for those that it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.pipeline import ENTRIES, Request, generate
from serried.runtime.job.pipeline import BOTH_WAYS, RUNNABLE, schedule_of

NAMES = (
    "gpipe, 1f1b, eager-1f1b, interleaved-1f1b, looped-bfs, zb-h1, zb-h2, interleaved-zb, zbv, "
    "v-half, v-min, 1f1b-v, group-interleaved, dualpipev, hanayo, auto"
)


def test_all_schedules_run_but_those_that_flow_both_ways() -> None:
    ways = {name: generate(name, Request(2, 4)).placement.num_directions for name in ENTRIES}
    assert {name for name in ENTRIES if ways[name] == 2} == set(BOTH_WAYS)
    assert [name for name in ENTRIES if ways[name] == 1] == list(RUNNABLE)


@pytest.mark.parametrize(
    ("name", "asked", "sentence"),
    [
        # Even where its own sizes are wrong too: those are not worth mending.
        (
            "dualpipe",
            Request(3, 1),
            f"dualpipe puts every stage on two ranks, and a run holds each once; "
            f"schedules that run: {NAMES}",
        ),
        (
            "chimera",
            Request(2, 2),
            f"chimera puts every stage on two ranks, and a run holds each once; "
            f"schedules that run: {NAMES}",
        ),
        (
            "1f1b",
            Request(2, 2, group=2),
            "1f1b has no groups of microbatches; leave out group, or take one that has: "
            "interleaved-1f1b, interleaved-zb, group-interleaved",
        ),
        ("zbv", Request(2, 2, chunks=3), "zbv with 3 chunks cannot be; it needs exactly 2"),
    ],
)
def test_a_schedule_that_cannot_run_is_refused(name: str, asked: Request, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        schedule_of(name, asked)
    assert str(refused.value) == sentence


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="there is no schedule '2f2b'; there are gpipe, 1f1b"):
        schedule_of("2f2b", Request(2, 2, group=2))


@pytest.mark.parametrize(
    ("text", "asked", "sentence"),
    [
        (
            "0F0,0B0\n1F0,1B0\n",
            Request(4, 1),
            "{path} is made for pp=2, and the run has pp=4; take pp=2",
        ),
        (
            "0F0,0B0\n1F0,1B0\n",
            Request(2, 4),
            "{path} is made for microbatches=1, and the run has microbatches=4; "
            "take microbatches=1",
        ),
        (
            "0F0,0B0\n1F0,1B0\n",
            Request(2, 1, chunks=1),
            "{path} says itself which stages each rank holds and in which order they run; "
            "leave out chunks and group",
        ),
        (
            "0:0F0,1:1F0,1:1B0,0:0B0\n0:1F0,1:0F0,0:1B0,1:0B0\n",
            Request(2, 2),
            "plan.csv puts every stage on two ranks, and a run holds each once; "
            f"schedules that run: {NAMES}",
        ),
    ],
)
def test_a_file_that_does_not_fit_the_run_is_refused(
    tmp_path: Path, text: str, asked: Request, sentence: str
) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        schedule_of(str(path), asked)
    assert str(refused.value) == sentence.format(path=path)


def test_a_file_is_read_whatever_case_its_name_ends_in(tmp_path: Path) -> None:
    path = tmp_path / "PLAN.CSV"
    path.write_text("0F0,0B0\n1F0,1B0\n")
    assert [list(map(str, rank)) for rank in schedule_of(str(path), Request(2, 1))] == [
        ["0F0", "0B0"],
        ["1F0", "1B0"],
    ]
