"""Quirks of launch files that are public: what people write, condensed, and what is read."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read

TP = "--tensor-model-parallel-size"
PP = "--pipeline-model-parallel-size"


def sizes_of(text: str, *, name: str = "run.sh", **beside: str) -> dict[str, int | str]:
    """Returns every field that a file settles, files beside it named ``train_sh``."""
    config = config_of(text, name=name, **beside)
    return {key: found.value for key, found in config.fields.items()}


def config_of(text: str, *, name: str = "run.sh", **beside: str) -> LaunchConfig:
    return read(text, name=name, beside={key.replace("__", "."): t for key, t in beside.items()})


def asked(config: LaunchConfig) -> Mapping[str, str]:
    return {each.name: str(each.because) for each in config.missing}


def refusal(text: str, *, name: str = "run.sh") -> str:
    with pytest.raises(InputError) as caught:
        read(text, name=name)
    return str(caught.value)


# ----------------------------------------------------------------------- scripts with arguments

PLATFORM = f"""#!/bin/bash
set -e
ENV=$1
if [ $ENV = dsw ]; then
    NNODES=1
    GPUS_PER_NODE=8
elif [ $ENV = dlc ]; then
    NNODES=${{WORLD_SIZE}}
    GPUS_PER_NODE=8
fi
TP=${{10}}
DISTRIBUTED="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES"
run_cmd="torchrun $DISTRIBUTED pretrain.py
 {TP} ${{TP}} {PP} 2"
echo ${{run_cmd}}
eval ${{run_cmd}}
"""
VALIDATED = f"""#!/bin/bash
#SBATCH --gres=gpu:8
MODEL=""
TP=""
while [[ $# -gt 0 ]]; do
  case $1 in
    --model) MODEL="$2"; shift 2 ;;
    --tp) TP="$2"; shift 2 ;;
    *) exit 1 ;;
  esac
done
if [[ -z "$MODEL" || -z "$TP" ]]; then
  echo "Error: missing arguments"
  exit 1
fi
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py {TP} $TP
"""
LOOPED = f"""#!/bin/bash
TP=
for arg in "$@"; do
  case $arg in --tp=*) TP="${{arg#*=}}" ;; esac
done
[ -z "$TP" ] && exit 1
torchrun --nproc_per_node 8 pretrain_gpt.py {TP} $TP
"""


def test_a_value_that_every_branch_gives_needs_no_else() -> None:
    assert sizes_of(PLATFORM) == {"gpus_per_node": 8, "pp": 2}


def test_a_value_that_branches_give_differently_is_told_once_each() -> None:
    text = PLATFORM.replace("NNODES=${WORLD_SIZE}", "NNODES=4").replace(
        "fi\nTP", "elif [ $ENV = x ]; then\n    NNODES=4\nfi\nTP"
    )
    assert asked(config_of(text))["nodes"].count("it is 1") == 1
    assert asked(config_of(text))["nodes"].count(" or 4 ") == 1


def test_arguments_are_asked_for_by_their_number() -> None:
    assert asked(config_of(PLATFORM))["tp"] == (f"{TP}: it is argument 10 of the script on line 11")


def test_an_option_in_one_branch_only_stays_open() -> None:
    text = (
        "[ $1 = moe ] && MOE='--expert-tensor-parallel-size 1'\n"
        f"torchrun --nproc_per_node 8 x.py {TP} 2 $MOE"
    )
    assert "etp" in asked(config_of(text))


@pytest.mark.parametrize("text", [VALIDATED, LOOPED])
def test_what_a_loop_over_the_arguments_sets_is_asked_for(text: str) -> None:
    config = config_of(text)
    assert (config.framework, config.fields["gpus_per_node"].value) == ("megatron", 8)
    assert "sets it" in asked(config)["tp"]


# ----------------------------------------------------------------------- scripts of scripts

TRAIN = f"""#!/bin/bash
torchrun --nnodes ${{NNODES:-1}} --nproc_per_node 8 pretrain_gpt.py {TP} ${{TP:-1}} "$@"
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"NNODES=2 TP=4 ./train.sh {PP} 2", {"nodes": 2, "tp": 4, "pp": 2}),
        ("export NNODES=2\nnohup ./train.sh > log 2>&1 &", {"nodes": 2, "tp": 1}),
        ("export NNODES=4 TP=8\nsrun -N 4 ./train.sh", {"nodes": 4, "tp": 8}),
        ("NNODES=$(expr 16 / 8) /jobs/train.sh", {"nodes": 2, "tp": 1}),
    ],
)
def test_a_script_started_by_its_own_name_is_followed(
    command: str, expected: Mapping[str, int]
) -> None:
    found = sizes_of(f"#!/bin/bash\n{command}\n", train__sh=TRAIN)
    assert found == {"gpus_per_node": 8, **expected}


