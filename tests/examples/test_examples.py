"""Every example trains on real ranks, as its page says, and tells the truth about itself."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from serried.trace.measure.ranks.garbage import COLLECTION
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from tests.conftest import Call
from tests.examples import pages as printed
from tests.examples.pages import EXAMPLES, SCRIPTS, STAYS, Commands, Ran, commands_of

TORCHRUN = "torchrun --nproc-per-node 2 examples/"
ACCELERATE = "accelerate launch --config_file examples/accelerate.yaml "
DEEPSPEED = "deepspeed --num_gpus 2 examples/deepspeed_.py --deepspeed_config examples/"
MAIN = {
    "ddp.py": f"{TORCHRUN}ddp.py",
    "fsdp2.py": f"{TORCHRUN}fsdp2.py --mixed-precision bf16",
    "accelerate_.py": f"{ACCELERATE}examples/accelerate_.py",
    "deepspeed_.py": f"{DEEPSPEED}zero3.json",
    "serried_.py": f"{TORCHRUN}serried_.py --shard 2",
}
"""What README shows of each."""
FSDP2 = f"{TORCHRUN}fsdp2.py"
LORA = f"{ACCELERATE}examples/accelerate_.py --lora --out lora"
RESUMED = f"{ACCELERATE}examples/accelerate_.py --out parted --resume"
BY_FLAG = f"{ACCELERATE}--mixed_precision no examples/accelerate_.py"
BY_CONSTRUCTOR = f"{BY_FLAG} --mixed-precision bf16"
ZERO0 = f"{TORCHRUN}deepspeed_.py --deepspeed_config examples/zero0.json"
ZERO1 = (
    "deepspeed --hostfile examples/hostfile --no_ssh --node_rank 0 --master_addr worker-1 "
    "examples/deepspeed_.py --deepspeed_config examples/zero1.json"
)
ZERO2 = f"{DEEPSPEED}zero2.json"
FOUR = "torchrun --nproc-per-node 4 examples/serried_.py --shard 2"
ALL = sorted({printed.plain(each) for page in printed.pages().values() for each in page})
NUM_MEASURED = 9
FRAMEWORKS = {"fsdp2.py": "fsdp", "serried_.py": "fsdp", "deepspeed_.py": "deepspeed"}


def saved_config(ran: Ran) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((ran.saved / "run.json").read_text(encoding="utf-8"))
    return config


def trace_of(commands: Commands, name: str) -> Trace:
    return merge([commands.ran(MAIN[name]).traced])


# ----------------------------------------------------------------------- the pages


@pytest.mark.parametrize("command", [each for each in ALL if not each.startswith(STAYS)])
def test_a_printed_command_ends_well(command: str, commands: Commands) -> None:
    assert commands.ran(command).said


@pytest.mark.soak
@pytest.mark.parametrize("command", [each for each in ALL if not each.startswith(STAYS)])
def test_a_printed_command_ends_well_where_nothing_is_loaded(
    command: str, fresh_commands: Commands
) -> None:
    assert fresh_commands.ran(command).said


def test_both_languages_print_the_same_commands() -> None:
    chinese = (EXAMPLES / "README.zh.md").read_text(encoding="utf-8")
    assert commands_of(chinese) == printed.pages()["README.md"]


def test_the_groups_that_a_page_shows_hold_the_ranks_that_train(serried: Call) -> None:
    shown = [command for command in ALL if command.startswith("serried groups")]
    assert len(shown) == 5
    for command in shown:
        words = [word.replace("examples/", f"{EXAMPLES}/") for word in command.split()[1:]]
        told = json.loads(serried(*words, "--format", "json").out)
        kind = {"deepspeed": "data", "fsdp": "dp_shard"}.get(told["framework"], "dp")
        world = 4 if "hostfile" in command else 2
        assert told["groups"][kind] == [list(range(world))]


# ----------------------------------------------------------------------- every example


MEASURED = [*MAIN.values(), FSDP2, BY_FLAG, LORA, RESUMED, ZERO0, ZERO1, ZERO2, FOUR]
IN_BF16 = {MAIN["fsdp2.py"], MAIN["accelerate_.py"], LORA, RESUMED}


class Weights(NamedTuple):
    """What ``saved_weights`` finds in the folders that all runs saved into."""

    told: dict[str, dict[str, Any]]

    def apart(self, one: str, other: str) -> float:
        """Returns how far the weights of two runs lie apart, of how far one has gone."""
        first, second = sorted((MEASURED.index(one), MEASURED.index(other)))
        return float(self.told[MEASURED[second]]["apart"][first])


@pytest.fixture(scope="module")
def weights(commands: Commands) -> Weights:
    folders = [str(commands.ran(command).saved) for command in MEASURED]
    script = Path(__file__).with_name("saved_weights.py")
    words = shlex.join([str(script), str(commands.at("README.md") / "examples"), *folders])
    said = commands.shell.run(f"python {words}", commands.folder).splitlines()
    told = [json.loads(line) for line in said if line.startswith("{")]
    return Weights(dict(zip(MEASURED, told, strict=True)))


@pytest.mark.parametrize("command", MEASURED)
def test_the_saved_weights_are_as_good_as_the_run_said_over_unpadded_rows(
    command: str, weights: Weights, commands: Commands
) -> None:
    told = weights.told[command]
    # bf16, in which the run measured, may turn a row that lies near the border.
    turned = 1.5 / NUM_MEASURED if command in IN_BF16 else 1e-6
    assert told["told"] == pytest.approx(told["alone"], abs=turned)
    assert set(re.findall(r"over (\d+) rows", commands.ran(command).said)) == {str(NUM_MEASURED)}


def test_shards_are_gathered_to_the_weights_that_whole_copies_have(weights: Weights) -> None:
    for whole, sharded in (
        (MAIN["ddp.py"], FSDP2),
        (MAIN["ddp.py"], MAIN["serried_.py"]),
        (ZERO0, ZERO2),
    ):
        assert weights.apart(whole, sharded) < 0.01
    assert weights.apart(MAIN["ddp.py"], ZERO0) > 0.1, "those took other steps"


def test_a_resumed_run_ends_at_the_weights_of_the_one_that_never_stopped(
    weights: Weights,
) -> None:
    assert weights.apart(MAIN["accelerate_.py"], RESUMED) == 0
    assert weights.apart(MAIN["accelerate_.py"], BY_FLAG) > 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_config_is_saved_beside_the_weights(name: str, commands: Commands) -> None:
    saved = saved_config(commands.ran(MAIN[name]))
    assert (saved["seed"], saved["batch"], saved["epochs"]) == (7, 8, 2)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_trace_holds_every_step_of_both_ranks(name: str, commands: Commands) -> None:
    trace = trace_of(commands, name)
    microbatches = {"deepspeed_.py": 4}.get(name, 6)
    steps = {"accelerate_.py": 4, "deepspeed_.py": 2}.get(name, microbatches)
    for rank in (0, 1):
        count = Counter(span.action.kind.name for span in trace.spans if span.rank == rank)
        assert count["F"] == count["B"] == microbatches
        assert count["OPTIMIZER"] == steps
    assert (trace.ranks, trace.missing, trace.torn) == ((0, 1), (), ())
    assert trace.job.framework == FRAMEWORKS.get(name, "custom")
    assert trace.layout is not None
    # Also those of one microbatch, by which Accelerate ends an epoch.
    assert len(measure(trace).steps) == steps


def test_ddp_and_accelerate_reduce_gradients_in_the_last_backward_of_a_step(
    commands: Commands,
) -> None:
    for name, steps in (("ddp.py", 6), ("accelerate_.py", 4)):
        spans = trace_of(commands, name).spans
        count = Counter(span.rank for span in spans if span.action.kind.name == "REDUCE_GRAD")
        assert count == {0: steps, 1: steps}


def test_the_recorded_run_learns_what_the_unrecorded_one_does(commands: Commands) -> None:
    alone = commands.folder / "unrecorded"
    alone.mkdir()
    examples = commands.at("README.md") / "examples"
    commands.shell.run(f"torchrun --nproc-per-node 2 {examples}/ddp.py", alone)
    weights = [
        each / "model.safetensors" for each in (alone / "out", commands.ran(MAIN["ddp.py"]).saved)
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert not list(alone.glob("**/*.serried*"))


# ----------------------------------------------------------------------- three lines


def doors(code: str) -> Iterator[int]:
    """Yields the lines that record: ``import serried``, and what is called of it."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import) and any(each.name == "serried" for each in node.names):
            yield node.lineno
        if isinstance(node, ast.Name) and node.id == "serried":
            yield node.lineno


