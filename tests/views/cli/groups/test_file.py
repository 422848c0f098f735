"""``serried groups FILE``: sizes from a launch file, options before it, and files written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call

CONFIG = """\
model_parallel:
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  context_parallel_size: 1
language_model:
  num_layers: 24
"""
NANOTRON = """\
parallelism:
  dp: 4
  pp: 2
  tp: 2
  pp_engine: 1f1b
  tp_mode: REDUCE_SCATTER
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "megatron.yaml"
    path.write_text(CONFIG)
    return str(path)


@pytest.fixture
def nanotron(tmp_path: Path) -> str:
    path = tmp_path / "nanotron.yaml"
    path.write_text(NANOTRON)
    return str(path)


def document(serried: Call, *words: str) -> dict[str, object]:
    shown = serried("groups", *words, "--format", "json")
    assert shown.code == 0, shown.err
    found: dict[str, object] = json.loads(shown.out)
    return found


def test_sizes_are_read_and_their_file_named(serried: Call, nanotron: str) -> None:
    shown = serried("groups", nanotron)
    assert "16 ranks = pp 2 x dp 4 x tp 2" in shown.out
    assert "read from nanotron.yaml: " in shown.out


def test_what_is_missing_is_asked_for_by_name(serried: Call, config: str) -> None:
    shown = serried("groups", config)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err == (
        "serried: megatron.yaml does not settle world_size: megatron.yaml does not say on how "
        "many ranks it runs; give it, such as --world-size 64\n"
    )


def test_options_go_before_the_file(serried: Call, config: str) -> None:
    found = document(serried, config, "--world-size", "16", "--tp", "2")
    sizes = found["sizes"]
    assert isinstance(sizes, dict)
    assert (sizes["tp"], sizes["pp"], sizes["dp"]) == (2, 2, 4)


def test_dp_may_complete_the_world(serried: Call, config: str) -> None:
    assert document(serried, config, "--dp", "3")["world_size"] == 24


def test_another_world_leaves_the_files_dp_aside(serried: Call, nanotron: str) -> None:
    sizes = document(serried, nanotron, "--world-size", "32")["sizes"]
    assert isinstance(sizes, dict)
    assert sizes["dp"] == 8


def test_every_size_says_where_it_came_from(serried: Call, config: str) -> None:
    shown = serried("groups", config, "--world-size", "16", "--pp", "4", "--sources")
    told = {line.split()[0]: line for line in shown.out.splitlines() if line.strip()}
    assert told["tp"].endswith("megatron.yaml line 2, model_parallel.tensor_model_parallel_size")
    assert told["pp"].endswith("option --pp")
    assert told["world_size"].endswith("option --world-size")
    assert told["dp"].endswith("what the other sizes leave")
    assert told["layers"].endswith("megatron.yaml line 6, language_model.num_layers")


def test_sources_are_a_document_too(serried: Call, nanotron: str) -> None:
    found = document(serried, nanotron, "--sources")
    assert (found["schema"], found["file"]) == ("serried.sources/1", "nanotron.yaml")
    sizes = found["sizes"]
    assert isinstance(sizes, dict)
    assert sizes["tp"] == {"value": 2, "from": "nanotron.yaml line 4, parallelism.tp"}


def test_a_file_is_laid_out_by_another_framework(serried: Call, nanotron: str) -> None:
    shown = serried("groups", nanotron, "--framework", "internlm")
    assert "internlm 0.2.1dev20240102: 16 ranks = dp 4 x pp 2 x tp 2" in shown.out
    assert "settings of nanotron and its order are left out under internlm" in shown.out


def test_two_files_are_compared(serried: Call, nanotron: str, config: str) -> None:
    shown = serried("groups", nanotron, "--compare", config)
    assert shown.code == 1
    assert "rank 0's tensor group is [0 1] under nanotron (tp_pg) and [0 1 2 3] under megatron" in (
        shown.out
    )


