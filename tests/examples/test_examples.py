"""Every example trains on two real ranks, tells the truth about itself, and shows its trace."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from serried.trace.merge import Trace, merge
from serried.trace.statistics import measure
from serried.views.web.trace_payload import NamedTrace, trace_payload
from tests.conftest import Call
from tests.examples.launched import EXAMPLES, Launcher

pytest.importorskip("torch", reason="torch is missing: pip install 'serried[examples]'")

SCRIPTS = ("ddp.py", "fsdp2.py", "accelerate_.py", "deepspeed_.py", "serried_.py")
NUM_ROWS = 22
"""17 to train on and 5 to measure with: neither divides among two ranks."""
NEEDS = {"accelerate_.py": "accelerate", "deepspeed_.py": "deepspeed"}
FRAMEWORKS = {"fsdp2.py": "fsdp", "serried_.py": "fsdp", "deepspeed_.py": "deepspeed"}

Run = Callable[..., Path]


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    made = Launcher()
    yield made
    made.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, launcher: Launcher) -> Run:
    """Runs an example once for each choice of words; returns the folder it worked in."""
    shared = tmp_path_factory.mktemp("examples")
    lines = (EXAMPLES / "reviews.csv").read_text(encoding="utf-8").splitlines()
    few = shared / "few.csv"
    few.write_text("\n".join(lines[: 1 + NUM_ROWS]) + "\n", encoding="utf-8")

    @cache
    def go(name: str, *words: str, precision: str = "no") -> Path:
        for package in ("transformers", NEEDS.get(name, "torch")):
            pytest.importorskip(
                package, reason=f"{package} is missing: pip install 'serried[examples]'"
            )
        folder = shared / re.sub(r"\W+", "-", " ".join((name, precision, *words)))[-80:]
        usual = ("--csv", str(few), "--batch", "2", "--epochs", "2", "--out", str(folder / "out"))
        env = {"SERRIED_TRACE_DIR": str(folder / "trace")}
        if name == "accelerate_.py":
            env["ACCELERATE_MIXED_PRECISION"] = precision  # as its launcher tells its ranks
        launcher.run(name, folder, *usual, *words, env=env)
        return folder

    return go


def json_config(stage: int) -> tuple[str, str]:
    return ("--deepspeed_config", str(EXAMPLES / f"zero{stage}.json"))


def usual_words(name: str) -> tuple[str, ...]:
    return json_config(1) if name == "deepspeed_.py" else ()


def trace_of(folder: Path) -> Trace:
    return merge([folder / "trace"])


def accuracies(launcher: Launcher, folder: Path) -> dict[str, Any]:
    """Returns what one process measures of the saved weights, and what the run said."""
    few = next(folder.parent.glob("few.csv"))
    script = str(Path(__file__).with_name("whole_accuracy.py"))
    words = ("--csv", str(few), "--out", str(folder / "out"))
    said = launcher.run(script, folder / "whole", *words, world_size=1)
    told: dict[str, Any] = json.loads(said.splitlines()[-1])
    return told


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_saved_weights_are_as_good_as_the_run_said_over_unpadded_rows(
    name: str, run: Run, launcher: Launcher
) -> None:
    told = accuracies(launcher, run(name, *usual_words(name)))
    assert told["rows"] == 5
    assert told["told"] == pytest.approx(told["whole"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_config_is_saved_beside_the_weights(name: str, run: Run) -> None:
    folder = run(name, *usual_words(name))
    saved = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))
    assert (saved["seed"], saved["batch"], saved["epochs"]) == (7, 2, 2)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_trace_holds_every_step_of_both_ranks(name: str, run: Run) -> None:
    trace = trace_of(run(name, *usual_words(name)))
    count = Counter(str(span.action.kind.name) for span in trace.spans if span.rank == 0)
    microbatches = 2 * {"deepspeed_.py": 4}.get(name, 5)
    accumulated = {"accelerate_.py": 6, "deepspeed_.py": 4}
    steps = accumulated.get(name, microbatches)
    assert count["F"] == count["B"] == microbatches
    assert count["OPTIMIZER"] == steps
    assert (trace.ranks, trace.missing, trace.torn) == ((0, 1), (), ())
    assert trace.job.framework == FRAMEWORKS.get(name, "custom")
    assert trace.layout is not None


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_workbench_shows_the_trace(name: str, run: Run) -> None:
    trace = trace_of(run(name, *usual_words(name)))
    assert b'"schema":"serried.payload/1"' in trace_payload(NamedTrace(name, trace), "en")
    assert measure(trace).steps


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_short_and_marks_the_lines_it_added(name: str) -> None:
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    marked = [line for line in lines if re.search(r"# serried, line \d of \d$", line)]
    assert len(lines) <= 150
    assert 0 < len(marked) <= 3
    assert {line.rpartition(" ")[2] for line in marked} == {str(len(marked))}


@pytest.mark.parametrize("kind", ["REDUCE_GRAD"])
def test_ddp_and_accelerate_reduce_gradients_in_the_last_backward_of_a_step(
    kind: str, run: Run
) -> None:
    for name, steps in (("ddp.py", 10), ("accelerate_.py", 6)):
        trace = trace_of(run(name))
        count = Counter(span.rank for span in trace.spans if span.action.kind.name == kind)
        assert count == {0: steps, 1: steps}


# ----------------------------------------------------------------------- Accelerate


def losses(folder: Path) -> dict[int, float]:
    """Returns each step's loss; of a step that ran twice, the later one."""
    text = (folder / "out" / "log.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["step"]: line["loss"] for line in lines if line["step"] is not None}


def test_accelerate_goes_on_at_the_next_unseen_batch(run: Run, launcher: Launcher) -> None:
    whole = losses(run("accelerate_.py"))
    # Step 5 is the middle of the second epoch; steps after the saved one run again.
    parted = run("accelerate_.py", "--save-every", "4", "--stop-after", "5")
    state = ("--resume", "--epochs", "2")
    usual = ("--csv", str(parted.parent / "few.csv"), "--batch", "2", "--out", str(parted / "out"))
    env = {"ACCELERATE_MIXED_PRECISION": "no"}
    assert losses(parted) == {step: whole[step] for step in range(1, 6)}
    launcher.run("accelerate_.py", parted / "resumed", *usual, *state, env=env)
    assert losses(parted) == whole


@pytest.mark.parametrize(
    ("precision", "words", "used"),
    [("bf16", (), "bf16"), ("bf16", ("--mixed-precision", "no"), "no")],
)
def test_accelerate_s_constructor_beats_its_launcher(
    precision: str, words: tuple[str, ...], used: str, run: Run
) -> None:
    folder = run("accelerate_.py", *words, precision=precision)
    saved = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))
    assert saved["precision_used"] == used