@pytest.mark.parametrize("name", SCRIPTS)
def test_at_most_three_lines_are_added_and_each_is_marked(name: str) -> None:
    code = (EXAMPLES / name).read_text(encoding="utf-8")
    lines = code.splitlines()
    marks = {
        number: found.groups()
        for number, line in enumerate(lines, 1)
        if (found := re.search(r"# serried, line (\d) of (\d)", line))
    }
    assert set(doors(code)) == set(marks)
    assert len(marks) <= 3
    assert list(marks.values()) == [(str(i), str(len(marks))) for i in range(1, len(marks) + 1)]
    assert len(lines) <= 155


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "serried_.py"])
def test_an_example_needs_nothing_else_of_serried(name: str) -> None:
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.startswith("serried")]


# ----------------------------------------------------------------------- the job


def test_rows_and_model_of_your_own_are_taken_from_your_disk(commands: Commands) -> None:
    transformers = pytest.importorskip("transformers")
    folder = commands.folder / "own"
    model = folder / "bert"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"]
    transformers.BertTokenizer(vocab={word: i for i, word in enumerate(words)}).save_pretrained(
        model
    )
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = transformers.BertConfig(vocab_size=len(words), num_attention_heads=2, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(model)
    rows = [f"{word},{int(word == 'good')}" for word in ("good", "bad", "bad") * 4]
    (folder / "own.csv").write_text("\n".join(("text,label", *rows)) + "\n", encoding="utf-8")
    command = f"torchrun --nproc-per-node 2 {EXAMPLES}/ddp.py --csv own.csv --model bert --epochs 1"
    assert "over 3 rows" in commands.shell.run(command, folder)
    saved = json.loads((folder / "out" / "config.json").read_text(encoding="utf-8"))
    assert (saved["hidden_size"], saved["vocab_size"]) == (8, len(words))


PLAIN = (
    "label,review\r\n1,good\r\n0,bad\r\n",
    "review,label\ngood,1\nbad,0\n",
    "text,label\ngood,1\nbad,0\n",
    '\ufeff"label","review"\r\n"1","good"\r\n"0","bad"\r\n',
)
QUOTED = 'label,review\r\n1,"said ""good"", and\r\nmeant it"\r\n0,坏\r\n'


def test_a_csv_file_has_label_and_review_in_any_order_quoted_as_rfc_4180_may(
    tmp_path: Path,
) -> None:
    *plain, quoted = rows_of(tmp_path, *PLAIN, QUOTED)
    assert plain == [[["good", 1], ["bad", 0]]] * len(PLAIN)
    assert quoted == [['said "good", and\r\nmeant it', 1], ["坏", 0]]


def test_a_csv_file_without_its_columns_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rows_of(tmp_path, "stars,review\n5,good\n")
    assert caught.value.stderr.splitlines()[-1].endswith(
        "own0.csv has columns stars, review; it needs label and review"
    )
    assert "Traceback" not in caught.value.stderr


def rows_of(folder: Path, *texts: str) -> Any:
    """Returns the rows that the examples read of each file, in one process: it loads torch."""
    pytest.importorskip("transformers")
    paths = [folder / f"own{number}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    code = (
        "import json, pathlib, reviews, sys; "
        "print(json.dumps([reviews.rows_of(pathlib.Path(each)) for each in sys.argv[1:]]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, paths)],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


# ----------------------------------------------------------------------- Accelerate


def losses(ran: Ran) -> dict[int, float]:
    """Returns each step's loss; of a step that ran twice, the later one."""
    text = (ran.saved / "log.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["step"]: line["loss"] for line in lines if line["step"] is not None}


def test_accelerate_goes_on_at_the_next_unseen_batch(commands: Commands) -> None:
    whole = losses(commands.ran(MAIN["accelerate_.py"]))
    # Step 3 is in the middle of the second epoch; step 4, after it was saved, runs again.
    resumed = commands.ran(RESUMED)
    log = (resumed.saved / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in log] == [None, 1, 2, 3, 4, None, 4]
    assert losses(resumed) == whole
    assert sorted(whole) == [1, 2, 3, 4]


def test_accelerate_s_flag_beats_its_file_and_the_constructor_beats_both(
    commands: Commands,
) -> None:
    asked = (MAIN["accelerate_.py"], BY_FLAG, BY_CONSTRUCTOR)
    used = [saved_config(commands.ran(command))["precision_used"] for command in asked]
    assert used == ["bf16", "no", "bf16"]
    by_file, by_flag, by_constructor = (losses(commands.ran(command)) for command in asked)
    assert by_file == by_constructor != by_flag


def test_accelerate_tracks_the_config_and_every_step(commands: Commands) -> None:
    ran = commands.ran(MAIN["accelerate_.py"])
    first = json.loads((ran.saved / "log.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["config"]["accumulate"] == "2"
    assert losses(ran).keys() == {1, 2, 3, 4}


def test_accelerate_tracks_into_tensorboard_too(commands: Commands) -> None:
    events = list((commands.ran(MAIN["accelerate_.py"]).saved / "reviews").rglob("events.out.*"))
    assert sum(path.stat().st_size for path in events) > 0


def test_accelerate_goes_on_from_its_newest_whole_state(commands: Commands) -> None:
    saved = commands.ran(RESUMED).saved
    assert [path.name for path in sorted(saved.glob("state-*"))] == ["state-000003"]
    assert (saved / "state-000003" / "custom_checkpoint_0.pkl").is_file()


def test_a_state_that_a_kill_cut_short_is_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    names = ("state-000003", "state-000012", "state-000100", "state-000101.part")
    for name in names:
        (tmp_path / name).mkdir()
    code = "import pathlib, states, sys; print(states.newest(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / "state-000100")


def test_accelerate_saves_adapters_alone_when_they_were_trained(commands: Commands) -> None:
    saved = commands.ran(LORA).saved
    assert (saved / "adapter_model.safetensors").exists()
    assert not (saved / "model.safetensors").exists()


# ----------------------------------------------------------------------- DeepSpeed


@pytest.mark.parametrize(
    ("stage", "command", "share"),
    [(0, ZERO0, 1), (1, ZERO1, 1), (2, ZERO2, 1), (3, MAIN["deepspeed_.py"], 2)],
)
def test_stage_3_alone_cuts_the_weights_as_they_are_made(
    stage: int, command: str, share: int, commands: Commands
) -> None:
    ran = commands.ran(command)
    assert saved_config(ran)["deepspeed"]["zero_optimization"]["stage"] == stage
    held = re.search(r"rank 0 holds (\d+) of (\d+) weights", ran.said)
    assert held
    # A weight of odd size is padded, by one element at most.
    assert int(held[1]) == pytest.approx(int(held[2]) / share, abs=50)


def test_the_hostfile_s_two_machines_are_one_job_of_four_ranks(commands: Commands) -> None:
    assert saved_config(commands.ran(ZERO1))["world_size"] == 4


# ----------------------------------------------------------------------- serried


def test_serried_prints_the_groups_that_its_own_example_makes(commands: Commands) -> None:
    assert "dp_shard group 0 [0 1]" in commands.ran(MAIN["serried_.py"]).said
    said = commands.ran(FOUR).said
    assert "dp_shard group 0 [0 1]" in said
    assert "dp_replicate group 0 [0 2]" in said
    # A collection of a millisecond is recorded where it happens.
    names = set(trace_of(commands, "serried_.py").names) - {COLLECTION}
    assert names == {"to device", "data"}
