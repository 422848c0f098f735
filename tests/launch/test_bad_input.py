"""Launch files that cannot be read, or do not settle a size: one sentence each, nothing run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read, read_path

TORCHRUN = "torchrun --nproc_per_node 8 x.py --tensor-model-parallel-size"
EVO = "parallel = dict(tensor=dict(size={size}, mode='isp'), weight=dict(size=1))\n"


def refusal(text: str, name: str = "run.sh", **beside: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text, name=name, beside=beside)
    return str(caught.value)


def asked(config: LaunchConfig, **given: int) -> str:
    with pytest.raises(InputError) as caught:
        config.sizes(given)
    return str(caught.value)


# ----------------------------------------------------------------------- scripts


def test_an_unset_variable_is_named_with_its_line_and_asked_for() -> None:
    config = read(f"set -e\n{TORCHRUN} $TP", name="run.sh")
    assert asked(config) == (
        "run.sh does not settle tp: --tensor-model-parallel-size: TP on line 2 is not set in the "
        "file; give it, such as --tp 2"
    )
    assert config.sizes({"tp": 4}).tp == 4


def test_a_command_substitution_is_reported_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = read(f"TP=$(touch ran; echo 2)\n{TORCHRUN} $TP", name="run.sh")
    assert asked(config) == (
        "run.sh does not settle tp: --tensor-model-parallel-size: $(touch ran; echo 2) on line 1 "
        "is not run; give it, such as --tp 2"
    )
    assert not (tmp_path / "ran").exists()


def test_backticks_eval_and_nested_shells_run_nothing_either(tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    text = f"A=`touch {trap}`\neval \"touch {trap}\"\nbash -c 'touch {trap}'\n{TORCHRUN} 2"
    assert read(text, name="run.sh").sizes().tp == 2
    assert not trap.exists()


UNFINISHED = [
    (
        'A=1\ntorchrun "half\n',
        'run.sh line 2: a " quote opens here and never closes; add the closing "',
    ),
    ("torchrun 'x", "run.sh line 1: a ' quote opens here and never closes; add the closing '"),
    ("torchrun `x", "run.sh line 1: a ` quote opens here and never closes; add the closing `"),
    ("torchrun ${A", "run.sh line 1: a ${ opens here and never closes; add the closing }"),
    ("torchrun $(a", "run.sh line 1: a ( opens here and never closes; add the closing )"),
    ("A=(1\ntorchrun", "run.sh line 1: a ( opens here and never closes; add the closing )"),
    (
        "cat <<EOT\ntorchrun",
        "run.sh line 1: a heredoc opens here and never closes; add a line that holds only EOT",
    ),
    ("if true; then\ntorchrun", "run.sh line 1: 'if' opens here and its 'fi' is missing"),
    ("for i in 1; do torchrun", "run.sh line 1: 'for' opens here and its 'done' is missing"),
    ("case $1 in a) torchrun", "run.sh line 1: 'case' opens here and its 'esac' is missing"),
    ("torchrun\nfi", "run.sh line 2: 'fi' stands where nothing is open"),
]


@pytest.mark.parametrize(("text", "sentence"), UNFINISHED)
def test_what_opens_and_never_closes_is_named_with_its_line(text: str, sentence: str) -> None:
    assert refusal(text) == sentence


def test_a_quote_inside_a_file_counts_lines_from_one() -> None:
    assert refusal('#!/bin/bash\nA=1\n\necho "half').startswith("run.sh line 4: ")


def test_contradictory_values_are_both_named_with_their_lines() -> None:
    text = f"#!/bin/bash\n{TORCHRUN} 2 \\\n --pp 1 \\\n --tensor-model-parallel-size 4"
    assert asked(read(text, name="run.sh")) == (
        "run.sh does not settle tp: it is given as 2 (run.sh line 2, --tensor-model-parallel-size) "
        "and as 4 (run.sh line 4, --tensor-model-parallel-size); give it, such as --tp 2"
    )


def test_two_commands_that_disagree_are_both_named() -> None:
    config = read(f"{TORCHRUN} 2\n{TORCHRUN} 4", name="run.sh")
    assert "2 (run.sh line 1, --tensor-model-parallel-size) and as 4 (run.sh line 2" in asked(
        config
    )


def test_a_value_that_hangs_on_an_open_condition_is_asked_for_with_both_outcomes() -> None:
    text = f"if nvidia-smi; then TP=8\nelse TP=2\nfi\n{TORCHRUN} $TP"
    assert asked(read(text, name="run.sh")) == (
        "run.sh does not settle tp: it is 8 (run.sh line 1, --tensor-model-parallel-size by way of "
        "TP) or 2 (run.sh line 2, --tensor-model-parallel-size by way of TP): the condition on "
        "line 1 is open; give it, such as --tp 2"
    )


def test_an_option_that_hangs_on_an_open_condition_is_asked_for() -> None:
    text = f"A=''\nif hostname -i; then A='--expert-model-parallel-size 4'; fi\n{TORCHRUN} 2 $A"
    assert asked(read(text, name="run.sh")) == (
        "run.sh does not settle ep: it is 4 (run.sh line 2, --expert-model-parallel-size) only if "
        "the condition on line 2 holds; give it, such as --ep 2"
    )


def test_a_size_that_is_no_number_is_shown() -> None:
    assert asked(read(f"{TORCHRUN} two", name="run.sh")) == (
        "run.sh does not settle tp: run.sh line 1, --tensor-model-parallel-size is 'two', no "
        "number; give it, such as --tp 2"
    )


def test_an_option_without_a_value_is_named() -> None:
    assert "run.sh line 1 gives --tensor-model-parallel-size no value" in asked(
        read(TORCHRUN, name="run.sh")
    )


def test_the_old_name_of_tp_is_refused_as_megatron_refuses_it() -> None:
    text = "torchrun --nproc_per_node 8 pretrain_gpt.py --model-parallel-size 8 --use-mcore-models"
    assert asked(read(text, name="run.sh")) == (
        "run.sh does not settle tp: run.sh line 1, --model-parallel-size is refused by Megatron-LM "
        "since 2020, which takes --tensor-model-parallel-size; give it, such as --tp 2"
    )


def test_encoder_options_ask_for_a_version_since_versions_differ() -> None:
    config = read(f"{TORCHRUN} 4 --encoder-tensor-model-parallel-size 2", name="run.sh")
    with pytest.raises(InputError) as caught:
        _ = config.framework_at
    assert str(caught.value) == (
        "run.sh does not settle framework: run.sh line 1, --encoder-tensor-model-parallel-size is "
        "an option of Megatron-core 0.9 to 0.13, whose layouts differ; give it, such as "
        "--framework megatron@0.12.0"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("torchrun --nnodes $N --nproc_per_node 8", "nodes: --nnodes: N on line 1 is not set"),
        ("torchrun --nnodes 1:4 --nproc_per_node 8", "--nnodes is a range, 1:4, settled at start"),
        ("torchrun --nproc_per_node gpu", "--nproc_per_node is 'gpu', all that a node has"),
        ("deepspeed --hostfile h", "the hostfile h (line 1) is not given beside it"),
        ("deepspeed", "deepspeed on line 1 takes every GPU it finds"),
        ("mpirun", "mpirun on line 1 is given no -np"),
        ("python", "the program on line 1 is told by its environment"),
        ("srun", "no #SBATCH line or srun option says how many nodes"),
        ("srun -N $N", "nodes: --nodes: N on line 1 is not set in the file"),
        ("colossalai run", "colossalai run on line 1 takes every GPU of a node"),
        ("python -m paddle.distributed.launch", "paddle's launcher on line 1 takes every GPU"),
    ],
)
def test_ranks_that_a_launcher_settles_only_at_start_are_asked_for(text: str, reason: str) -> None:
    program = "python x.py" if text.split()[0] in ("mpirun", "srun") else "x.py"
    config = read(f"{text} {program} --tensor-model-parallel-size 2", name="run.sh")
    sentence = asked(config)
    assert sentence.startswith("run.sh does not settle world_size: ")
    assert reason in sentence
    assert sentence.endswith("; give it, such as --world-size 64")
    assert config.sizes({"world_size": 16}).world_size == 16


def test_a_plain_command_asks_which_framework_it_is() -> None:
    config = read("torchrun --nnodes 2 --nproc_per_node 8 train.py --lr 1e-4", name="run.sh")
    assert config.sizes().world_size == 16
    with pytest.raises(InputError) as caught:
        _ = config.framework_at
    assert str(caught.value) == (
        "run.sh does not settle framework: train.py on line 1 is given no option, and names no "
        "config, by which serried knows its framework; give --framework and one of megatron, "
        "internlm, internevo, deepspeed, torchtitan, devicemesh, accelerate, fsdp, colossalai, "
        "nanotron, paddle, custom"
    )


def test_a_script_that_calls_itself_or_never_ends_is_stopped() -> None:
    assert refusal("A='eval $A'\neval $A\ntorchrun") == (
        "run.sh line 1: the script calls itself without end"
    )
    loop = "for i in 1 2 3 4 5 6 7 8 9; do "
    bomb = loop * 5 + "A=1; " + "done; " * 5
    assert "more steps than a launch script does" in refusal(f"#!/bin/sh\n{bomb}\n{TORCHRUN} 2")


def test_a_variable_that_doubles_for_ever_is_stopped() -> None:
    doubling = "A=xxxxxxxxxx\n" + "A=$A$A\n" * 40 + f"{TORCHRUN} $A"
    assert "a value on line 18 grows beyond a million letters" in asked(
        read(doubling, name="run.sh")
    )


# ----------------------------------------------------------------------- YAML, JSON, TOML


def test_a_tag_that_would_build_an_object_is_refused(tmp_path: Path) -> None:
    text = "parallelism:\n  dp: !!python/object/apply:os.system ['touch x']\n  tp: 1\n  pp: 1"
    assert refusal(text, "nano.yaml") == (
        "nano.yaml line 2: the tag !!python/object/apply:os.system asks to build an object, which "
        "serried never does; write the plain value"
    )


def test_aliases_that_explode_are_stopped() -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for old, new in zip("abcdefgh", "bcdefghi", strict=True):
        rows.append(f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]")
    text = "\n".join([*rows, "parallelism: {dp: 1, tp: 1, pp: 1}"])
    assert refusal(text, "bomb.yaml") == (
        "bomb.yaml unfolds to more than 50000 values, which no launch file does; write its aliases "
        "out, or give the sizes as options"
    )


def test_an_alias_inside_itself_is_stopped() -> None:
    assert "is nested too deeply" in refusal("a: &a\n  b: *a\nparallelism: {dp: 1}", "loop.yaml")


def test_deep_nesting_is_stopped() -> None:
    assert "is nested too deeply" in refusal("parallel: " + "[" * 200 + "]" * 200, "deep.yaml")
    assert "is nested too deeply" in refusal('{"a": ' * 200 + "1" + "}" * 200, "deep.json")


def test_text_that_is_no_yaml_names_its_line() -> None:
    assert refusal("MODEL_ARGS:\n  --tp: [1, 2\n", "recipe.yaml").startswith(
        "recipe.yaml line 3 is no YAML: "
    )


def test_a_key_given_twice_is_named_with_both_lines() -> None:
    text = "parallelism:\n  dp: 1\n  tp: 2\n  pp: 1\n  tp: 4\n"
    assert asked(read(text, name="nano.yaml")) == (
        "nano.yaml does not settle tp: it is given as 2 (nano.yaml line 3, parallelism.tp) and as "
        "4 (nano.yaml line 5, parallelism.tp); give it, such as --tp 2"
    )
    twice = '{"zero_optimization": {"stage": 1},\n "zero_optimization": {"stage": 3}}'
    assert "1 (ds.json line 1, zero_optimization.stage) and as 3 (ds.json line 2" in asked(
        read(twice, name="ds.json")
    )
    toml = "[parallelism]\ntensor_parallel_degree = 2\ntensor_parallel_degree = 4"
    assert refusal(toml, "t.toml") == (
        "t.toml gives parallelism.tensor_parallel_degree twice: 2 on line 2 and 4 on line 3; "
        "keep one"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1', "x.json line 1 is no JSON: ',' is missing"),
        ('{"a" 1}', "x.json line 1 is no JSON: ':' is missing"),
        ('{"a": }', "x.json line 1 is no JSON: a value is missing"),
        ("{a: 1}", "x.json line 1 is no JSON: a name in double quotes is missing"),
        ('{"a": 1} 2', "x.json line 1 is no JSON: nothing more may follow"),
        (
            '{"a":\n two}',
            "x.json line 2 is no JSON: 'two' is no value; put text in double quotes",
        ),
    ],
)
def test_text_that_is_no_json_names_its_line(text: str, sentence: str) -> None:
    assert refusal(text, "x.json") == sentence


def test_text_that_is_no_toml_is_refused() -> None:
    assert refusal("[parallelism]\ntensor_parallel_degree = \n", "x.toml").startswith(
        "x.toml is no TOML: Invalid value"
    )


# ----------------------------------------------------------------------- Python


def test_a_config_that_imports_is_not_followed_and_says_so() -> None:
    text = "from sizes import TP\n" + EVO.format(size="TP")
    assert asked(read(text, name="evo.py"), world_size=8) == (
        "evo.py does not settle tp: parallel.tensor.size: line 1 of evo.py imports it, and imports "
        "are not followed; give it, such as --tp 2"
    )


def test_a_config_that_loops_is_not_run_and_says_so() -> None:
    text = "TP = 1\nfor i in range(3):\n    TP *= 2\n" + EVO.format(size="TP")
    config = read(text, name="evo.py")
    assert asked(config, world_size=8) == (
        "evo.py does not settle tp: parallel.tensor.size: a loop on line 2 of evo.py sets it, and "
        "is not run; give it, such as --tp 2"
    )
    assert "evo.py line 2: a loop is not run" in map(str, config.notes)


def test_a_config_that_calls_is_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    text = f"import os\nos.system('touch {trap}')\n" + EVO.format(size="int(os.environ['TP'])")
    assert "os.environ['TP'] on line 3 of evo.py is not run" in asked(
        read(text, name="evo.py"), world_size=8
    )
    assert not trap.exists()


def test_a_name_that_is_not_set_is_named() -> None:
    assert "evo.py does not set TP before line 1" in asked(
        read(EVO.format(size="TP"), name="evo.py"), world_size=8
    )


def test_names_that_a_star_import_may_bring_are_asked_for_by_file() -> None:
    config = read("from base.sizes import *\n" + EVO.format(size="TP"), name="evo.py")
    assert (
        "TP may come from base.sizes, which line 1 of evo.py imports and which is not followed"
        in asked(config, world_size=8)
    )
    given = read(
        "from base.sizes import *\n" + EVO.format(size="TP"),
        name="evo.py",
        beside={"sizes.py": "TP = 4"},
    )
    assert given.sizes({"world_size": 8}).tp == 4


def test_a_config_without_parallel_says_what_it_imports() -> None:
    config = read(
        "from base import *\nmodel = dict(a=1)\ndata = dict(b=1)\nlr_scheduler = dict(c=1)",
        name="evo.py",
    )
    assert "parallel is not set in evo.py: evo.py line 1: all names of base come in here" in asked(
        config, world_size=8
    )


def test_numbers_that_explode_are_not_worked_out() -> None:
    assert "9 ** 9 ** 9 on line 1 of evo.py is not run" in asked(
        read(EVO.format(size="9**9**9"), name="evo.py"), world_size=8
    )
    assert "is not run" in asked(
        read(EVO.format(size="len('a'*10**9)"), name="evo.py"), world_size=8
    )


def test_text_that_is_no_python_names_its_line() -> None:
    text = "A = 1\nparallel = dict(\n  tensor=)\n"
    assert refusal(text, "evo.py").startswith("evo.py line 3 is no Python: ")


def test_a_config_of_neither_kind_asks_which_it_is() -> None:
    config = read("parallel = dict(pipeline=dict(size=2))", name="evo.py")
    with pytest.raises(InputError) as caught:
        _ = config.framework_at
    assert str(caught.value) == (
        "evo.py does not settle framework: evo.py has no entry that tells InternLM from InternEvo, "
        "and they lay ranks out differently; give it, such as --framework internevo"
    )


# ----------------------------------------------------------------------- hosts


HOSTS = "worker-0 slots=4\nworker-1 slots=4\n"
DEEPSPEED = "deepspeed --hostfile hosts {filter} train.py --deepspeed_config ds.json"


@pytest.mark.parametrize(
    ("filter_", "sentence"),
    [
        (
            "--include worker-9:0",
            "host 'worker-9' is not in the hostfile; hosts that are: worker-0, worker-1",
        ),
        ("--exclude worker-1:9", "host 'worker-1' has no slot 9; its slots are 0, 1, 2, 3"),
        ("--exclude worker-0@worker-1", "--exclude worker-0@worker-1 leaves no slot at all"),
        (
            "--include worker-0 --exclude worker-1",
            "include and exclude do not go together; give one of them",
        ),
        (
            "--include worker-0:a",
            "'worker-0:a' is not a host filter; one reads NAME or NAME:SLOT,SLOT",
        ),
    ],
)
def test_an_unknown_host_or_slot_is_answered_with_those_there_are(
    filter_: str, sentence: str
) -> None:
    assert refusal(DEEPSPEED.format(filter=filter_), hosts=HOSTS) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "worker-0 slots=4\nworker-1 slots:4",
            "hosts line 2 is 'worker-1 slots:4'; a line of a hostfile is NAME slots=COUNT",
        ),
        (
            "worker-0 slots=4\n\nworker-0 slots=2",
            "hosts names host worker-0 twice, on lines 1 and 3; keep one",
        ),
    ],
)
def test_a_hostfile_line_that_is_wrong_is_named(text: str, sentence: str) -> None:
    assert refusal(text, "hosts") == sentence


# ----------------------------------------------------------------------- files and folders


def test_a_file_of_fifty_megabytes_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_bytes(b"#\n" * (25 * 1024 * 1024))
    with pytest.raises(InputError) as caught:
        read_path(path)
    assert (
        str(caught.value)
        == f"{path} holds more than 1 MB, the most that serried reads of a launch file"
    )


def test_a_text_of_fifty_megabytes_gets_the_same() -> None:
    assert (
        refusal("#\n" * (25 * 1024 * 1024))
        == "run.sh holds more than 1 MB, the most that serried reads of a launch file"
    )


def test_a_binary_file_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(range(256)) * 16)
    with pytest.raises(InputError) as caught:
        read_path(path)
    assert str(caught.value) == (
        "model.bin is not text, so it is no launch file; give a script or a YAML, JSON, TOML or "
        "Python config"
    )


def test_a_file_that_is_not_there_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_path(tmp_path / "none.sh")
    assert str(caught.value).endswith("none.sh cannot be read: No such file or directory")


def test_text_of_another_kind_is_answered_with_what_is_read() -> None:
    for text in ("", "Dear all,\nthe run: it failed.", json.dumps({"a": 1}), "[project]\nname='x'"):
        assert refusal(text, "note.txt").startswith(
            "note.txt is no launch file that serried knows; it reads Megatron scripts"
        )


def test_two_configs_in_one_folder_are_both_named(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "a.sh").write_text(f"{TORCHRUN} 2")
    (folder / "b.yaml").write_text("parallelism: {dp: 1, tp: 1, pp: 1}")
    (folder / "notes.txt").write_text("none")
    with pytest.raises(InputError) as caught:
        read_path(folder)
    assert str(caught.value) == "jobs holds 2 launch files: a.sh, b.yaml; give one of them"


def test_a_folder_with_one_job_and_the_files_it_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(DEEPSPEED.format(filter="--include worker-1"))
    (tmp_path / "hosts").write_text(HOSTS)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    config = read_path(tmp_path)
    assert (config.sizes().world_size, config.sizes().zero) == (4, 2)


def test_a_folder_without_a_launch_file_says_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_path(tmp_path)
    assert "holds no launch file that serried knows; it reads " in str(caught.value)
