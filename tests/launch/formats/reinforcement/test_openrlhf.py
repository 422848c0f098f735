"""OpenRLHF: the actor's ranks under Ray, the stage, and parts of sequences and layers."""

from __future__ import annotations

from tests.launch.formats.asking import groups, open_of, told

RAY = "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray {}"


def test_the_actor_has_eight_gpus_of_a_node_and_stage_two_unless_told() -> None:
    sizes = told(RAY.format(""), "x.sh").sizes()
    assert (sizes.world_size, sizes.zero) == (8, 2)
    new = "--actor.num_nodes 2 --actor.num_gpus_per_node 4 --ds.zero_stage 3"
    sizes = told(RAY.format(new), "x.sh").sizes()
    assert (sizes.world_size, sizes.zero) == (8, 3)
    old = "--actor_num_nodes 2 --actor_num_gpus_per_node 8 --zero_stage 3"
    assert told(RAY.format(old), "x.sh").sizes().world_size == 16


def test_parts_lie_in_a_mesh_of_its_own_with_tensors_fastest() -> None:
    text = RAY.format("--ds.ring_attn_size 2 --ds.tensor_parallel_size 2")
    config = told(text, "x.sh")
    found = groups(config)
    assert config.framework == "devicemesh"
    assert found["dp"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert found["sp"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert found["tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_deepspeed_starts_the_trainer_of_answers() -> None:
    text = "deepspeed --num_gpus 4 --module openrlhf.cli.train_sft --ds.zero_stage 3"
    config = told(text, "x.sh")
    assert (config.format, config.framework) == ("OpenRLHF command line", "deepspeed")
    assert (config.sizes().world_size, config.sizes().zero) == (4, 3)


def test_words_that_read_takes_from_a_heredoc_are_followed() -> None:
    text = (
        "read -r -d '' words <<EOF\nopenrlhf.cli.train_sft \\\n  --ds.zero_stage 3\nEOF\n"
        "deepspeed --module $words\n"
    )
    config = told(text, "x.sh")
    assert (config.format, config.fields["zero"].value) == ("OpenRLHF command line", 3)
    assert [*open_of(config)] == ["world_size"]