def test_a_script_among_the_words_of_another_command_is_not_started() -> None:
    text = f"chmod +x train.sh\ntorchrun --nproc_per_node 4 pretrain_gpt.py {TP} 2"
    assert sizes_of(text, train__sh=TRAIN)["gpus_per_node"] == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "#!/bin/bash\n#SBATCH -N 1\nsrun -l bash ${1}\n",
            "run.sh starts no ranks itself; it starts a script that it does not name: it is "
            "argument 1 of the script on line 3; give that script",
        ),
        (
            "#!/bin/bash\nTP=8\n. `pwd`/CONFIG.sh\n. `pwd`/SBATCH.sh\nexit 0\n",
            "run.sh starts no ranks itself, and it reads CONFIG.sh, SBATCH.sh, which is not "
            "given beside it",
        ),
        (
            "#!/bin/bash\necho 'not ready yet'\nexit 1\ntorchrun --nproc_per_node 8 x.py\n",
            "run.sh starts no ranks: line 3 of run.sh ends it before; see what the condition "
            "around that line asks for",
        ),
    ],
)
def test_a_script_that_starts_no_ranks_says_why(text: str, sentence: str) -> None:
    assert refusal(text) == sentence


def test_options_in_quotes_reach_the_program_of_a_script_that_is_not_given() -> None:
    text = f'OPTIONS="  {TP} 4 {PP} 2"\nmpirun -np 16 bash entry.sh pretrain.py "$OPTIONS"\n'
    config = config_of(text)
    found = {key: each.value for key, each in config.fields.items()}
    assert (config.framework, found) == ("megatron", {"world_size": 16, "tp": 4, "pp": 2})


def test_text_for_another_shell_stays_whole_around_a_choice() -> None:
    text = f"""#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
if [ "$MOCK" = true ]; then DATA="--mock-data"; else DATA="--data-path $(python3 w.py "$S") -x"; fi
CMD="python3 $M/pretrain_gpt.py {TP} 2 {PP} 1 $DATA"
if [ -n "$WANDB_API_KEY" ]; then CMD="$CMD --wandb-project p"; fi
srun --mpi=pmix -lu bash -c "
    mkdir -p $CACHE
    RANK=\\$SLURM_PROCID $CMD_PREFIX $CMD
    "
"""
    config = config_of(text)
    assert (config.sizes().world_size, config.sizes().tp, config.missing) == (8, 2, ())


def test_every_text_that_a_condition_hands_to_another_shell_is_followed() -> None:
    text = f"""if [ "$MOCK" = true ]; then
  CMD="torchrun --nproc_per_node 8 pretrain_gpt.py {TP} 2 --mock-data"
else
  CMD="torchrun --nproc_per_node 4 pretrain_gpt.py {TP} 2"
fi
bash -c "$CMD"
"""
    config = config_of(text)
    assert sizes_of(text)["tp"] == 2
    assert "8 (run.sh line 2" in asked(config)["gpus_per_node"]
    assert "4 (run.sh line 4" in asked(config)["gpus_per_node"]


# ----------------------------------------------------------------------- launchers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"torchrun --nnode 2 --nproc_per_node 8 x.py {TP} 2", {"nodes": 2, "gpus_per_node": 8}),
        (
            f"msrun --worker_num 16 --local_worker_num 8 x.py {TP} 2",
            {"world_size": 16, "gpus_per_node": 8},
        ),
        (f"msrun x.py {TP} 2", {"world_size": 8}),
        (
            "ray job submit --address=http://head:8265 -- python3 train.py --actor-num-nodes 2 "
            f"--actor-num-gpus-per-node 4 {TP} 2",
            {"nodes": 2, "gpus_per_node": 4},
        ),
    ],
)
def test_launchers_count_ranks_by_their_own_options(text: str, expected: Mapping[str, int]) -> None:
    assert sizes_of(text) == {"tp": 2, **expected}


