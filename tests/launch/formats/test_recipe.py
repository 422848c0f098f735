"""Configs that are functions of a Python module: read by their names, and never run."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest

from serried.errors import InputError
from serried.launch.read import read, read_path
from tests.launch.formats.asking import groups, open_of, settled

TITAN = '''
from torchtitan.trainer import Trainer


def small() -> Trainer.Config:
    """A model to try things with."""
    return Trainer.Config(
        training=TrainingConfig(steps=10),
        parallelism=ParallelismConfig(tensor_parallel_degree=2),
    )


def large() -> Trainer.Config:
    config = small()
    config.parallelism.tensor_parallel_degree = 8
    config.parallelism.pipeline_parallel_degree = 4
    return config


def helper() -> int:
    return 1
'''
BRIDGE = """
def llama_pretrain() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_layout = None
    cfg.ddp.use_distributed_optimizer = True
    return cfg
"""
NEMO = """
import nemo_run as run


def trainer(tensor_parallelism: int = 2, num_nodes: int = 1, num_gpus_per_node: int = 8):
    strategy = run.Config(MegatronStrategy, tensor_model_parallel_size=tensor_parallelism)
    return run.Config(Trainer, devices=num_gpus_per_node, num_nodes=num_nodes, strategy=strategy)


def pretrain_recipe(name: str = "x", num_nodes: int = 4, num_gpus_per_node: int = 8) -> run.Partial:
    return run.Partial(pretrain, trainer=trainer(num_nodes=num_nodes, tensor_parallelism=4))
