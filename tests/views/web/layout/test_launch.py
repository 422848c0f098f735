"""What the page is told of launch files: the same as the command line says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.views.web.layout.launch import dropped_request, launch_answer
from serried.views.web.wire.dropped import Dropped
from serried.views.web.wire.query import read_query
from tests.conftest import Call
from tests.launch.test_files import FILES, PADDLE, TEXTS

SCRIPT = "torchrun --nnodes 2 --nproc_per_node 8 x.py --tensor-model-parallel-size 4\n"


def dropped(*files: tuple[str, str]) -> list[Dropped]:
    return [Dropped(name, len(text.encode()), text.encode()) for name, text in files]


def refusal(files: list[Dropped], **words: str) -> str:
    with pytest.raises(InputError) as caught:
        launch_answer(files, {name: [word] for name, word in words.items()})
    return str(caught.value)


def with_those_it_names(name: str) -> list[Dropped]:
    """Returns an example and the files that stand beside it, as a user would drop them."""
    named = [
        other
        for other in TEXTS
        if other != name and other.replace("_runtime.py", "_runtime") in TEXTS[name]
    ]
    return dropped(*((each, TEXTS[each]) for each in [name, *named]))


@pytest.mark.parametrize("name", [*FILES, *PADDLE])
def test_the_form_s_words_ask_for_the_layout_that_the_file_is_of(name: str) -> None:
    files = with_those_it_names(name)
    missing = dropped_request(files, {}).missing()
    words = {each.name: ["64" if each.name == "world_size" else "2"] for each in missing}
    job = launch_answer(files, words)["job"]
    layout = dropped_request(files, words).layout()
    shown = read_query(job).layout
    assert (shown.framework, shown.version, shown.sizes) == (
        layout.framework,
        layout.version,
        layout.sizes,
    )
    for kind in layout.kinds:
        assert shown.groups(kind.name).lists() == layout.groups(kind.name).lists()


def test_sources_and_advice_are_those_of_the_command_line(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"{SCRIPT.strip()} --context-parallel-size 4\n")
    answer = launch_answer(dropped(("run.sh", path.read_text())), {})
    told = json.loads(serried("groups", str(path), "--sources", "--format", "json").out)
    assert {each["name"]: (each["value"], each["from"]) for each in answer["sources"]} == {
        name: (str(each["value"]), each["from"]) for name, each in told["sizes"].items()
    }
    advice = json.loads(serried("groups", str(path), "--advice", "--format", "json").out)
    assert advice["findings"]
    assert answer["findings"] == advice["findings"]


def test_what_is_missing_is_named_and_nothing_else_is_taken_for_it() -> None:
    files = dropped(("run.sh", SCRIPT.replace("2", "$N", 1)))
    answer = launch_answer(files, {"lang": ["zh"]})
    assert answer["job"] is None
    assert answer["missing"] == [
        {
            "name": "world_size",
            "kind": "size",
            "because": "nodes：--nnodes：第 1 行的 N 在文件里没有设",
        }
    ]
    given = launch_answer(files, {"world_size": ["32"], "set": ["use_sharp=false"]})
    assert given["missing"] == []
    assert (given["job"]["world_size"], given["job"]["set"]) == (["32"], ["use_sharp=false"])


def test_the_split_dimensions_come_into_view() -> None:
    assert launch_answer(dropped(("run.sh", SCRIPT)), {})["job"]["dims"] == ["dp,tp"]
    alone = launch_answer(dropped(("a.sh", SCRIPT.replace("4", "1"))), {"tp": ["1"]})
    assert alone["job"]["dims"] == ["dp"]


def test_sizes_that_the_framework_refuses_still_fill_the_form() -> None:
    answer = launch_answer(dropped(("run.sh", SCRIPT.replace("4", "3"))), {})
    assert (answer["job"]["tp"], answer["findings"]) == (["3"], [])
    with pytest.raises(InputError, match="tp=3 does not divide"):
        read_query(answer["job"])


def test_several_files_are_read_as_a_folder_is() -> None:
    script = "deepspeed --hostfile hosts x.py --deepspeed_config ds.json"
    config = '{"zero_optimization": {"stage": 3}}'
    hosts = "node1 slots=8\nnode2 slots=8"
    files = dropped(("hosts", hosts), ("run.sh", script), ("ds.json", config))
    answer = launch_answer([*files, Dropped("logo.png", 4, b"\x89\0\0\0")], {})
    assert (answer["file"], answer["job"]["world_size"], answer["job"]["zero"]) == (
        "run.sh",
        ["16"],
        ["3"],
    )


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            dropped(("a.sh", SCRIPT), ("b.sh", SCRIPT)),
            "what was given holds 2 launch files: a.sh, b.sh; give one of them",
        ),
        (
            dropped(("a.md", "hello"), ("b.md", "hello")),
            "what was given holds no launch file that serried knows",
        ),
        (dropped(("a.md", "hello")), "a.md is no launch file that serried knows"),
        ([Dropped("a.bin", 3, b"\0\1\2")], "a.bin is not text, so it is no launch file"),
        (
            [Dropped("a.sh", 2**26, b"")],
            "a.sh holds more than 1 MB, the most that serried reads of a launch file",
        ),
        (dropped(("a.sh", "torchrun 'x")), "a.sh line 1: "),
    ],
)
def test_what_cannot_be_read_is_one_sentence(files: list[Dropped], sentence: str) -> None:
    assert refusal(files).startswith(sentence)


def test_a_number_that_is_none_is_said_with_the_question_it_answers() -> None:
    files = dropped(("run.sh", SCRIPT))
    assert refusal(files, tp="x") == "tp=x is not a whole number; one such as 16 is"


def test_contradictory_values_are_both_named() -> None:
    twice = f"{SCRIPT}{SCRIPT.replace('4', '2')}"
    (missing,) = launch_answer(dropped(("run.sh", twice)), {})["missing"]
    assert missing["name"] == "tp"
    assert "4 (run.sh line 1, " in missing["because"]
    assert "2 (run.sh line 2, " in missing["because"]


def test_layers_that_cannot_divide_are_a_remark_and_move_no_rank() -> None:
    text = SCRIPT.strip() + (
        " --pipeline-model-parallel-size 4 --num-layers 4 --decoder-first-pipeline-num-layers 9"
    )
    answer = launch_answer(dropped(("run.sh", text)), {})
    assert answer["job"] is not None
    assert any("layers" in note for note in answer["notes"])


def test_hosts_of_different_widths_reach_the_form() -> None:
    script = "deepspeed --hostfile hosts --include a@b:1 x.py --deepspeed_config ds.json"
    hosts, config = "a slots=4\nb slots=4", '{"zero_optimization": {"stage": 3}}'
    answer = launch_answer(dropped(("hosts", hosts), ("run.sh", script), ("ds.json", config)), {})
    assert (answer["job"]["world_size"], answer["job"]["gpus_per_node"]) == (["5"], ["4,1"])
    told = {each["name"]: (each["value"], each["from"]) for each in answer["sources"]}
    assert told["gpus_per_node"] == ("4,1", "run.sh line 1, hostfile")


REGISTRY = """
def small() -> Trainer.Config:
    return Trainer.Config(parallelism=P(tensor_parallel_degree=2, data_parallel_shard_degree=4))


def large() -> Trainer.Config:
    return Trainer.Config(parallelism=P(tensor_parallel_degree=8, data_parallel_shard_degree=2))
"""


def test_a_module_of_several_configs_asks_which_is_meant() -> None:
    files = dropped(("config_registry.py", REGISTRY))
    answer = launch_answer(files, {})
    [missing] = answer["missing"]
    assert (missing["name"], missing["choices"]) == ("recipe", ["small", "large"])
    assert (missing["because"], answer["job"]) == ("config_registry.py holds 2 configs", None)
    chosen = launch_answer(files, {"recipe": ["large"]})
    assert (chosen["job"]["tp"], chosen["job"]["world_size"]) == (["8"], ["16"])


def test_a_module_of_one_config_asks_nothing() -> None:
    text = REGISTRY[: REGISTRY.index("def large")]
    assert launch_answer(dropped(("config_registry.py", text)), {})["missing"] == []


def test_a_config_that_the_module_does_not_hold_is_refused() -> None:
    files = dropped(("config_registry.py", REGISTRY))
    assert refusal(files, recipe="huge") == (
        "config_registry.py holds no config huge; those that it holds: small, large"
    )