def test_a_program_behind_a_variable_ends_the_options_of_the_launcher() -> None:
    text = f'D="$(dirname "$0")"\ntorchrun --nproc_per_node=2 $D/../pretrain_gpt.py {TP} 2\n'
    assert sizes_of(text) == {"nodes": 1, "gpus_per_node": 2, "tp": 2}


def test_a_folder_named_like_a_launcher_starts_nothing() -> None:
    text = "mkdir -p /tmp/deepspeed\ncd ~/src/deepspeed\ndeepspeed --num_gpus 4 train.py\n"
    assert sizes_of(text)["gpus_per_node"] == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("deepspeed --include localhost:$1 train.py", "--include: it is argument 1"),
        ("deepspeed --hostfile $HOSTS train.py", "--hostfile: HOSTS on line 1"),
        (
            "colossalai run --nproc_per_node 8 --hostfile $HOSTS b.py --tp 2",
            "nodes: --hostfile: HOSTS on line 1",
        ),
    ],
)
def test_hosts_that_are_not_known_are_asked_for(text: str, why: str) -> None:
    assert asked(config_of(text))["world_size"].startswith(why)


def test_a_path_made_whole_names_the_same_file() -> None:
    text = "H=$(realpath hosts.txt)\ncd ../..\ncolossalai run --nproc_per_node 8 --hostfile $H b.py"
    assert sizes_of(text, hosts__txt="a\nb\nc\n")["nodes"] == 3


def test_a_file_that_a_program_of_colossalai_writes_is_no_config() -> None:
    text = "colossalai run --nproc_per_node 4 t.py --plugin zero2 --config_file $OUT-$(date).json"
    assert config_of(text).notes == ()


def test_gpus_are_counted_in_the_list_that_the_script_gives() -> None:
    text = (
        "export CUDA_VISIBLE_DEVICES=0,1,4\n"
        "deepspeed --num_gpus=$(echo $CUDA_VISIBLE_DEVICES | tr ',' '\\n' | wc -l) t.py --deepspeed"
    )
    assert sizes_of(text)["gpus_per_node"] == 3


def test_a_reason_is_told_once() -> None:
    text = (
        "for task in a b; do deepspeed --num_gpus $(nvidia-smi -L | wc -l) t.py --task $task "
        "--deepspeed; done"
    )
    assert asked(config_of(text))["gpus_per_node"].count("nvidia-smi") == 1


# ----------------------------------------------------------------------- configs elsewhere


def test_torchtitan_is_told_by_what_it_starts() -> None:
    text = "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b"
    config = config_of(text)
    why = "line 1 names llama3_8b of torchtitan's Python registry, which is not read"
    assert config.framework == "torchtitan"
    assert asked(config) == {"tp": f"{why}; pp, cp, ep are taken as 1 unless they are given too"}


def test_sizes_in_a_torchtitan_file_that_is_not_given_are_one_question() -> None:
    text = "torchrun --nproc_per_node 8 train.py --job.config_file ./c/8b.toml"
    assert [*asked(config_of(text))] == ["tp"]
    some = asked(config_of(f"{text} --parallelism.tensor_parallel_degree 2"))
    assert [*some] == ["pp"]
    assert some["pp"].endswith("; cp, ep are taken as 1 unless they are given too")


def test_sizes_that_a_torchtitan_command_leaves_to_its_registry_are_noted() -> None:
    text = (
        "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b "
        "--parallelism.tensor_parallel_degree 2"
    )
    config = config_of(text)
    assert config.sizes().tp == 2
    assert [str(each) for each in config.notes] == [
        "line 1 names llama3_8b of torchtitan's Python registry, which is not read; pp, cp, ep "
        "are taken as 1"
    ]


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("torchrun --nproc_per_node 8 train.py --job.config_file ./c/8b.toml", "torchtitan@0.2.2"),
        ("python -m paddle.distributed.launch --gpus 0,1 f.py llama/lora.json", "paddle"),
        ("python -m paddle.distributed.launch --gpus 0,1 t.py -c ./c/gpt.yaml", "paddle"),
    ],
)
def test_sizes_in_a_config_that_is_not_given_are_asked_for(text: str, framework: str) -> None:
    config = config_of(text)
    assert config.framework_at == framework
    assert "which is not given beside it" in asked(config)["tp"]