"""


def of(text: str, name: str) -> dict[str, object]:
    return settled(read(text, name=f"config_registry.py:{name}"))


def test_a_keyword_of_a_call_is_a_size() -> None:
    config = read(TITAN, name="config_registry.py:small")
    assert (config.format, config.framework) == ("torchtitan registry", "torchtitan")
    assert settled(config) == {"tp": 2}
    assert str(config.fields["tp"].where) == "config_registry.py line 9, tensor_parallel_degree"
    assert groups(config, 4)["tp"] == [[0, 1], [2, 3]]


def test_an_attribute_that_is_set_goes_before_what_another_function_said() -> None:
    assert of(TITAN, "large") == {"tp": 8, "pp": 4}


def test_several_configs_are_named_and_one_is_asked_for() -> None:
    with pytest.raises(InputError) as caught:
        read(TITAN, name="config_registry.py")
    assert str(caught.value) == (
        "config_registry.py holds 2 configs: small, large; give one of them, such as "
        "config_registry.py:small"
    )
    with pytest.raises(InputError) as caught:
        read(TITAN, name="config_registry.py:huge")
    assert str(caught.value) == (
        "config_registry.py holds no config huge; those that it holds: small, large"
    )


def test_one_config_needs_no_name() -> None:
    config = read(BRIDGE, name="llama.py")
    assert (config.format, config.framework) == ("Megatron recipe", "megatron")
    assert settled(config) == {"tp": 4, "pp": 2, "zero": 1}


def test_parameters_count_as_what_they_are_called_with_else_as_their_default() -> None:
    config = read(NEMO, name="llama.py:pretrain_recipe")
    assert (config.sizes().world_size, config.sizes().tp) == (32, 4)


def test_a_path_with_a_name_is_read_from_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "registry.py"
    path.write_text(TITAN, encoding="utf-8")
    assert read_path(Path(f"{path}:large")).fields["tp"].value == 8


def test_a_command_of_torchtitan_takes_the_config_that_it_names(tmp_path: Path) -> None:
    model = tmp_path / "torchtitan" / "models" / "llama9"
    model.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (model / "config_registry.py").write_text(TITAN, encoding="utf-8")
    run = "torchrun --nproc_per_node 8 -m torchtitan.train --module llama9 --config {}\n"
    (tmp_path / "run.sh").write_text(run.format("small"), encoding="utf-8")
    config = read_path(tmp_path / "run.sh")
    assert (config.sizes().world_size, config.sizes().tp) == (8, 2)
    variables = 'MODULE=${MODULE:-"llama9"}\nCONFIG=${CONFIG:-small}\n'
    held = run.format("${CONFIG}").replace("--module llama9", "--module ${MODULE}")
    (tmp_path / "run.sh").write_text(f"{variables}{held}", encoding="utf-8")
    assert read_path(tmp_path / "run.sh").sizes().tp == 2
    option = "large --parallelism.tensor_parallel_degree 2"
    (tmp_path / "run.sh").write_text(run.format(option), encoding="utf-8")
    config = read_path(tmp_path / "run.sh")
    assert (config.fields["tp"].value, config.fields["pp"].value) == (2, 4)


# ----------------------------------------------------------------------- what is not known


def test_a_trainer_of_another_module_is_taken_at_its_words_alone() -> None:
    text = (
        "def pretrain_recipe(num_nodes: int = 4, num_gpus_per_node: int = 8) -> run.Partial:\n"
        "    return llama.trainer(tensor_parallelism=8, num_nodes=num_nodes)\n"
    )
    config = read(text, name="x.py")
    assert settled(config) == {"tp": 8, "nodes": 4}
    because = "line 2 of x.py takes over trainer, which stands in another module"
    assert open_of(config) == {"pp": because, "cp": because, "world_size": ANY}


@pytest.mark.parametrize(
    "row",
    [
        "if ready():\n        cfg.model.tensor_model_parallel_size = 8",
        "for i in range(2):\n        cfg.model.tensor_model_parallel_size = i",
        "try:\n        cfg.model.tensor_model_parallel_size = 8\n    finally:\n        pass",
    ],
)
def test_what_runs_only_if_something_holds_is_open(row: str) -> None:
    text = BRIDGE.replace("return cfg", f"{row}\n    return cfg")
    assert open_of(read(text, name="llama.py"))["tp"].endswith(
        "the statement on line 8 of llama.py sets it, and is not run"
    )


def test_a_condition_on_a_parameter_is_decided_by_its_default() -> None:
    row = "if fast:\n        cfg.model.tensor_model_parallel_size = 8"
    text = BRIDGE.replace("return cfg", f"{row}\n    return cfg").replace("()", "(fast=False)", 1)
    assert settled(read(text, name="llama.py"))["tp"] == 4


def test_a_size_that_a_call_makes_is_open_and_nothing_is_run(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').write('x')"
    config = read(BRIDGE.replace("= 4", f"= {trap}"), name="llama.py")
    assert "is not run" in open_of(config)["tp"]
    assert not (tmp_path / "ran").exists()


def test_functions_that_call_one_another_end() -> None:
    text = "def a() -> ConfigContainer:\n    return b()\n\n\ndef b():\n    return a()\n"
    assert settled(read(text, name="x.py")) == {}
    many = "".join(f"def f{i}():\n    return {f'f{i + 1}() + ' * 40}1\n" for i in range(6))
    text = f"{many}\n\ndef a() -> ConfigContainer:\n    return f0()\n"
    with pytest.raises(InputError, match="unfolds to more than"):
        read(text, name="x.py")


def test_a_config_of_another_registry_leaves_one_question() -> None:
    text = (
        "from torchtitan.models.llama3.config_registry import llama3_70b\n"
        "def mine() -> Trainer.Config:\n    config = changed(llama3_70b())\n    return config\n"
    )
    assert open_of(read(text, name="x.py")) == {
        "tp": "line 3 of x.py takes over llama3_70b, which stands in another module; pp, cp, ep "
        "are taken as 1 unless they are given too",
        "world_size": ANY,
    }


def test_a_function_that_changes_a_config_makes_none() -> None:
    text = "def prepare(config: ConfigContainer) -> ConfigContainer:\n    return config\n"
    with pytest.raises(InputError, match=r"x\.py is a Python program"):
        read(text, name="x.py")
    assert read(f"{text}\n\n{BRIDGE}", name="x.py").fields["tp"].value == 4


@pytest.mark.parametrize("text", ["def a(:\n", "import x\nx.main()\n", "", "\x00"])
def test_a_module_without_a_config_is_a_program(text: str) -> None:
    with pytest.raises(InputError, match=r"run\.py"):
        read(text, name="run.py")


RUN = (
    "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b "
    "--parallelism.data_parallel_shard_degree {shard}"
)


@pytest.mark.parametrize(("shard", "asked"), [(8, {"ep"}), (4, {"tp"})])
def test_shards_over_all_ranks_leave_a_registry_only_its_experts(
    shard: int, asked: set[str]
) -> None:
    config = read(RUN.format(shard=shard), name="run.sh")
    assert set(open_of(config)) == asked


def test_a_module_that_is_started_itself_is_a_program() -> None:
    text = f"{TITAN}\nif __name__ == '__main__':\n    small()\n"
    with pytest.raises(InputError, match=r"run\.py is a Python program"):
        read(text, name="run.py")
