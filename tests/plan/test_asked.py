from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request, read_lora, read_recompute
from serried.plan.request import PlanRequest

WORDS = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
SIZES = {"world_size": 16, "tp": 2, "pp": 4}


def asked(words: dict[str, str], framework: str | None = None, **sizes: object) -> PlanRequest:
    return plan_request(LayoutRequest.of(SIZES | sizes, framework=framework), WORDS | words)


def test_sizes_are_settled_by_the_framework_and_the_rest_by_words() -> None:
    made = asked({"micro_batch": "2", "compute": "fp8", "recompute": "full:4"})
    assert (made.degrees.dp, made.num_microbatches, made.schedule) == (2, 16, "1f1b")
    assert (made.zero, made.states, made.recompute.layers) == (1, "fp32-grads", 4)
    assert [stage.num_layers for stage in made.stages] == [8, 8, 8, 8]


def test_a_framework_that_shards_weights_trains_as_it_does() -> None:
    made = asked({}, "torchtitan", pp=1)
    assert (made.zero, made.states, made.shard_ranks) == (3, "fsdp2-mixed", 8)


def test_switches_may_be_numbers_as_in_scripts() -> None:
    made = asked({"sequence_parallel": "0", "flash_attention": "1"})
    assert (made.has_sequence_parallel, made.has_flash_attention) == (False, True)


def test_stages_are_listed_drawn_or_counted_with_their_ends() -> None:
    assert [each.num_layers for each in asked({"layers": "7,8,9,8"}).stages] == [7, 8, 9, 8]
    drawn = asked({"layers_picture": "Et*7|t*8|t*9|t*8L"})
    assert [each.num_layers for each in drawn.stages] == [7, 8, 9, 8]
    ends = asked({"layers_first": "7", "layers_last": "9"})
    assert [each.num_layers for each in ends.stages] == [7, 8, 8, 9]
    counted = asked({"account_for": "embedding,loss"}, world_size=34, pp=17)
    assert [each.num_layers for each in counted.stages] == [1, *[2] * 15, 1]


def test_chunks_make_the_schedule_interleaved_and_a_v_has_two() -> None:
    assert asked({"chunks": "2"}).schedule == "interleaved-1f1b"
    assert len(asked({"schedule": "zbv"}).stages) == 8
    assert len(asked({"schedule": "dualpipe"}).stages) == 4


def test_texts_of_recomputation_and_adapters() -> None:
    assert read_recompute("selective").kind == "selective"
    assert read_lora("16:qkv,fc1").targets == ("qkv", "fc1")


