"""A report as Markdown has the verdict first, tables as tables, and its picture beside it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.conftest import Call
from tests.trace.recorded_run import Run


def headings(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("## ") for line in lines if line.startswith("## ")]


def test_a_run_comes_first_then_its_layout_and_schedule(serried: Call, tmp_path: Path) -> None:
    Run(pp=2, tp=2, dp=2, num_microbatches=4, num_steps=3).write(tmp_path / "run")
    answer = serried("report", str(tmp_path / "run"), "-o", str(tmp_path / "run.md"))
    assert answer.code == 0, answer.err
    assert headings(tmp_path / "run.md") == ["Run", "Layout", "Schedule"]
    text = (tmp_path / "run.md").read_text(encoding="utf-8")
    assert "| tp | 4 | 2 | all |" in text
    assert "2 ranks, 4 microbatches" in text and "](run.svg)" in text, "the run's own schedule"
    assert ET.parse(tmp_path / "run.svg").getroot().tag.endswith("svg")


def test_without_a_run_the_job_is_planned_in_the_language_asked(
    serried: Call, tmp_path: Path
) -> None:
    link = "?world_size=64&tp=8&pp=1&model=llama3-70b&dims=dp,tp"
    path = tmp_path / "job.md"
    answer = serried("--lang", "zh", "report", "-o", str(path), "--link", link)
    assert answer.code == 0, answer.err
    assert headings(path) == ["布局", "规划"]
    assert not (tmp_path / "job.svg").exists(), "without a pipeline there is no schedule to draw"


def test_what_a_plan_takes_that_no_link_says_is_told(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "my job.MD"
    words = "world_size=8&tp=2&pp=2&model=gpt2&sequence=1024"
    answer = serried("report", "-o", str(path), "--link", words)
    assert answer.code == 0, answer.err
    text = path.read_text(encoding="utf-8")
    assert "says it: cluster dgx-h100, global batch 64" in text
    assert "](my%20job.svg)" in text and (tmp_path / "my job.svg").exists()


def test_a_plan_that_cannot_be_says_why(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "job.md"
    serried("report", "-o", str(path), "--link", "?world_size=8&tp=1&pp=1&global_batch=7")
    assert "does not divide" in path.read_text(encoding="utf-8")


def test_a_launch_file_is_planned_as_it_says_and_what_it_does_not_is_told(
    serried: Call, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    sizes = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --fp16"
    batch = "--seq-length 2048 --micro-batch-size 1 --global-batch-size 1536"
    split = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16"
    script.write_text(f"torchrun --nnodes 16 --nproc_per_node 8 x.py {sizes} {batch} {split}")
    answer = serried("report", str(script), "-o", str(tmp_path / "train.md"))
    assert answer.code == 0, answer.err
    text = (tmp_path / "train.md").read_text(encoding="utf-8")
    told = serried("plan", str(script), "--cluster", "dgx-h100", "--format", "json").out
    assert json.loads(told)["verdict"] in " ".join(text.split())
    assert "1 x 1,536 microbatches of 2,048" in text
    assert "assumed, as nothing that was given says it: cluster dgx-h100" in text
    assert "1f1b: 16 ranks, 1,536 microbatches" in text
    assert "49152 actions cannot be drawn" in text and not (tmp_path / "train.svg").exists()


def test_a_plan_of_a_model_s_own_sizes_is_that_plan_again(serried: Call, tmp_path: Path) -> None:
    script, plan = tmp_path / "train.sh", tmp_path / "plan.json"
    sizes = "--num-layers 9 --hidden-size 512 --num-attention-heads 8 --optimizer sgd"
    batch = "--seq-length 2048 --global-batch-size 32 --recompute-granularity full"
    split = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"
    script.write_text(f"torchrun --nnodes 1 --nproc_per_node 8 x.py {sizes} {batch} {split}")
    words = ("--cluster", "h100", "--layers", "5,4", "--format", "json")
    serried("plan", str(script), *words, "-o", str(plan))
    answer = serried("report", str(plan), "-o", str(tmp_path / "plan.md"))
    assert answer.code == 0, answer.err
    text = " ".join((tmp_path / "plan.md").read_text(encoding="utf-8").split())
    document = json.loads(plan.read_text(encoding="utf-8"))
    assert document["asked"]["states"] == "sgd-momentum"
    assert document["verdict"] in text and document["time"]["verdict"] in text
    assert "1f1b: 2 ranks, 16 microbatches" in text, "recompute is no time of the schedule"


def test_what_is_of_another_job_is_left_out_and_said(serried: Call, tmp_path: Path) -> None:
    Run(pp=2, tp=2, dp=2, num_microbatches=4, num_steps=3).write(tmp_path / "run")
    script = tmp_path / "train.sh"
    script.write_text(
        "torchrun --nnodes 2 --nproc_per_node 8 x.py --tensor-model-parallel-size 2 "
        "--global-batch-size 64 --model gpt2"
    )
    out = tmp_path / "both.md"
    answer = serried("report", str(script), str(tmp_path / "run"), "-o", str(out))
    assert answer.err.startswith("train.sh is of another job, of 16 ranks, and is left out")
    assert headings(out) == ["Run", "Layout", "Schedule"]
    script.write_text(
        "torchrun --nproc_per_node 8 x.py --tensor-model-parallel-size 2 "
        "--pipeline-model-parallel-size 2 --seq-length 1024 --global-batch-size 64 --model gpt2"
    )
    answer = serried("report", str(script), str(tmp_path / "run"), "-o", str(out))
    assert (answer.err, headings(out)) == ("", ["Run", "Layout", "Plan", "Schedule"])
    assert "2 ranks, 4 microbatches" in out.read_text(encoding="utf-8"), "as it ran"
