"""What is done with a launch file: sizes and options that go before it, places, placement."""

from __future__ import annotations

import pytest

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import FRAMEWORKS
from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.found import Found, Missing
from serried.launch.read import read
from serried.mesh import Placement
from tests.launch.test_files import TEXTS

RUN = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4"
FILES = [name for name in TEXTS if name not in ("default_runtime.py", "hosts.txt")]

RANKS = {"paddleformers_sft.yaml": 64}
"""Ranks for files that neither say how many, nor run on any number."""


def config_of(text: str, **beside: str) -> LaunchConfig:
    return read(text, name="run.sh", beside=beside)


def test_a_size_given_goes_before_the_files() -> None:
    sizes = config_of(RUN).sizes({"tp": 2, "pp": 2})
    assert (sizes.world_size, sizes.tp, sizes.pp) == (16, 2, 2)


def test_a_size_given_as_none_is_not_given() -> None:
    assert config_of(RUN).sizes({"tp": None}).tp == 4


def test_a_size_given_settles_one_that_the_file_leaves_open() -> None:
    config = config_of(RUN.replace(" 4", " $TP"))
    assert [each.name for each in config.missing] == ["tp"]
    assert config.sizes({"tp": 8}).tp == 8


def test_ranks_given_go_before_nodes_and_ranks_of_each() -> None:
    assert config_of(RUN).sizes({"world_size": 64}).world_size == 64
    assert config_of(RUN).sizes({"nodes": 4, "world_size": 32}).world_size == 32


def test_an_option_given_goes_before_the_files() -> None:
    config = config_of(f"{RUN} --num-distributed-optimizer-instances 2")
    key = "num_distributed_optimizer_instances"
    assert config.sizes().options == {key: "2"}
    assert config.sizes({}, {key: "4"}).options == {key: "4"}


def test_an_option_that_is_open_is_asked_for_by_its_own_name() -> None:
    config = config_of(f"{RUN} --num-distributed-optimizer-instances $N")
    with pytest.raises(InputError) as caught:
        config.sizes()
    assert str(caught.value) == (
        "run.sh does not settle num_distributed_optimizer_instances: "
        "--num-distributed-optimizer-instances: N on line 1 is not set in the file; give it, such "
        "as --set num_distributed_optimizer_instances="
    )
    assert config.sizes({}, {"num_distributed_optimizer_instances": "2"}).options


def test_a_field_that_no_layout_needs_may_stay_open() -> None:
    config = config_of(f"{RUN} --num-layers $LAYERS")
    assert [each.name for each in config.missing] == ["layers"]
    assert config.sizes().world_size == 16


def test_the_product_of_degrees_is_the_world_where_the_framework_demands_it() -> None:
    text = "parallelism:\n  dp: 2\n  tp: 4\n  pp: 2\n"
    config = read(text, name="n.yaml")
    assert config.sizes().world_size == 16
    assert config.sizes({"tp": 8}).world_size == 32
    assert str(config.world_size and config.world_size.where) == (
        "2 (n.yaml line 2, parallelism.dp) x 2 (n.yaml line 4, parallelism.pp) x "
        "4 (n.yaml line 3, parallelism.tp)"
    )


def test_nodes_times_ranks_of_each_names_both_places() -> None:
    config = config_of(RUN.replace("--nnodes 2 ", ""))
    assert config.world_size is not None
    assert str(config.world_size.where) == (
        "1 (default of torchrun) x 8 (run.sh line 1, --nproc_per_node)"
    )


def test_ranks_sit_as_given_else_as_the_file_says_else_eight_on_a_node() -> None:
    config = config_of(RUN.replace("8", "4"))
    assert config.placement(8) == Placement(8, 4, 1)
    assert config.placement(8, gpus_per_node=8, gpus_per_rank=2) == Placement(8, 8, 2)
    assert read('{"train_batch_size": 8}', name="d.json").placement(8) == Placement(8, 8, 1)


@pytest.mark.parametrize(
    ("missing", "option"),
    [("world_size", "--world-size"), ("zero1", "--zero1-size"), ("framework", "--framework NAME")],
)
def test_what_is_missing_names_the_option_that_gives_it(missing: str, option: str) -> None:
    each = Missing(missing, Found(1, default_of="x").where)
    assert str(each) == f"{missing}: default of x; give {option}"


@pytest.mark.parametrize("name", FILES)
def test_options_have_the_names_that_the_framework_takes(name: str) -> None:
    config = read(TEXTS[name], name=name, beside=TEXTS)
    assert config.framework is not None
    world = config.world_size.value if config.world_size else RANKS.get(name, 256)
    # A trainer's own settings become the framework's once the number of ranks is known.
    options = config.sizes({"world_size": world}).options if config.derive else config.options
    assert set(options) <= set(FRAMEWORKS[config.framework].options)


@pytest.mark.parametrize("name", FILES)
def test_a_file_becomes_a_layout_once_its_ranks_are_given(name: str) -> None:
    config = read(TEXTS[name], name=name, beside=TEXTS)
    world = config.world_size.value if config.world_size else RANKS.get(name, 256)
    layout = frameworks.layout(config.framework_at, config.sizes({"world_size": world}))
    assert layout.world_size == world
