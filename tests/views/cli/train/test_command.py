"""``serried train`` on the command line: what it prints where, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from serried.frameworks import FRAMEWORKS
from serried.views.cli.train.command import train
from tests.conftest import Call

TINY = ["--layers", "2", "--hidden", "32", "--heads", "4", "--seq-len", "16", "--device", "cpu"]


@pytest.fixture(autouse=True)
def outside_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)


def test_progress_goes_to_stderr_and_the_summary_to_stdout(serried: Call, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    done = serried("train", "--steps", "3", *TINY, "--log-file", str(log))
    losses = [json.loads(line)["loss"] for line in log.read_text().splitlines()]
    progress = done.err.splitlines()
    assert done.code == 0
    assert progress[0] == "1 rank (tp 1, pp 1, dp 1; megatron tp-cp-ep-dp-pp) ready on cpu"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line.rsplit("  ", 2)[0] for line in progress[1:]] == [
        f"step {step}  loss {losses[step]:.4f}  norm {line['grad_norm']:.3g}  lr {line['lr']:.2e}"
        for step, line in enumerate(lines)
    ]
    # the log keeps one decimal, so a value halfway between two tokens may be told as either
    told = [int(line.rsplit("  ", 2)[1].split()[0].replace(",", "")) for line in progress[1:]]
    assert told == pytest.approx([line["tokens_per_s"] for line in lines], abs=0.56)
    summary = done.out.splitlines()
    assert summary[0].startswith(
        "3 steps on 1 rank (tp 1, pp 1, dp 1; megatron tp-cp-ep-dp-pp): "
        f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, median step "
    )
    assert summary[1:] == [f"log: {log}"]


def test_many_steps_are_told_of_in_about_twenty_lines(serried: Call) -> None:
    done = serried("train", "--steps", "45", *TINY)
    told = [int(line.split()[1]) for line in done.err.splitlines() if line.startswith("step")]
    assert told == [*range(0, 45, 3), 44]


def test_emulated_compute_is_named_wherever_it_is_shown(serried: Call, tmp_path: Path) -> None:
    done = serried(
        *("train", "--nproc", "2", "--pp", "2", "--steps", "2", *TINY),
        *("--compute", "emulated", "--forward-ms", "1", "--backward-ms", "2.5"),
        *("--trace-dir", str(tmp_path / "trace"), "--trace-steps", "1:2"),
    )
    assert done.code == 0
    steps = [line for line in done.err.splitlines() if line.startswith("step")]
    assert len(steps) == 2 and all("  emulated compute  " in line for line in steps)
    summary = done.out.splitlines()
    assert "): emulated compute (forward 1 ms, backward 2.5 ms), median step " in summary[0]
    assert summary[1] == (f"trace: {tmp_path / 'trace'} (serried trace merge {tmp_path / 'trace'})")
    assert len(list((tmp_path / "trace").glob("rank-*.spans"))) == 2


def test_explain_prints_what_each_rank_holds(serried: Call) -> None:
    done = serried("train", "--nproc", "2", "--pp", "2", "--steps", "1", *TINY, "--explain")
    assert [" ".join(line.split()) for line in done.out.splitlines()[:3]] == [
        "rank pp dp tp parameters holds pp group dp group tp group",
        "0 0 0 0 86,272 B embed layers.0 0 1 0 0",
        "1 1 0 0 86,400 B layers.1 norm output 0 1 1 1",
    ]


def test_a_step_whose_gradients_overflow_is_said_to_teach_nothing(serried: Call) -> None:
    words = ("--dtype", "float16", "--loss-scale", "1e30", "--dp-style", "buffer", "--explain")
    done = serried("train", "--steps", "1", *TINY, *words)
    assert done.code == 0
    assert "norm inf" in done.err and "scale 1e+30" in done.err
    assert done.err.splitlines()[-1] == (
        "step 0 taught nothing: float16 gradients overflowed; loss scale 1e+30 -> 5e+29"
    )
    buffers = [" ".join(line.split()) for line in done.out.splitlines()[2:]]
    assert buffers[:4] == [
        "rank 0, buffer 0: 86,016 bytes, float16 gradients of float16 parameters, summed over "
        "dp_cp",
        "offset elements parameter",
        "0 8,192 output.weight",
        "8,192 3,072 layers.1.feed_forward.w3.weight",
    ]
    assert (
        "rank 0, buffer 1: 640 bytes, float32 gradients of float32 parameters, summed over dp_cp"
    ) in buffers


def test_help_shows_every_option_under_a_heading(serried: Call) -> None:
    shown = serried("train", "--help").out
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert {"Ranks:", "Tensor and sequence parallelism:", "Model:", "Learning:"} <= set(headings)
    options = {name for param in train.params for name in param.opts if name.startswith("--")}
    assert all(name in shown for name in options)


def test_a_schedule_is_run_by_name_or_from_a_file_that_schedule_wrote(
    serried: Call, tmp_path: Path
) -> None:
    plan, log = tmp_path / "plan.csv", tmp_path / "log.jsonl"
    sizes = ["--pp", "2", "--microbatches", "3"]
    assert serried("schedule", "looped-bfs", "--chunks", "3", *sizes, "-o", str(plan)).code == 0
    words = [*sizes, *TINY, "--layers", "6", "--global-batch-size", "6", "--steps", "2"]
    words += ["--dtype", "float64", "--log-file", str(log)]
    losses = []
    for chosen in (["looped-bfs", "--chunks", "3"], [str(plan)], ["1f1b"]):
        done = serried("train", *words, "--schedule", *chosen)
        assert done.code == 0
        losses.append([json.loads(line)["loss"] for line in log.read_text().splitlines()])
    assert losses[0] == losses[1] == pytest.approx(losses[2], rel=1e-12)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--pp", "2", "--schedule", "zbv", "--layers", "3"],
            "layers=3 cannot fill the 4 stages that zbv has on pp=2; take at least 4 layers",
        ),
        (
            ["--schedule", "/nowhere/plan.csv"],
            "/nowhere/plan.csv cannot be read: No such file or directory",
        ),
        (
            ["--tp", "2", "--heads", "3", "--hidden", "60"],
            "tp=2 does not divide 3 heads; tp can be 1, 3, or take heads=4 with hidden=64",
        ),
        (["--nproc", "0"], "world size 0 cannot be; it is at least 1 rank"),
        (["--nproc", "eight"], "--nproc takes a whole number, such as 16; it got 'eight'"),
        (["--nproc", "4", "--tp", "3"], "tp=3 does not divide 4 ranks; sizes that do: 1, 2, 4"),
        (["--pp", "0"], "pp=0; a size is at least 1"),
        (
            ["--framework", "megatrom"],
            f"framework 'megatrom' is not known; those that are: {', '.join(FRAMEWORKS)}; "
            "did you mean megatron?",
        ),
        (
            ["--trace-steps", "3-6"],
            "--trace-steps takes FIRST:END, such as 3:6 for steps 3, 4 and 5; it got '3-6'",
        ),
        (
            ["--forward-ms", "5"],
            "--forward-ms and --backward-ms are times of emulated compute; "
            "add --compute emulated or leave them out",
        ),
        (
            ["--data", "/nowhere"],
            "/nowhere does not exist; data is a file or a folder of text",
        ),
        (["--set", "x"], "'x' is not a setting; one reads KEY=VALUE, such as num_experts=4"),
    ],
)
def test_a_run_that_cannot_be_is_refused_in_one_sentence(
    serried: Call, words: list[str], sentence: str
) -> None:
    done = serried("train", *words)
    assert (done.code, done.out, done.err) == (2, "", f"serried: {sentence}\n")


def test_a_gpu_that_is_not_there_is_a_problem_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    words = ["train", "--nproc", "1", *TINY[:-1], "cuda"]
    done = subprocess.run(
        [sys.executable, "-c", "from serried.views.cli.main import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        3,
        "serried: rank 0 failed: device cuda needs a GPU for each of the 1 local ranks; "
        "0 were found; take fewer ranks or device cpu; the other ranks were ended\n",
    )


def test_another_nproc_than_torchrun_s_is_refused(
    serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = serried("train", "--nproc", "4")
    assert (done.code, done.err) == (
        2,
        "serried: --nproc 4 differs from the 2 ranks that torchrun started; leave out --nproc\n",
    )


WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from serried.views.cli.main import main
main(["train", "--nproc", "2", "--tp", "2"])
"""


def test_without_torch_the_command_that_installs_it_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "serried: training needs torch, which is not installed; "
        "install it with: pip install 'serried[torch]'\n"
    )