def test_layers_of_the_file_are_shown_with_its_ends(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(
        "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py "
        "--pipeline-model-parallel-size 4 --num-layers 14 "
        "--decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 3\n"
    )
    shown = serried("groups", str(path))
    assert "0         3       0 to 2" in shown.out
    assert "3         3       11 to 13" in shown.out


def test_a_folder_with_two_configs_names_both(
    serried: Call, config: str, nanotron: str, tmp_path: Path
) -> None:
    shown = serried("groups", str(tmp_path))
    assert shown.code == 2
    assert "holds 2 launch files: megatron.yaml, nanotron.yaml; give one of them" in shown.err


def test_a_hostfile_says_the_world_and_filters_cut_it(serried: Call, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a slots=4\nb slots=4\n")
    words = ("--framework", "deepspeed", "--hostfile", str(hosts))
    assert document(serried, *words)["world_size"] == 8
    assert document(serried, *words, "--include", "a@b:0,1")["world_size"] == 6
    assert document(serried, *words, "--exclude", "b")["world_size"] == 4
    shown = serried("groups", *words, "--world-size", "16")
    assert shown.err == (
        "serried: --world-size 16 is not what the hostfile leaves, 8 slots; leave one of them out\n"
    )


def test_nodes_follow_the_hostfile(serried: Call, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a slots=4\nb slots=4\n")
    assert "2 nodes of 4 GPUs" in serried("groups", "--hostfile", str(hosts)).out


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (("--world-size", "5"), "2 nodes, of 4 and 1 GPUs"),
        (("--world-size", "5", "--set", "include=a:0,2"), "1 node of 2 GPUs"),
        (("--world-size", "5", "--gpus-per-node", "8"), "1 node of 8 GPUs"),
    ],
)
def test_nodes_follow_hosts_that_a_setting_names(
    serried: Call, words: tuple[str, ...], nodes: str
) -> None:
    hosts = ("--framework", "deepspeed", "--set", "hostfile=a slots=4\nb slots=1")
    assert nodes in serried("groups", *hosts, *words).out


def test_a_config_is_written_and_reads_back(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "out.yaml"
    words = ("--framework", "nanotron", "--world-size", "16", "--tp", "2", "--pp", "2")
    assert serried("groups", *words, "--emit", "nanotron", "-o", str(path)).code == 0
    back = document(serried, str(path))
    assert back["groups"] == document(serried, *words)["groups"]


def test_a_target_that_is_not_written_is_refused(serried: Call) -> None:
    shown = serried("groups", "--world-size", "8", "--emit", "tarot")
    assert shown.code == 2
    assert shown.err.startswith("serried: 'tarot' is not written; targets that are: megatron")


def test_a_file_that_is_not_there_is_one_sentence(serried: Call, tmp_path: Path) -> None:
    shown = serried("groups", str(tmp_path / "none.sh"))
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert "cannot be read: No such file or directory" in shown.err


def test_nodes_are_as_wide_as_the_hostfile_and_its_filters_leave_them(
    serried: Call, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a slots=4\nb slots=4\n")
    words = ("--framework", "deepspeed", "--hostfile", str(hosts), "--include", "a@b:1")
    assert "5 ranks = data 5, order pipe,data,model, 2 nodes, of 4 and 1 GPUs\n" in (
        serried("groups", *words).out
    )
    assert "2 个节点，分别有 4 和 1 张 GPU" in serried("groups", *words, "--lang", "zh").out
    table = serried("groups", *words, "--kind", "data").out
    assert "data group  ranks  nodes  members" in table
    assert "0           5      2      [0 1 2 3 4]" in table
    place = document(serried, *words, "--rank", "4")
    assert (place["node"], place["local_rank"]) == (1, 0)
    same = ("--framework", "deepspeed", "--world-size", "5", "--gpus-per-node", "4,1")
    assert serried("groups", *same).out == serried("groups", *words).out
    shown = serried("groups", *words, "--emit", "deepspeed")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("serried: nodes of 4, 1 GPUs hold different numbers of ranks")


def test_many_nodes_that_differ_are_told_by_the_least_and_the_most(
    serried: Call, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"n{i} slots={8 - i % 2}\n" for i in range(20)))
    assert "20 nodes, of 7 to 8 GPUs" in serried("groups", str(hosts)).out
