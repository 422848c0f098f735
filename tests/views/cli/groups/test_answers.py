"""``serried groups`` beyond the table: advice, comparison, several worlds, layers."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Call

SIXTEEN = ("--world-size", "16", "--tp", "2", "--pp", "4")


def test_important_advice_stands_under_the_table(serried: Call) -> None:
    shown = serried("groups", "--world-size", "32", "--tp", "16")
    assert "warning: 2 of 2 tp groups spread over several nodes of 8 GPUs" in shown.out
    assert "  cure: tp that stays inside: 1, 2, 4, 8" in shown.out
    assert "communicators over" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_a_good_layout_gets_no_advice_unless_asked(serried: Call) -> None:
    assert "warning" not in serried("groups", *SIXTEEN).out
    asked = serried("groups", *SIXTEEN, "--advice").out
    assert "note: a rank makes 20 communicators over 10 different sets of ranks" in asked


def test_json_keeps_its_five_keys_and_warns_on_stderr(serried: Call) -> None:
    shown = serried("groups", "--world-size", "32", "--tp", "16", "--format", "json")
    assert list(json.loads(shown.out)) == [
        *("schema", "framework", "world_size", "sizes", "groups"),
    ]
    assert shown.code == 0
    assert shown.err.startswith("warning: 2 of 2 tp groups spread over several nodes")
    assert shown.err.endswith("; cure: tp that stays inside: 1, 2, 4, 8\n")


def test_advice_is_a_document_too_and_speaks_chinese(serried: Call) -> None:
    words = ("--world-size", "32", "--tp", "16", "--advice", "--lang", "zh", "--format", "json")
    document = json.loads(serried("groups", *words).out)
    first = document["findings"][0]
    assert (document["schema"], first["kind"], first["is_important"]) == (
        *("serried.advice/1", "tp_across", True),
    )
    assert first["cure"] == "不会跨出去的 tp：1、2、4、8"


def test_an_nvlink_domain_has_its_column(serried: Call) -> None:
    words = ("--world-size", "32", "--tp", "8", "--gpus-per-node", "4", "--nvlink-domain", "32")
    shown = serried("groups", *words)
    assert "on one node  in one domain" in shown.out
    assert "warning" not in shown.out


def test_megatron_and_internlm_are_told_apart_in_words(serried: Call) -> None:
    shown = serried("groups", *SIXTEEN, "--compare", "internlm")
    assert shown.code == 1
    assert (
        "rank 0's data group is [0 2] under megatron (dp) and [0 8] under internlm (data)\n"
        in shown.out
    )
    assert "megatron and internlm differ in 2 of 4 kinds that both make" in shown.out


def test_the_same_groups_compare_to_zero(serried: Call) -> None:
    shown = serried("groups", *SIXTEEN, "--compare", "deepspeed")
    assert shown.code == 0
    assert "megatron and deepspeed give the same groups" in shown.out


def test_a_comparison_is_a_document_too(serried: Call) -> None:
    words = (*SIXTEEN, "--framework", "internlm", "--compare", "megatron@0.16.1")
    shown = serried("groups", *words, "--format", "json")
    document = json.loads(shown.out)
    data = next(each for each in document["kinds"] if each["dim"] == "dp")
    assert (shown.code, document["schema"], document["same"]) == (1, "serried.comparison/1", False)
    assert (data["rank"], data["groups"]) == (0, [[[0, 8]], [[0, 2]]])
    assert data["difference"].startswith("rank 0's data group is [0 8] under internlm (data)")


def test_versions_of_one_framework_are_compared_by_version(serried: Call) -> None:
    words = ("--world-size", "16", "--tp", "2", "--cp", "2", "--ep", "2")
    shown = serried("groups", *words, "--compare", "megatron@0.9.0")
    assert shown.code == 1
    assert "expert group is [0 2] under megatron 0.16.1 (ep) and [0 4] under megatron 0.9.0" in (
        shown.out
    )


@pytest.mark.parametrize("pp", ["4", "8"])
def test_the_sizes_engineers_try_get_a_line_each(serried: Call, pp: str) -> None:
    worlds = [64, 96, 128, 160, 192, 224]
    words = ("--world-size", ",".join(map(str, worlds)), "--tp", "8", "--pp", pp)
    shown = serried("groups", *words)
    rows = [line.split() for line in shown.out.splitlines()[1 : len(worlds) + 1]]
    model = 8 * int(pp)
    for world, row in zip(worlds, rows, strict=True):
        assert row[0] == str(world)
        assert row[1] == (str(world // model) if world % model == 0 else "-")
    refused = [line for line in shown.out.splitlines() if "cannot be" in line]
    assert len(refused) == sum(world % model > 0 for world in worlds)
    assert shown.code == 0


def test_a_world_that_cannot_be_is_told_with_those_that_can(serried: Call) -> None:
    shown = serried("groups", "--world-size", "96,128", "--tp", "8", "--pp", "8")
    assert (
        "96 cannot be: pp=8 does not divide the 12 ranks that tp=8 leave of 96; sizes that do: "
        "1, 2, 3, 4, 6, 12; worlds that do: 64, 128" in shown.out
    )
    assert serried("groups", "--world-size", "96,160", "--tp", "8", "--pp", "8").code == 1


def test_a_sweep_document_holds_all_four_lists(serried: Call) -> None:
    words = ("--world-size", "16,24", "--tp", "2", "--pp", "4", "--format", "json")
    document = json.loads(serried("groups", *words).out)
    assert document["schema"] == "serried.sweep/1"
    first, second = document["worlds"]
    assert first["groups"]["dp"][0] == [0, 2]
    assert first["groups"]["model"] == [
        [0, 1, 4, 5, 8, 9, 12, 13],
        [2, 3, 6, 7, 10, 11, 14, 15],
    ]
    assert first["counts"] == {"dp": 8, "model": 2, "tp": 8, "pp": 4}
    assert (second["sizes"]["dp"], second["nodes"]) == (3, 3)


def test_a_drawn_layout_and_a_number_of_layers_must_agree(serried: Call) -> None:
    drawn = ("--set", "pipeline_model_parallel_layout=E|t|tt|tL")
    agreed = serried("groups", *SIXTEEN, "--layers", "4", *drawn, "--format", "json")
    held = [each["chunks"] for each in json.loads(agreed.out)["positions"]]
    assert held == [[[]], [[0]], [[1, 2]], [[3]]]
    assert agreed.err == ""  # A stage without layers is no surprise where it was drawn.
    shown = serried("groups", *SIXTEEN, "--layers", "32", *drawn)
    assert (shown.code, shown.err) == (
        2,
        "serried: pipeline_model_parallel_layout draws 4 layers, but there are 32; make them "
        "agree\n",
    )


def test_layers_are_shown_position_by_position(serried: Call) -> None:
    shown = serried("groups", *SIXTEEN, "--layers", "16", "--chunks", "2")
    rows = [line.split(maxsplit=2) for line in shown.out.splitlines()]
    assert ["1", "4", "2 to 3, 10 to 11  [4 5 6 7]"] in rows
    rank = serried("groups", *SIXTEEN, "--layers", "16", "--rank", "5")
    assert "holds 4 layers: 4 to 7" in rank.out


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("--layers", "10", "--framework", "internlm"), [2, 2, 3, 3]),
        (("--layers", "10", "--framework", "deepspeed"), [3, 3, 2, 2]),
        (("--layers", "3,4,4,3"), [3, 4, 4, 3]),
        (("--layers", "14", "--set", "decoder_first_pipeline_num_layers=2"), [2, 4, 4, 4]),
        (("--layers", "14", "--set", "decoder_last_pipeline_num_layers=5"), [3, 3, 3, 5]),
        (("--layers", "8", "--set", "virtual_pipeline_model_parallel_size=2"), [2, 2, 2, 2]),
    ],
)
def test_uneven_splits_follow_the_framework_and_its_settings(
    serried: Call, words: tuple[str, ...], counts: list[int]
) -> None:
    shown = serried("groups", *SIXTEEN, *words, "--format", "json")
    document = json.loads(shown.out)
    assert document["schema"] == "serried.layers/1"
    held = [sum(map(len, each["chunks"])) for each in document["positions"]]
    assert held == counts


WRONG = [
    (
        "--world-size 16,32 --rank 3",
        "--rank needs one world size; --world-size has 2",
    ),
    ("--world-size 16,32 --kind tp", "--kind needs one world size; --world-size has 2"),
    (
        "--world-size 16 --pp 2 --chunks 2",
        "--chunks cuts a rank's layers; say how many there are with --layers",
    ),
    (
        "--world-size 16 --pp 2 --layers 4,4,4,4 --chunks 4",
        "--layers lists 4 stages, 2 for each of pp=2, but --chunks is 4; leave out --chunks",
    ),
    (
        "--world-size 16 --set numexperts=8",
        "megatron has no setting 'numexperts'; the nearest that it has: num_experts",
    ),
    (
        "--world-size 16 --rank 3 --advice",
        "--rank and --advice are two questions; ask one at a time",
    ),
    ("--world-size 16 --advice --format csv", "this answer has no csv form; it has table, json"),
    ("--world-size 16,x", "world_size=x is not a whole number; one such as 16 is"),
    (
        "--world-size 16 --layers 8 --pp 2 --set decoder_first_pipeline_num_layers=x",
        "decoder_first_pipeline_num_layers=x is not a size; it is a whole number of at least 1",
    ),
    (
        "--world-size 16 --include a",
        "--include and --exclude filter a hostfile; give --hostfile too",
    ),
    ("--world-size 16 --zero 4", "ZeRO stage 4 is not known; stages are 0 to 3"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[words for words, _ in WRONG])
def test_bad_input_gets_one_sentence_and_exit_code_two(
    serried: Call, words: str, sentence: str
) -> None:
    shown = serried("groups", *words.split())
    assert (shown.code, shown.out, shown.err) == (2, "", f"serried: {sentence}\n")


def test_a_comparison_with_nothing_known_is_refused(serried: Call) -> None:
    shown = serried("groups", *SIXTEEN, "--compare", "magetron")
    assert shown.code == 2
    assert "--compare magetron is neither a file nor a framework" in shown.err


def test_one_rank_is_told_as_one(serried: Call) -> None:
    top = serried("groups", "--world-size", "1").out.splitlines()[0]
    assert top == "megatron 0.16.1: 1 rank, order tp-cp-ep-dp-pp, 1 node of 8 GPUs"


def test_a_dimension_named_twice_is_shown_once(serried: Call) -> None:
    once, twice = (
        serried("groups", "--world-size", "8", "--tp", "2", "--dims", dims).out
        for dims in ("dp", "dp+dp")
    )
    assert once == twice


def test_names_as_long_as_variables_leave_the_words_of_the_last_column_whole(
    serried: Call,
) -> None:
    encoder = (f"encoder_{axis}_model_parallel_size" for axis in ("pipeline", "tensor"))
    settings = [word for name in encoder for word in ("--set", f"{name}=1")]
    sizes = ("--world-size", "24", "--tp", "1", "--pp", "2")
    shown = serried("groups", "--framework", "megatron@0.12", *sizes, *settings).out
    line = next(line for line in shown.splitlines() if line.startswith("_PIPELINE_MODEL"))
    assert line.endswith("consecutive stages")
