"""Every sentence that a launch file may be answered with is said by some file of the table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from serried import launch
from serried.errors import InputError, SerriedError
from serried.finding import Sentence
from serried.launch.read import read
from serried.views.sentences import say

SOURCES = sorted(Path(launch.__file__).parent.rglob("*.py"))
RUN = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size"
PADDLE = '{"output_dir": "x", "tensor_parallel_degree": 2, "pipeline_parallel_degree": 2'
NEMO = "model:\n  tensor_model_parallel_size: 2\ntrainer:\n  num_nodes: 2\n  devices: "
TITAN = "[parallelism]\ntensor_parallel_degree = 2\n"
EVO = "parallel = dict(tensor=dict(size=2, mode='isp'))\n"
FSDP = "distributed_type: FSDP\nfsdp_config: {}\nnum_machines: 4\n"

SAID = [
    # What a file leaves open, and why.
    ("a.yaml", FSDP, "world_size: a.yaml does not say on how many ranks it runs"),
    (
        "a.yaml",
        FSDP + "num_processes: 10\n",
        "gpus_per_node: num_processes is 10 and num_machines 4, which does not divide it",
    ),
    (
        "a.yaml",
        FSDP.replace("{}", "\n  fsdp_sharding_strategy: HYBRID_SHARD"),
        "devices_per_node: a.yaml does not say how many GPUs a node has",
    ),
    (
        "x.sh",
        "torchrun --nnodes $A --nproc_per_node $B pretrain_gpt.py --tensor-model-parallel-size 2",
        "world_size: nodes: --nnodes: A on line 1 is not set in the file; "
        "gpus_per_node: --nproc_per_node: B on line 1 is not set in the file",
    ),
    (
        "x.sh",
        f"{RUN} $A\n{RUN} $B",
        "tp: --tensor-model-parallel-size: A on line 1 is not set in the file, "
        "--tensor-model-parallel-size: B on line 2 is not set in the file",
    ),
    (
        "x.sh",
        f"{RUN} 2\ncolossalai run --nproc_per_node 8 t.py --tp 2",
        "framework: it starts colossalai, megatron",
    ),
    (
        "x.sh",
        "accelerate launch --config_file c.yaml train.py",
        "framework: line 1 names c.yaml, which is not given beside it",
    ),
    (
        "n.yaml",
        "parallelism:\n  dp: 1\n  pp: 1\n  tp: ${oc.env:TP}\nmodel: 1\ntokens: 2\n",
        "tp: parallelism.tp: TP comes from the environment",
    ),
    (
        "n.yaml",
        NEMO + "auto",
        "gpus_per_node: n.yaml line 5, trainer.devices is 'auto', all that a node has",
    ),
    (
        "n.yaml",
        NEMO + "some",
        "gpus_per_node: n.yaml line 5, trainer.devices is 'some', no number",
    ),
    (
        "p.json",
        PADDLE + ', "sharding": "stage1"}',
        "order: p.json gives no hybrid_parallel_topo_order, for which PaddleNLP takes pp_first "
        "until 2.8 and sharding_first since",
    ),
    # What a shell script leaves to the machine.
    ("x.sh", f"{RUN} $1", "tp: … it is argument 1 of the script on line 1"),
    ("x.sh", f"{RUN} $#", "tp: … the number of arguments on line 1 is not known"),
    ("x.sh", f"{RUN} $RANDOM", "tp: … $RANDOM on line 1 differs from run to run"),
    ("x.sh", f"{RUN} ${{A[3]}}", "tp: … ${A[3]} on line 1 is not known"),
    ("x.sh", f"X='a b'\n{RUN} $((X))", "tp: … X on line 2 is not a number"),
    ("x.sh", f"{RUN} $((1 / 0))", "tp: … $((1 / 0)) on line 1 is not worked out"),
    ("x.sh", f"read N\n{RUN} $N", "tp: … 'read' on line 1 sets it"),
    ("x.sh", f"for i in $(cat n); do\n{RUN} $i\ndone", "tp: … the loop on line 1 sets it"),
    (
        "x.sh",
        f"if nvcc; then A=(1); else A=(2 3); fi\n{RUN} ${{A[0]}}",
        "tp: … ${A[0]} on line 2 is open",
    ),
    (
        "x.sh",
        f"#SBATCH -p gpu\nsrun {RUN} 2 --nnodes\nsrun {RUN} $SLURM_NNODES",
        "tp: … SLURM_NNODES on line 3 comes from Slurm, and no #SBATCH line settles it",
    ),
    # What a Python config leaves to Python.
    (
        "x.py",
        "model = dict(a=1)\ndata = dict(a=1)\nlr_scheduler = dict(a=1)",
        "tp: parallel is not set in x.py: the config sets no parallel mapping",
    ),
    (
        "x.py",
        "parallel = f()\nmodel = dict()",
        "tp: parallel: f() on line 1 of x.py is not run",
    ),
    (
        "x.py",
        f"from base import *\n{EVO}",
        "x.py line 1: all names of base come in here, and imports are not followed; give base.py "
        "beside it",
    ),
    (
        "x.py",
        "parallel = dict(zero1=8)",
        "x.py is read as classic InternLM, by parallel.zero1 = 8; for InternEvo give --framework "
        "internevo",
    ),
    (
        "x.py",
        EVO + "def f():\n    pass\nparallel['pipeline'] = f",
        "pp: parallel.pipeline: a function on line 2 of x.py sets it, and is not run",
    ),
    ("x.py", EVO + "class Tp:\n    pass", "x.py line 2: a class is not run"),
    (
        "x.py",
        EVO + "if Tp:\n    parallel['pipeline'] = 2",
        "x.py line 2: an 'if' that the file does not settle is not run",
    ),
    ("x.py", EVO + "for i in (1, 2):\n    Tp = i", "x.py line 2: a loop is not run"),
    ("x.py", EVO + "try:\n    Tp = 1\nfinally:\n    pass", "x.py line 2: 'try:' is not run"),
    (
        "x.py",
        EVO + EVO,
        "x.py line 2: parallel is set once more and replaces the one before",
    ),
    (
        "x.sh",
        "torchrun --nproc_per_node 8 $TRAIN",
        "framework: nothing in x.sh tells a framework",
    ),
    # What a reader should know.
    (
        "d.json",
        '{"zero_optimization": {"stage": 3, "mics_shard_size": 8}}',
        "d.json sets mics_shard_size, which DeepSpeed 0.19.7 dropped; read for 0.18.9",
    ),
    (
        "x.sh",
        "ARGS='--tensor-model-parallel-size 2 --num-layers 4'",
        "x.sh sets options but starts nothing itself; it is read all the same",
    ),
    ("x.sh", f"{RUN} 2 $X", "X on line 1 is not set in the file; options in it are not known"),
    ("x.sh", f"bash y.sh\n{RUN} 2", "x.sh line 1: it starts y.sh, which is not given beside it"),
    (
        "x.sh",
        f"echo\n#SBATCH -N 2\n{RUN} 2",
        "x.sh line 2: '-N 2' stands after a command, so Slurm does not read it",
    ),
    (
        "x.sh",
        f"#SBATCH -N 2\nsrun {RUN} 2",
        "x.sh line 2: torchrun is given no --nnodes, so each of the 2 nodes starts a job of its "
        "own",
    ),
    (
        "x.sh",
        "accelerate launch --config_file c.yaml train.py",
        "x.sh line 1 names c.yaml, which is not given beside it; what it says is not known",
    ),
    (
        "x.toml",
        TITAN,
        "x.toml is read for torchtitan 0.2.2, the last that reads TOML; for another give it, such "
        "as --framework torchtitan@0.2.0",
    ),
    (
        "x.yaml",
        "defaults: [ppo_trainer, mine]\ntrainer:\n  n_gpus_per_node: 8\n",
        "x.yaml takes in mine.yaml, which is not given beside it; what it says is not known",
    ),
    # What cannot be read at all.
    (
        "x.sh",
        "sbatch y.sh",
        "x.sh starts no ranks itself; it starts y.sh, which is not given beside it",
    ),
    ("x.sh", f"{RUN} ${{A[0", "x.sh line 1: a [ opens here and never closes; add the closing ]"),
    ("x.sh", f"{RUN} 2\n| x", "x.sh line 2: '| x' stands where a command should"),
    ("x.sh", "( " * 300 + RUN, "x.sh line 1: blocks are nested too deeply to be a launch script"),
    ("x.toml", f"{TITAN}b = {'[' * 3000}", "x.toml is nested too deeply to be a launch file"),
    (
        "d.json",
        '{"train_\\q": 1}',
        "d.json line 1 is no JSON: a name has an escape that JSON lacks",
    ),
]


def asked_of(name: str, text: str) -> Iterator[Sentence | SerriedError]:
    """Yields what a user may read of a file: what is asked, remarks, places, or a refusal."""
    try:
        config = read(text, name=name, beside={})
    except InputError as error:
        yield error
        return
    for each in config.missing:
        yield Sentence("{name}: {why}", {"name": each.name, "why": each.because})
    yield from config.notes
    yield from (each.where for each in (*config.fields.values(), *config.options.values()))
    try:
        _ = config.framework_at, config.sizes()
    except InputError as error:
        yield error


@pytest.mark.parametrize(("name", "text", "sentence"), SAID)
def test_a_file_is_answered_with_its_sentence(name: str, text: str, sentence: str) -> None:
    start, _, end = sentence.partition("…")
    sentences = [str(each) for each in asked_of(name, text)]
    assert [each for each in sentences if each.startswith(start) and each.endswith(end)], sentences


def longest(template: str) -> str:
    """Returns the longest text of a template between its values."""
    return max((text for text, *_ in Formatter().parse(template)), key=len).strip()


def constants(path: Path, *, called: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the texts of a module: all, or those that the named functions are called with."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if called:
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") in called
            node = node.args[0] if isinstance(node, ast.Call) and is_call else ast.Pass()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


QUOTED = "\n".join(
    text for path in sorted(Path(__file__).parent.rglob("test_*.py")) for text in constants(path)
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_sentence_of_a_module_is_quoted_in_a_test(source: Path) -> None:
    said = constants(source, called=("said", "InputError"))
    assert [each for each in said if longest(each) not in QUOTED] == []


def test_a_file_of_no_known_format_is_told_which_are_read() -> None:
    with pytest.raises(InputError) as caught:
        read("hello\n", name="x.txt")
    formats = (
        "Megatron scripts and YAML, Slurm scripts, torchrun, accelerate, deepspeed, colossalai, "
        "ms-swift and Paddle command lines, NeMo, NeMo Automodel and Megatron-Bridge YAML, "
        "settings of verl, SkyRL, OpenRLHF and NeMo-RL, YAML of Hugging Face trainers, "
        "LLaMA-Factory, axolotl and llm-foundry, MaxText, VeOmni, FlagScale and Primus YAML, "
        "InternLM and InternEvo configs, DeepSpeed JSON and hostfiles, Accelerate YAML, "
        "torchtitan TOML, nanotron YAML, PaddleNLP and PaddleFormers arguments"
    )
    assert str(caught.value).endswith(f"that serried knows; it reads {formats}")
    assert say(caught.value, "zh").endswith("nanotron YAML、PaddleNLP 和 PaddleFormers 的参数")


def test_a_sentence_is_said_in_chinese_down_to_its_places() -> None:
    config = read(f"{RUN} 2\n{RUN} 4", name="x.sh")
    [tp] = [each.because for each in config.missing if each.name == "tp"]
    option = "--tensor-model-parallel-size"
    assert say(tp, "zh") == (
        f"给出的值不止一个：2（x.sh 第 1 行，{option}），又是 4（x.sh 第 2 行，{option}）"
    )