@pytest.mark.parametrize(
    ("words", "sizes", "sentence"),
    [
        ({"model": ""}, {}, "the model is missing; give it, such as --model llama3-8b"),
        ({"cluster": ""}, {}, "the cluster is missing; give it, such as --cluster h100"),
        ({"sequence": ""}, {}, "the sequence length is missing; give it, such as --sequence"),
        ({"global_batch": ""}, {}, "batch is missing; give it, such as --global-batch 16"),
        ({}, {"world_size": None}, "the number of ranks is missing"),
        ({"model": "llama9"}, {}, "no model 'llama9'; the nearest are"),
        ({"cluster": "h1000"}, {}, "no cluster 'h1000'; the nearest are h100"),
        ({}, {"tp": 16, "world_size": 64}, None),
        ({"model": "qwen2.5-0.5b"}, {"tp": 4}, "tp=4 does not divide heads, 14; sizes that do"),
        ({"layers": "7,8,9"}, {}, "layers are given for 3 stages; pp=4"),
        ({"model": "deepseek-v3"}, {}, "4 stages .* do not divide the 61 layers"),
        (
            {"model": "mixtral-8x7b"},
            {"ep": 16, "world_size": 128, "etp": 1},
            "ep=16 does not divide experts, 8; sizes that do: 1, 2, 4, 8",
        ),
        (
            {"sequence": "1" + 14 * "0"},
            {},
            "sequence=10{14} is too large; it is at most 1073741824",
        ),
        ({"global_batch": "8000000000"}, {}, "global_batch=8000000000 is too large"),
        ({"lora": "100000"}, {}, "lora=100000 is too large; it is at most 65536"),
        (
            {"schedule": "chimera", "chunks": "5"},
            {},
            "chimera has one stage on each rank for either direction, and 5 chunks were asked for",
        ),
        ({"schedule": "dualpipe", "chunks": "2"}, {}, "dualpipe has one stage on each rank"),
        (
            {"sequence": "8190"},
            {"cp": 2},
            "4 equal parts, which 8190 tokens do not divide into; sequences that do: 8188, 8192",
        ),
        ({"global_batch": "63"}, {}, "dp=2 x microbatch=1 does not divide the global batch of 63"),
        ({"sequence": "0"}, {}, "sequence=0; it is at least 1"),
        ({}, {"nvlink_domain": 0}, "nvlink_domain=0; it is at least 1"),
        ({"sequence": "long"}, {}, "sequence=long is not a whole number"),
        ({"schedule": "2f2b"}, {}, "no schedule '2f2b'; there are gpipe, 1f1b"),
        ({"recompute": "some"}, {}, "'some' is not recomputed; it reads none, full"),
        ({"recompute": "none:4"}, {}, "'none:4' is not recomputed"),
        ({"recompute": "full:0"}, {}, "recompute=0; it is at least 1"),
        ({"account_for": "head"}, {}, "'head' is no end of a model; ends are embedding and loss"),
        ({"sequence_parallel": "2"}, {}, "sequence_parallel=2 is not a switch"),
        ({"offload": "all"}, {}, "'all' is not offloaded; what can be: none, optimizer"),
        ({"lora": "0"}, {}, "lora=0 cannot be"),
        ({"lora": "8:gate"}, {}, "lora=8:gate cannot be; it reads a rank and linear layers"),
        ({"states": "int4"}, {}, "precision 'int4' is not known"),
        ({"compute": "int4"}, {}, "not multiplied in 'int4'"),
        ({"flash_attention": "perhaps"}, {}, "flash_attention=perhaps is not a switch"),
        ({"colour": "red"}, {}, "a plan has no 'colour'; it has model, cluster"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: dict[str, str], sizes: dict[str, Any], sentence: str | None
) -> None:
    if sentence is None:
        assert asked(words, **sizes).degrees.tp == 16
        return
    with pytest.raises(InputError, match=sentence):
        _ = asked(words, **sizes).stages


OURS = """
name = "ours"
gpus_per_node = 4
nic = { gb_per_s = 12.5, per_node = 2 }

[gpu]
name = "x1"
peak_tflops = { bf16 = 500 }
memory_gb = 64
memory_gb_per_s = 2000
link = { gb_per_s = 100 }
"""


def test_a_cluster_of_ones_own_is_read_from_toml(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(OURS, encoding="utf-8")
    made = asked({"cluster": str(file)}).cluster
    assert (made.name, made.gpu.name, made.nvlink_domain) == ("ours", "x1", 4)
    assert made.nic_bytes_per_s == 6.25e9
    file.write_text('gpu = "b200"\ngpus_per_node = 8\nnic.gb_per_s = 50', encoding="utf-8")
    assert asked({"cluster": str(file)}).cluster.gpu.memory_bytes == 180e9


def test_a_cluster_says_what_is_reached_of_its_links(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(OURS, encoding="utf-8")
    plain = asked({"cluster": str(file)}).cluster
    assert (plain.gpu.link_reached, plain.nic_reached, plain.switch_share) == (1.0, 1.0, 0.0)
    told = OURS.replace("gb_per_s = 12.5", "gb_per_s = 12.5, reached_gb_per_s = 10")
    told = told.replace("gb_per_s = 100", "gb_per_s = 100, reached_gb_per_s = 80")
    file.write_text("switch_sums.share = 0.7" + told, encoding="utf-8")
    made = asked({"cluster": str(file)}).cluster
    assert (made.gpu.link_reached, made.nic_reached, made.switch_share) == (0.8, 0.8, 0.7)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("gb_per_s = 12.5", "gb_per_s = 0", "nic.gb_per_s is 0; it is a number above 0"),
        ("gb_per_s = 100", "gb_per_s = 0", "gpu.link.gb_per_s is 0; it is a number above 0"),
        ("memory_gb = 64", "", "gpu.memory_gb is missing; it is a number above 0"),
        ("gpus_per_node = 4", "gpus_per_node = 0", "gpus_per_node is 0; it is a whole number of"),
        ("gpus_per_node = 4", 'gpus_per_node = "4"', "gpus_per_node is 4; it is a whole number"),
        ("bf16 = 500", "bf16 = inf", "gpu.peak_tflops.bf16 is inf; it is a number above 0"),
        ("memory_gb = 64", "memory_gb = true", "gpu.memory_gb is True; it is a number above 0"),
        (
            "per_node = 2",
            "reached_gb_per_s = 13",
            "reached_gb_per_s is 13; it is a number of at most",
        ),
        (
            '"ours"',
            '"ours"\nswitch_sums.share = 2',
            "switch_sums.share is 2; it is a number of at most 1",
        ),
        ("[gpu]", "[gpu", "ours.toml is no TOML: Expected"),
        ("[gpu]", "[card]", "gpu is missing; it is a table"),
    ],
)
def test_a_cluster_that_cannot_be_names_the_key(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(OURS.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        asked({"cluster": str(file)})


def test_a_model_of_ones_own_is_a_config_json(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8}
    config |= {"num_attention_heads": 8, "intermediate_size": 4096, "vocab_size": 32000}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert asked({"model": str(tmp_path)}).model.layers == 8
    with pytest.raises(InputError, match=r"nothing\.json cannot be read"):
        asked({"model": str(tmp_path / "nothing.json")})


def test_paddle_shards_only_over_the_axis_that_is_given() -> None:
    told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    plain = plan_request(LayoutRequest.of({"world_size": 16}, framework="paddle"), told)
    assert (plain.zero, plain.shard_ranks) == (0, None)
    plain = plan_request(LayoutRequest.of({"world_size": 16}, framework="megatron"), told)
    assert (plain.zero, plain.shard_ranks) == (1, 16)


def test_nodes_and_fast_links_that_are_given_are_the_cluster_s() -> None:
    told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}

    def placed(cluster: str, **sizes: int) -> tuple[int, int]:
        asked = LayoutRequest.of({"world_size": 16, **sizes})
        found = plan_request(asked, told | {"cluster": cluster}).cluster
        return found.gpus_per_node, found.nvlink_domain

    assert placed("h100") == (8, 8)
    assert placed("h100", gpus_per_node=4) == (4, 4)
    assert placed("h100", nvlink_domain=4) == (8, 4)
    assert placed("gb200", gpus_per_node=2)[1] == 72


def test_ranks_of_several_gpus_and_unequal_nodes_are_refused() -> None:
    told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    with pytest.raises(InputError, match="one GPU a rank"):
        plan_request(LayoutRequest.of({"world_size": 16, "gpus_per_rank": 2}), told)
    with pytest.raises(InputError, match="nodes of one number of GPUs; it got 4, 8"):
        plan_request(LayoutRequest.of({"world_size": 12, "gpus_per_node": (4, 8)}), told)