def test_a_config_whose_name_is_an_argument_is_asked_for() -> None:
    config = config_of("torchrun --nproc_per_node 8 run_train.py --config-file $1")
    assert asked(config)["framework"] == "--config-file: it is argument 1 of the script on line 1"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("$HERE/ds_z$STAGE.json", "…/ds_z3.json"),
        ("${HERE}_z$STAGE.json", "…_z3.json"),
        ("$HERE.json", "….json"),
    ],
)
def test_a_name_known_in_part_shows_that_part(config: str, named: str) -> None:
    text = f"STAGE=3\ndeepspeed --num_gpus 2 t.py --deepspeed_config {config}"
    assert f"names {named}, which" in str(config_of(text).notes[0])


def test_the_known_end_of_a_name_is_no_other_file() -> None:
    text = "deepspeed --num_gpus 2 t.py --deepspeed_config ${KIND}_z3.json"
    assert "zero" not in sizes_of(text, _z3__json='{"zero_optimization": {"stage": 3}}')
    text = "STAGE=3; deepspeed --num_gpus 2 t.py --deepspeed_config $HERE/ds_z$STAGE.json"
    assert sizes_of(text, ds_z3__json='{"zero_optimization": {"stage": 3}}')["zero"] == 3


def test_the_program_itself_is_no_config_that_is_missing() -> None:
    text = f'ADDR="master node ip"\ntorchrun --nproc_per_node 8 --master_addr $ADDR p.py {TP} 2'
    assert config_of(text).notes == ()


def test_the_json_of_deepspeed_is_read_through_accelerate() -> None:
    text = (
        "accelerate launch --use_deepspeed --num_processes 8 --deepspeed_config_file c/z2.json x.py"
    )
    config = config_of(text, z2__json='{"zero_optimization": {"stage": 2}}')
    assert config.sizes().zero == 2
    assert "names c/z2.json" in str(config_of(text).notes[0])


# ----------------------------------------------------------------------- YAML and Python


def test_accelerate_starts_one_process_without_a_distributed_type() -> None:
    config = config_of("distributed_type: 'NO'\nnum_machines: 1\nnum_processes: 8\n", name="a.yaml")
    assert (config.sizes().world_size, config.framework) == (1, "accelerate")
    assert [str(each) for each in config.notes] == [
        "a.yaml line 1, distributed_type is NO, so accelerate starts one process and leaves "
        "num_processes 8"
    ]


def test_yaml_reads_no_without_quotes_as_false() -> None:
    assert sizes_of("distributed_type: NO\nmixed_precision: bf16\n", name="a.yaml") == {
        "world_size": 1,
        "nodes": 1,
        "gpus_per_node": 1,
    }


def test_accelerate_runs_on_one_node_unless_told() -> None:
    text = "distributed_type: FSDP\nnum_processes: 4\nfsdp_config:\n  fsdp_version: 2\n"
    assert sizes_of(text, name="a.yaml")["gpus_per_node"] == 4


BRIDGE = (
    "model:\n  seq_length: 4096\ntrain:\n  train_iters: 9\ncheckpoint:\n  save: x\nddp:\n  x: 1\n"
)


def test_a_bridge_override_leaves_sizes_to_its_recipe() -> None:
    config = config_of(BRIDGE, name="b.yaml")
    assert (config.format, config.framework) == ("Megatron-Bridge YAML", "megatron")
    assert asked(config)["tp"] == (
        "b.yaml overrides a recipe, which is not read; pp, cp, ep are taken as 1 unless they are "
        "given too"
    )


def test_a_bridge_override_with_sizes_notes_the_others() -> None:
    text = BRIDGE.replace("  seq_length", "  tensor_model_parallel_size: 2\n  seq_length")
    config = config_of(text, name="b.yaml")
    assert config.sizes({"world_size": 8}).tp == 2
    assert [str(each) for each in config.notes] == [
        "b.yaml overrides a recipe, which is not read; pp, cp, ep are taken as 1"
    ]


