"""llm-foundry under Composer: the mesh of copies, shards and tensors."""

from __future__ import annotations

from tests.launch.formats.asking import groups, open_of, refusal, settled, told

HEAD = "max_duration: 1ep\nglobal_train_batch_size: 8\nmodel:\n  n_layers: 12\n"
FSDP = f"{HEAD}fsdp_config:\n  sharding_strategy: {{}}\n"


def test_fsdp_shards_over_all_ranks() -> None:
    config = told(FSDP.format("FULL_SHARD"))
    assert (config.format, config.framework) == ("llm-foundry YAML", "fsdp")
    assert groups(config, 8)["dp_shard"] == [list(range(8))]
    assert (settled(config)["zero"], settled(config)["layers"]) == (3, 12)
    assert [*open_of(config)] == ["world_size"]


def test_a_hybrid_strategy_without_copies_is_a_plain_one() -> None:
    assert groups(told(FSDP.format("HYBRID_SHARD")), 16)["dp_shard"] == [list(range(16))]


def test_degrees_that_are_all_told_are_the_world() -> None:
    rows = "  data_parallel_shard_degree: 2\n  data_parallel_replicate_degree: 2\n"
    config = told(f"{FSDP.format('FULL_SHARD')}{rows}tp_config:\n  tensor_parallel_degree: 2\n")
    assert config.sizes().world_size == 8
    found = groups(config)
    assert found["tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert found["dp_shard"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert found["dp_replicate"] == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_a_world_that_the_degrees_do_not_make_is_refused() -> None:
    config = told(f"{FSDP.format('FULL_SHARD')}  data_parallel_shard_degree: 8\n")
    assert refusal(config, 16).startswith("the sizes data_parallel_shard_degree=8 do not make 16 ")


def test_without_fsdp_each_rank_holds_whole_weights() -> None:
    assert groups(told(HEAD), 4)["dp_replicate"] == [[0, 1, 2, 3]]


def test_composer_starts_the_ranks_and_the_platform_says_how_many() -> None:
    run = "composer -n 4 train/train.py a.yaml"
    assert told(run, "x.sh", a_yaml=FSDP.format("FULL_SHARD")).sizes().world_size == 4
    inner = HEAD.replace("\n", "\n  ")
    config = told(f"compute:\n  gpus: 16\nparameters:\n  {inner}\n")
    assert config.sizes().world_size == 16
