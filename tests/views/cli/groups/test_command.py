"""``serried groups``: what it prints, what it refuses, and what other programs read."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.conftest import Call


def test_of_many_kinds_the_table_shows_those_of_one_dimension(serried: Call) -> None:
    shown = serried("groups", "--world-size", "16", "--tp", "2", "--pp", "4").out
    kinds = re.findall(r"^(\w+) +\d+ +\d+ +(?:all|none|\d+) ", shown, re.M)
    assert kinds == ["dp", "tp", "pp", "cp", "ep"]
    assert "15 more kinds of groups: --all" in shown
    few = serried("groups", "--world-size", "16", "--tp", "2", "--framework", "internlm").out
    assert "nettest" in few
    assert "--all" not in few


def test_the_table_names_every_kind_and_the_map_every_rank(serried: Call) -> None:
    shown = serried("groups", "--world-size", "16", "--tp", "2", "--pp", "4", "--all")
    assert shown.code == 0
    assert "megatron 0.16.1: 16 ranks = pp 4 x dp 2 x tp 2" in shown.out
    assert "embd            4       2           none         [0 12] [1 13] …" in shown.out
    assert "node 1" in shown.out
    assert "|  0  |  1  |" in shown.out


def test_no_line_is_wider_than_the_terminal(serried: Call) -> None:
    shown = serried("groups", "--world-size", "4096", "--tp", "8", "--pp", "8", "--cp", "2")
    assert max(map(len, shown.out.splitlines())) <= 100


def test_a_large_world_draws_eight_nodes_and_counts_the_rest(serried: Call) -> None:
    shown = serried("groups", "--world-size", "1024", "--tp", "8")
    assert "… and 120 more nodes" in shown.out


def test_one_kind_lists_every_group_of_it_and_draws_it_on_the_nodes(serried: Call) -> None:
    words = ("--framework", "internlm", "--world-size", "16", "--tp", "2", "--pp", "4")
    shown = serried("groups", *words, "--kind", "data")
    assert [line.split("[")[1] for line in shown.out.splitlines() if "[" in line] == [
        f"{rank} {rank + 8}]" for rank in range(8)
    ]
    assert "| g0 | g1 | g2 |" in shown.out


def test_dimensions_choose_their_kinds_and_cp_folds_into_dp(serried: Call) -> None:
    shown = serried(
        "groups",
        "--world-size",
        "16",
        "--tp",
        "2",
        "--cp",
        "2",
        "--dims",
        "cp+dp",
        "--format",
        "json",
    )
    assert list(json.loads(shown.out)["groups"]) == ["cp", "dp_cp"]


def test_a_rank_sees_its_place_its_groups_and_whom_it_talks_to(serried: Call) -> None:
    shown = serried("groups", "--world-size", "16", "--tp", "2", "--pp", "4", "--rank", "5")
    assert "node 0, local rank 5, GPU 5" in shown.out
    assert "coordinates: tp 1, cp 0, ep 0, dp 0, pp 1" in shown.out
    assert "stage 1: takes activations from rank 1 and sends it their gradients" in shown.out
    assert "stage 1: sends activations to rank 9 and takes their gradients" in shown.out
    assert "not a member" in shown.out


def test_a_process_may_own_several_gpus(serried: Call) -> None:
    words = ("--world-size", "4", "--gpus-per-node", "4", "--gpus-per-rank", "2", "--rank", "3")
    assert "node 1, local rank 1, GPUs 2, 3" in serried("groups", *words).out


def test_json_is_the_documented_schema(serried: Call) -> None:
    shown = serried("groups", "--world-size", "8", "--tp", "2", "--pp", "2", "--format", "json")
    document = json.loads(shown.out)
    assert list(document) == ["schema", "framework", "world_size", "sizes", "groups"]
    assert document["schema"] == "serried.groups/1"
    assert document["sizes"]["dp"] == 2
    assert document["groups"]["tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_json_of_a_rank_holds_its_place_and_groups(serried: Call) -> None:
    shown = serried("groups", "--world-size", "8", "--pp", "2", "--rank", "1", "--format", "json")
    document = json.loads(shown.out)
    assert (document["schema"], document["rank"], document["next"]) == ("serried.rank/1", 1, 5)
    assert document["groups"]["pp"] == [[1, 5]]


def test_csv_has_a_row_per_member(serried: Call) -> None:
    shown = serried("groups", "--world-size", "4", "--tp", "2", "--kind", "tp", "--format", "csv")
    rows = list(csv.reader(shown.out.splitlines()))
    assert rows == [
        ["kind", "group", "position", "rank"],
        ["tp", "0", "0", "0"],
        ["tp", "0", "1", "1"],
        ["tp", "1", "0", "2"],
        ["tp", "1", "1", "3"],
    ]


def test_a_file_is_written_by_its_suffix_and_whole(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    assert serried("groups", "--world-size", "8", "-o", str(path)).code == 0
    assert json.loads(path.read_text())["world_size"] == 8
    assert [each.name for each in tmp_path.iterdir()] == ["groups.json"]


def test_the_world_follows_from_all_other_sizes(serried: Call) -> None:
    shown = serried("groups", "--tp", "2", "--pp", "2", "--dp", "3", "--format", "json")
    assert json.loads(shown.out)["world_size"] == 12


WRONG = [
    ("--world-size 0", "world size 0 cannot be; it is at least 1 rank"),
    ("--world-size -3", "world size -3 cannot be; it is at least 1 rank"),
    (
        "--world-size 99999999999",
        "world size 99999999999 is more than serried lays out; at most 16777216 ranks",
    ),
    ("--world-size many", "world_size=many is not a whole number; one such as 16 is"),
    ("--world-size 1.5", "world_size=1.5 is not a whole number; one such as 16 is"),
    ("--tp 2", "the number of ranks is missing; give it, such as --world-size 16"),
    (
        "--world-size 64 --tp 3",
        "tp=3 does not divide 64 ranks; sizes that do: 1, 2, 4, 8, 16, 32, 64",
    ),
    (
        "--world-size 16 --tp 2 --pp 3",
        "pp=3 does not divide the 8 ranks that tp=2 leave of 16; sizes that do: 1, 2, 4, 8",
    ),
    ("--world-size 16 --tp 0", "tp=0; a size is at least 1"),
    (
        f"--world-size {'9' * 5000}",
        f"world_size={'9' * 40}… is too large; it is at most 16777216",
    ),
    (
        "--world-size 1000000000",
        "world size 1000000000 is more than serried lays out; at most 16777216 ranks",
    ),
    (
        "--world-size 16 --gpus-per-node 100000000000000",
        "gpus_per_node=100000000000000 is more than a node has; it is at most 1000000",
    ),
    (
        "--world-size 16 --nvlink-domain 100000000000000",
        "nvlink_domain=100000000000000 is more than a node has; it is at most 1000000",
    ),
    (
        "--world-size 16 --pp 2 --layers 8 --chunks 100000000000",
        "chunks=100000000000 is too large; it is at most 100000",
    ),
    (
        "--world-size 16 --tp 2 --dp 4",
        "dp=4 does not fit: 16 ranks over tp=2 leave dp=8",
    ),
    (
        "--world-size 16 --order tp-tp-dp-pp",
        "order 'tp-tp-dp-pp' names tp twice; each axis stands once, such as tp-cp-ep-dp-pp",
    ),
    (
        "--world-size 16 --tp 2 --order dp-pp",
        "order 'dp-pp' leaves out tp, whose size is 2; add it where it varies, such as dp-pp-tp",
    ),
    ("--world-size 16 --rank 16", "rank 16 is outside the world; ranks run from 0 to 15"),
    ("--world-size 16 --rank -1", "rank -1 is outside the world; ranks run from 0 to 15"),
    (
        "--world-size 16 --set tp",
        "'tp' is not a setting; one reads KEY=VALUE, such as num_experts=4",
    ),
    ("--world-size 16 --rank 1 --format csv", "--rank has no csv form; it has table and json"),
    (
        "--world-size 16 -o groups.doc",
        "groups.doc has no suffix that says what to write; those that do: .txt, .json, .csv, "
        ".svg, .png",
    ),
    (
        "--world-size 16 --dims dp+zz",
        "--dims dp+zz names 'zz', which megatron does not have here; it has dp, tp, pp, cp, ep, "
        "joined by '+'",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[words[:60] for words, _ in WRONG])
def test_bad_input_gets_one_sentence_and_exit_code_two(
    serried: Call, words: str, sentence: str
) -> None:
    shown = serried("groups", *words.split())
    assert (shown.code, shown.out) == (2, "")
    assert shown.err == f"serried: {sentence}\n"


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (
            "--world-size 16 --framework magetron",
            "framework 'magetron' is not known; those that are:",
        ),
        (
            "--world-size 16 --framework megatron@0.0.1",
            "megatron 0.0.1 is not known; versions that",
        ),
        (
            "--world-size 16 --order tp-xx",
            "order 'tp-xx' names an unknown axis 'xx'; it joins some",
        ),
        (
            "--world-size 16 --kind tensor",
            "megatron makes no group kind 'tensor' here; it makes dp_cp",
        ),
        ("--world-size 16 --set speed=9", "megatron has no setting 'speed'; it has "),
    ],
)
def test_an_unknown_name_is_answered_with_those_there_are(
    serried: Call, words: str, start: str
) -> None:
    shown = serried("groups", *words.split())
    assert shown.code == 2
    assert shown.err.startswith(f"serried: {start}")


def test_a_folder_that_is_not_there_leaves_nothing_behind(serried: Call, tmp_path: Path) -> None:
    shown = serried("groups", "--world-size", "8", "-o", str(tmp_path / "none" / "x.json"))
    assert shown.code == 2
    assert "x.json cannot be written: No such file or directory" in shown.err


def test_an_unknown_option_is_one_line_without_a_traceback(serried: Call) -> None:
    shown = serried("groups", "--worldsize", "8")
    assert shown.code == 2
    assert shown.err.count("\n") == 1
    assert "--worldsize" in shown.err


@pytest.mark.parametrize(("lang", "word"), [("en", "all-reduce"), ("zh", "张量并行")])
def test_the_dimensions_that_are_split_are_explained(serried: Call, lang: str, word: str) -> None:
    shown = serried("groups", "--world-size", "16", "--tp", "2", "--explain", "--lang", lang)
    assert shown.code == 0
    assert word in shown.out


def test_an_explanation_can_be_asked_for_any_dimensions(serried: Call) -> None:
    whole = serried("groups", "--world-size", "16", "--dims", "cp+dp", "--explain").out
    assert "ring" in whole
    assert serried("groups", "--world-size", "16", "--explain").out != whole


def test_more_than_a_thousand_groups_are_told_in_lines_that_line_up(serried: Call) -> None:
    shown = serried("groups", "--world-size", "4096", "--tp", "2", "--kind", "tp")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    start = lines.index("tp group    ranks       nodes       members")
    assert lines[start + 1 : start + 3] == [
        "0           2           1           [0 1]",
        "1           2           1           [2 3]",
    ]
    assert lines[start + 2048] == "2047        2           1           [4094 4095]"
