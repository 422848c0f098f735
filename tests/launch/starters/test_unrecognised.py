"""Scripts that once were misread: what is not found is said, and nothing else is claimed."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read

RUN = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size {}\n"


def refusal(text: str, name: str = "run.sh", **beside: str) -> str:
    files = {key.replace("__", "."): other for key, other in beside.items()}
    with pytest.raises(InputError) as caught:
        read(text, name=name, beside=files)
    return str(caught.value)


def told(text: str, **beside: str) -> LaunchConfig:
    files = {key.replace("__", "."): other for key, other in beside.items()}
    return read(text, name="run.sh", beside=files)


# ----------------------------------------------------------------------- what starts nothing


@pytest.mark.parametrize(
    "text",
    [
        "set -x\nexport A=1\necho 'a: b'\n",
        "#!/bin/bash\nfoo: bar\n",
        "cd work\npip install -r requirements.txt\n\tls: x\n",
    ],
)
@pytest.mark.parametrize("name", ["run.sh", "run"])
def test_a_shell_script_is_never_called_bad_yaml(text: str, name: str) -> None:
    assert refusal(text, name) == (
        f"{name} is a shell script, and none of its commands starts ranks; serried looks for "
        "torchrun, srun, mpirun, accelerate launch, deepspeed and their like, and for the "
        "trainers that it knows"
    )


def test_a_program_that_is_started_alone_is_named() -> None:
    assert refusal("#!/bin/bash\npip install x\npython3 tools/fit.py --tp 2\n") == (
        "run.sh starts tools/fit.py on line 3 as one process, and nothing tells of more "
        "ranks; give the command or script that starts them"
    )


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("vllm serve $M --tensor-parallel-size 2", "vllm serve"),
        (
            "python -m vllm.entrypoints.openai.api_server --model $M",
            "vllm.entrypoints.openai.api_server",
        ),
        ("swift infer --model $M", "swift infer"),
        ("srun singularity exec x.sif vllm serve $M", "vllm serve"),
        ("srun /opt/bin/text-generation-launcher --x", "text-generation-launcher"),
        ("python run_evaluation.py --tp 2", "run_evaluation.py"),
        ("python -m verl.trainer.main_generation data.n=2", "verl.trainer.main_generation"),
        (
            "python tools/convert_ckpt.py --tensor-model-parallel-size 2",
            "tools/convert_ckpt.py",
        ),
    ],
)
def test_what_trains_nothing_by_its_name_is_named(command: str, program: str) -> None:
    assert refusal(f"#!/bin/bash\n{command}\n") == (
        f"run.sh starts {program} on line 2, which by its name answers, evaluates, converts or "
        "prepares, and trains nothing; give the command or script that trains"
    )


def test_a_manifest_that_a_script_hands_to_kubernetes_is_named() -> None:
    text = "#!/bin/bash\nkubectl apply -f - <<EOF\napiVersion: batch/v1\nkind: Job\nEOF\n"
    assert refusal(text) == (
        "run.sh hands a Job to Kubernetes; give the command or script that its containers run"
    )


def test_a_manifest_with_holes_to_fill_is_no_bad_script() -> None:
    text = 'apiVersion: v1\nkind: Job\nspec:\n  {{- if (eq .x "y") }}\n  a: 1\n  {{- end }}\n'
    assert refusal(text, "job.yaml") == (
        "job.yaml is a template of a Kubernetes Job; give the command or script that its "
        "containers run"
    )


def test_what_installs_is_not_the_program_that_is_started_alone() -> None:
    assert "python3 -m pip" not in refusal("#!/bin/bash\npython3 -m pip install x\n")
    assert "is a shell script, and none" in refusal("#!/bin/bash\npython3 -m pip install x\n")
    assert "is a shell script, and none" in refusal("#!/bin/bash\npython3 -c 'import x'\n")


def test_a_helper_whose_config_is_not_known_does_not_stand_for_the_training() -> None:
    config = told(
        "torchrun --nproc_per_node 8 -m flame.train\npython -m flame.convert --config $(jq x)\n"
    )
    assert config.format == "torchrun command line"
    assert config.fields["gpus_per_node"].value == 8


def test_a_script_that_is_not_given_is_named_once() -> None:
    assert refusal("#!/bin/bash\nbash y.sh 1\nbash y.sh 2\n") == (
        "run.sh starts no ranks itself; it starts y.sh, which is not given beside it"
    )


def test_yaml_in_a_file_of_any_name_is_still_checked() -> None:
    assert "is no YAML" in refusal("model_parallel:\n  a: [1\n", "conf")


def test_a_program_that_tells_no_framework_is_named_with_its_line() -> None:
    config = told("cd x\ntorchrun --nproc_per_node 8 fit.py --lr 1\n")
    [missing] = config.missing
    assert (missing.name, str(missing.because)) == (
        "framework",
        "fit.py on line 2 is given no option, and names no config, by which serried knows its "
        "framework",
    )


# ----------------------------------------------------------------------- guards and ends


@pytest.mark.parametrize(
    "guard",
    [
        'DATA=\nif [ -z "$DATA" ]; then echo "set DATA"; exit 1; fi\n',
        'DATA=""\n[ -z "$DATA" ] && exit 1\n',
        'DATA=""\n[[ -n "$DATA" ]] || { echo no; exit 2; }\n',
        "if [ -z ${DATA+x} ]; then exit 1; fi\n",
        'die() { echo "$1"; exit 1; }\nDATA=\n[ -n "$DATA" ] || die "no data"\n',
    ],
)
def test_a_check_of_what_is_to_be_filled_in_is_no_end(guard: str) -> None:
    assert told(f"#!/bin/bash\n{guard}{RUN.format(4)}").sizes().tp == 4


def test_a_script_that_ends_well_before_its_start_is_said_to_end_there() -> None:
    assert refusal(f"#!/bin/bash\nA=1\nif [ $A = 1 ]; then exit 0; fi\n{RUN.format(4)}") == (
        "run.sh starts no ranks: line 3 of run.sh ends it before; see what the condition around "
        "that line asks for"
    )


def test_an_end_behind_which_nothing_starts_is_not_the_reason() -> None:
    text = "#!/bin/bash\n# srun comes later\n./train_all\nexit 0\n"
    assert "is a shell script, and none of its commands starts ranks" in refusal(text)


# ----------------------------------------------------------------------- files that are read


def test_a_sourced_file_has_the_arguments_it_is_given() -> None:
    config = told(f"source conf.sh 4 2\n{RUN.format('$TP')}", conf__sh="TP=$1\nPP=$2\n")
    assert config.sizes().tp == 4


def test_arguments_of_a_sourced_file_end_with_it() -> None:
    text = f"f() {{ source conf.sh 4; TP=$1; }}\nf 2\n{RUN.format('$TP')}"
    assert told(text, conf__sh="A=$1\n").sizes().tp == 2


def test_a_file_of_the_same_name_elsewhere_is_not_the_file_itself() -> None:
    text = "#!/bin/bash\nsource conf.sh\n" + RUN.format("$TP")
    conf = 'source "$(dirname "$0")/../common/conf.sh"\nTP=4\n'
    config = told(text, conf__sh=conf)
    assert config.sizes().tp == 4
    assert "it reads conf.sh, which is not given beside it" in str(config.notes[0])


def test_a_file_that_reads_itself_is_stopped() -> None:
    assert "calls itself without end" in refusal("source a.sh\ntorchrun", a__sh="source ./a.sh\n")


@pytest.mark.parametrize("words", ["$(grep -c . f)", "$(grep vocab x.json | head -1)"])
def test_what_a_search_finds_matters_only_where_a_size_depends_on_it(words: str) -> None:
    text = f"export $(grep -v '^#' .env | xargs)\nA={words}\n{RUN.format(4)}".rstrip()
    assert told(f"#!/bin/bash\n{text} --vocab-file $A\n").sizes().tp == 4


# ----------------------------------------------------------------------- Megatron without a size


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("pretrain_t5.py", "--encoder-num-layers 12"),
        ("/opt/Megatron-LM/pretrain_bert.py", "--bf16"),
        (
            "train.py",
            "--num-layers 2 --hidden-size 8 --num-attention-heads 2 --micro-batch-size 1",
        ),
    ],
)
def test_megatron_is_known_without_a_parallel_size(program: str, words: str) -> None:
    config = told(f"torchrun --nproc_per_node 8 {program} {words}\n")
    assert (config.format, config.framework) == ("Megatron script", "megatron")
    assert (config.sizes().world_size, config.sizes().tp) == (8, 1)


def test_sizes_may_stand_in_words_that_are_not_known() -> None:
    config = told("torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 $MODEL_ARGS\n")
    because = "MODEL_ARGS on line 1 is not set in the file"
    assert {each.name: str(each.because) for each in config.missing} == {
        "tp": because,
        "pp": because,
    }
    config = told('torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 "$@"\n')
    assert config.missing == ()


def test_a_launcher_behind_two_dashes_is_the_one_that_starts_ranks() -> None:
    text = "python submit.py --gpus 8 -- torchrun --nproc_per_node 4 pretrain_gpt.py --bf16\n"
    config = told(text)
    assert (config.framework, config.fields["gpus_per_node"].value) == ("megatron", 4)
    because = "submit.py on line 1 decides on how many machines it starts them"
    assert [str(each.because) for each in config.missing] == [because]
    text = "python3 submit.py -- accelerate launch --num_processes 8 --use_deepspeed train.py\n"
    assert [str(each.because) for each in told(text).missing] == [because]


def test_another_pretrain_program_is_no_megatron_by_its_name() -> None:
    assert told("torchrun --nproc_per_node 8 pretrain_images.py --lr 1\n").framework is None


def test_a_shell_behind_torchrun_is_not_called_a_program() -> None:
    [missing] = told("torchrun --nproc_per_node 8 --no-python bash work\n").missing
    assert str(missing.because) == "nothing in run.sh tells a framework"


def test_deepspeed_starts_its_own_megatron() -> None:
    config = told("deepspeed --num_gpus 8 pretrain_gpt.py --deepspeed\n")
    assert (config.format, config.framework) == ("Megatron-DeepSpeed script", "deepspeed")


NEMO = "python examples/nlp/language_modeling/megatron_gpt_pretraining.py {}\n"


def test_nemo_is_known_by_its_program() -> None:
    config = told(NEMO.format("trainer.devices=8 trainer.num_nodes=2"))
    assert (config.format, config.framework) == ("NeMo command line", "megatron")
    assert (config.sizes().world_size, config.sizes().tp) == (16, 1)


def test_a_config_of_nemo_that_is_not_given_leaves_its_sizes_open() -> None:
    config = told(NEMO.format("--config-name=mine trainer.devices=8 trainer.num_nodes=1"))
    assert {each.name: str(each.because) for each in config.missing} == {
        "tp": "mine.yaml is not given beside it",
        "pp": "mine.yaml is not given beside it",
    }


@pytest.mark.parametrize("place", ["compute:\n  gpus: 8", "gpu_num: 16"])
def test_a_run_of_mosaicml_s_platform_is_named(place: str) -> None:
    text = f"name: x\nimage: y\n{place}\ncommand: |\n  composer run.py --config a\n"
    assert refusal(text, "run.yaml") == (
        "run.yaml is a run of MosaicML's platform; give the command that it holds, or the YAML "
        "that this names"
    )


def test_a_config_for_neuron_is_named() -> None:
    text = "model_source: hf\ndistributed_strategy:\n  tensor_model_parallel_size: 8\n"
    assert refusal(text, "x.yaml") == (
        "x.yaml is for AWS Neuron's neuronx-distributed-training, whose groups serried does not "
        "lay out"
    )


def test_yaml_that_begins_as_json_does_is_blamed_where_it_breaks() -> None:
    text = '{\n  # deepspeed\n  "pipe-parallel-size": 1,\n  "norm": "x"\n  "seed": 1\n}\n'
    assert refusal(text, "x.yml").startswith("x.yml line 5 is no YAML: ")
