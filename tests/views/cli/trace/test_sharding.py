"""``serried trace compare --sharding`` tells whether a step moved what was planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call
from tests.trace.planned_run import RUN, write_planned_run


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_planned_run(tmp_path_factory.mktemp("runs") / "alike"))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_planned_run(tmp_path_factory.mktemp("runs") / "short", short=1))


def test_a_step_as_planned_is_told_so_with_each_collective_beside_its_own(
    serried: Call, alike: str
) -> None:
    answer = serried("trace", "compare", alike, "--sharding")
    assert answer.code == 0
    assert (
        answer.out
        == """\
2 ranks gathered and reduced what was planned under ZeRO 2, in order and bytes; steps: 0, 1
step 0 of rank 0: collectives planned 2, recorded 2

#  planned         over      bytes  recorded        among ranks     bytes
0  all-gather      shard  32,832 B  all-gather      0, 1         32,832 B
1  reduce-scatter  shard  13,440 B  reduce-scatter  0, 1         13,440 B
"""
    )


def test_the_first_step_that_differs_is_shown(serried: Call, short: str) -> None:
    lines = serried("trace", "compare", short, "--sharding").out.splitlines()
    assert lines[:2] == [
        "step 1 of rank 1 is not what was planned under ZeRO 2: collective 0 differs: all-gather "
        "32,832 B [0, 1] was planned, and the rank recorded all-gather 32,824 B [0, 1]",
        "steps that differ: 1 of 4, each rank's counted",
    ]
    assert [line.split()[-1] for line in lines[-2:]] == ["differs", "B"]
    chinese = serried("trace", "compare", short, "--sharding", "--lang", "zh").out
    assert chinese.startswith("ZeRO 2 下，rank 1 的第 1 步与计划不一致：第 0 次集合通信不同")


def test_a_rank_and_a_step_can_be_chosen(serried: Call, short: str) -> None:
    words = ("trace", "compare", short, "--sharding", "--format", "json")
    whole = json.loads(serried(*words).out)
    assert (whole["schema"], whole["agrees"], len(whole["steps"])) == (
        "serried.recorded-step/1",
        False,
        4,
    )
    wrong = whole["shown"]["collectives"][0]
    assert wrong["planned"] | {"size": 32_824} == wrong["recorded"] | {"over": "shard"}
    assert json.loads(serried(*words, "--rank", "0").out)["agrees"]
    other = json.loads(serried(*words, "--step", "0").out)
    assert (other["agrees"], other["shown"]["step"]) == (True, 0)


def test_what_cannot_be_compared_is_refused_in_a_sentence(
    serried: Call, alike: str, tmp_path: Path
) -> None:
    def refused(*words: str) -> str:
        answer = serried("trace", "compare", *words)
        assert (answer.code, answer.out) == (2, "")
        return answer.err

    assert "rank 7 recorded nothing in" in refused(alike, "--sharding", "--rank", "7")
    assert "these were: 0, 1" in refused(alike, "--sharding", "--step", "9")
    assert "add --sharding" in refused(alike, "--plan", "--step", "1")
    assert "--plan, --sharding or --planned; 2 were given" in refused(alike, alike, "--sharding")
    plain = str(RUN.write(tmp_path / "plain"))
    assert "holds no planned-step.json" in refused(plain, "--sharding")
