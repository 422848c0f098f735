"""The twelve lessons: a job of sixteen GPUs each, and what their text says of it is so."""

from __future__ import annotations

import pytest

from serried.mesh import Layout
from serried.views.learn.lessons import LESSONS, job_of, lessons
from serried.views.sentences import LANGUAGES
from tests.conftest import Call

TAUGHT = (
    *("world", "node", "rank", "local_rank", "dp", "tp", "pp", "cp", "ep", "zero"),
    *("numbering", "bubble"),
)


def layout(key: str) -> Layout:
    return job_of(key).layout()


def groups(key: str, kind: str) -> list[list[int]]:
    found = layout(key).groups(kind)
    return [found[number].tolist() for number in range(len(found))]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_there_are_twelve_lessons_on_jobs_of_sixteen_gpus(lang: str) -> None:
    found = lessons(lang)
    assert tuple(each.card.key for each in found) == TAUGHT
    assert all(job_of(key).layout().world_size == 16 for key in TAUGHT)
    assert all(each.look and each.address for each in found)


def test_what_lessons_say_of_their_groups_is_so() -> None:
    assert groups("dp", "dp")[0] == [0, 2]
    assert len(groups("dp", "dp")) == 8
    assert groups("tp", "tp")[0] == [0, 1, 2, 3]
    assert groups("pp", "pp")[0] == [0, 4, 8, 12]
    assert groups("numbering", "dp")[0] == [0, 8]
    assert groups("numbering", "pp")[0] == [0, 2, 4, 6]


def test_the_selected_rank_shares_its_groups_with_as_many_as_its_lesson_says() -> None:
    made = layout("rank")
    sizes = {dim: len(made.groups_of(5)[dim][0]) - 1 for dim in ("dp", "tp", "pp")}
    assert sizes == {"dp": 1, "tp": 1, "pp": 3}
    assert job_of("local_rank").laid_out()[1].local_rank(11) == 3


def test_experts_are_spread_and_each_is_split() -> None:
    made = layout("ep")
    assert set(made.groups("ep").sizes) == {4}
    assert set(made.groups("expt_tp").sizes) == {2}


def test_the_bubble_of_the_lesson_is_that_of_its_schedule() -> None:
    words = LESSONS["bubble"]
    stages, count = int(words["stages"]), int(words["microbatches"])
    assert f"{(stages - 1) / (count + stages - 1):.1%}" == "27.3%"


def test_the_command_line_explains_a_word_with_the_job_of_its_lesson(serried: Call) -> None:
    out = serried("explain", "expert tensor parallel").out
    assert out.startswith("Expert tensor parallelism (ETP)\n")
    assert "etp is 2 here: 8 groups (expt_tp)" in out


def test_the_command_line_explains_a_word_with_the_job_that_is_asked_for(serried: Call) -> None:
    out = serried("explain", "dp", "--world-size", "64", "--tp", "8", "--lang", "zh").out
    assert "这里 dp 为 8：共 8 个组（dp），每个组最多跨 8 个节点" in out
    refused = serried("explain", "dp", "--world-size", "64", "--tp", "7")
    assert refused.code == 2


def test_the_command_line_prices_with_a_model_and_a_cluster(serried: Call) -> None:
    model = ("--model", "llama3-8b", "--cluster", "h100", "--sequence", "4096")
    sizes = ("--world-size", "16", "--tp", "2", "--global-batch", "64")
    out = serried("explain", "tp", *sizes, *model).out
    assert "Estimated: all_gather of" in out
    assert serried("explain", "tp", "--world-size", "16", "--model", "llama3-8b").code == 2


def test_without_a_word_the_command_line_lists_all(serried: Call) -> None:
    out = serried("explain").out
    assert "etp         Expert tensor parallelism (ETP)" in out
    assert '"key": "bubble"' in serried("explain", "--format", "json").out