@pytest.mark.parametrize(("flag", "used"), [((), "bf16"), (("--mixed_precision", "fp16"), "fp16")])
def test_accelerate_s_launcher_takes_the_flag_before_the_file(
    flag: tuple[str, ...], used: str
) -> None:
    launch = pytest.importorskip(
        "accelerate.commands.launch",
        reason="accelerate is missing: pip install 'serried[examples]'",
    )
    words = ["--config_file", str(EXAMPLES / "accelerate.yaml"), *flag, "accelerate_.py"]
    args, *_ = launch._validate_launch_command(launch.launch_command_parser().parse_args(words))
    assert (args.mixed_precision, args.num_processes, args.multi_gpu) == (used, 2, True)


def test_accelerate_saves_adapters_alone_when_they_were_trained(
    run: Run, launcher: Launcher
) -> None:
    pytest.importorskip("peft", reason="peft is missing: pip install 'serried[examples]'")
    folder = run("accelerate_.py", "--lora")
    assert (folder / "out" / "adapter_model.safetensors").exists()
    assert not (folder / "out" / "model.safetensors").exists()
    told = accuracies(launcher, folder)
    assert told["told"] == pytest.approx(told["whole"])


# ----------------------------------------------------------------------- DeepSpeed


@pytest.mark.parametrize("stage", [0, 3])
def test_deepspeed_saves_whole_weights_from_every_stage(
    stage: int, run: Run, launcher: Launcher
) -> None:
    told = accuracies(launcher, run("deepspeed_.py", *json_config(stage)))
    assert told["told"] == pytest.approx(told["whole"])


# ----------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("file", "framework", "kind", "groups"),
    [
        ("accelerate.yaml", "accelerate", "dp", [[0, 1]]),
        ("hostfile", "deepspeed", "data", [[0, 1, 2, 3]]),
    ],
)
def test_serried_reads_the_groups_of_a_launch_config(
    file: str, framework: str, kind: str, groups: list[list[int]], serried: Call
) -> None:
    answer = serried("groups", str(EXAMPLES / file), "--format", "json")
    told = json.loads(answer.out)
    assert (told["framework"], told["groups"][kind]) == (framework, groups)


def test_serried_prints_the_groups_that_its_own_example_makes(run: Run) -> None:
    folder = run("serried_.py")
    said = (folder / "rank-0.log").read_text(encoding="utf-8")
    assert "dp_shard group 0 [0 1]" in said
    assert trace_of(folder).names == ("to device",)