def test_a_trainer_on_megatron_is_told_from_one_on_paddle() -> None:
    text = (
        "stage: sft\ndo_train: true\ntensor_model_parallel_size: 4\n"
        "pipeline_model_parallel_size: 2\n"
    )
    config = config_of(text + "use_distributed_optimizer: true\n", name="mca.yaml")
    assert (config.format, config.framework) == ("Megatron trainer YAML", "megatron")
    assert config.sizes({"world_size": 16}).pp == 2
    assert config_of(text + "fine_tuning: full\n", name="sft.yaml").framework == "paddle"


def test_experts_of_gpt_neox_are_read() -> None:
    text = (
        '{\n "pipe_parallel_size": 1, "model_parallel_size": 1,\n "moe_expert_parallel_size": 4,}'
    )
    assert sizes_of(text, name="moe.yml")["ep"] == 4


def test_where_deepspeed_puts_its_experts_is_read() -> None:
    text = '{"train_batch_size": 8, "use_data_before_expert_parallelism": true}'
    assert config_of(text, name="ds.json").sizes({"world_size": 8}).options == {
        "use_data_before_expert_parallel": "true"
    }
    flags = "--tensor-model-parallel-size 2 --moe-expert-parallel-size 4"
    flags += " --enable-expert-tensor-parallelism --deepspeed --deepspeed_config ds.json"
    script = f"torchrun --nproc_per_node 8 pretrain_gpt.py {flags}"
    found = config_of(script, name="moe.sh").sizes({})
    assert (found.ep, found.options) == (4, {"enable_expert_tensor_parallelism": "true"})


def test_autoep_counts_only_where_the_config_switches_it_on() -> None:
    """AutoEPConfig.enabled is false by default (deepspeed, auto_ep_presets/base.py)."""
    for switch, ep in (("", 1), ('"enabled": false, ', 1), ('"enabled": true, ', 4)):
        text = f'{{"train_batch_size": 8, "expert_parallel": {{{switch}"autoep_size": 4}}}}'
        assert config_of(text, name="ds.json").sizes({"world_size": 8}).ep == ep


def test_a_checkpoint_type_tells_internlm_from_its_successor() -> None:
    parallel = "parallel = dict(zero1=dict(size=-1), tensor=dict(size=8), pipeline=dict(size=1))\n"
    ckpt = "ckpt = dict(load_ckpt_info=dict(path='x', ckpt_type='%s'))\n"
    assert config_of(parallel + ckpt % "internlm", name="a.py").framework == "internlm"
    assert config_of(parallel + ckpt % "internevo", name="a.py").framework == "internevo"


def test_a_config_whose_parallel_mapping_stands_in_its_base_asks_for_it() -> None:
    text = (
        "from internlm.utils.utils import read_base\n"
        "with read_base():\n    from configs.models.m7B import *\n"
        "data = dict(seq_len=2048)\nlr_scheduler = dict(total_steps=9)\n"
    )
    assert "give m7B.py beside it" in asked(config_of(text, name="demo.py"))["tp"]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "job.yaml",
            "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  a: 1\n",
            "job.yaml is a Kubernetes PyTorchJob; give the command or script that its containers "
            "run",
        ),
        (
            "sft.yaml",
            "stage: sft\ndeepspeed: examples/ds_z3.json\n",
            "sft.yaml holds arguments of a trainer, and names examples/ds_z3.json for DeepSpeed; "
            "give that file, with the ranks as an option: --world-size 8",
        ),
        (
            "train.py",
            "import torch\nprint(torch.__version__)\n",
            "train.py is a Python program, which serried does not run; give the command or script "
            "that starts it",
        ),
    ],
)
def test_a_file_near_a_launch_config_says_what_to_give(name: str, text: str, sentence: str) -> None:
    assert refusal(text, name=name) == sentence


def test_a_letter_that_yaml_does_not_take_is_one_sentence() -> None:
    sentence = refusal("trainer:\n  devices: 8\n  name: '\x01'\n", name="a.yaml")
    assert sentence.startswith("a.yaml line 3 is no YAML: ")
    assert "\n" not in sentence
