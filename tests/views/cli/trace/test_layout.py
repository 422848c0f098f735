"""``--layout FILE``: groups of a trace by a launch file, and refusals of one of other ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.trace.formats.gpu.torch_profiler import KernelReader
from tests.conftest import Call
from tests.trace.carried import write_carried
from tests.trace.gpu.samples import FOLDER
from tests.views.explain.reader import has_chinese

SAMPLED = [str(FOLDER / f"sampled_rank-{rank}.json.gz") for rank in (0, 1)]
"""Ranks 0 and 1 of a job of 128."""
MEGATRON = (
    "torchrun --nnodes {nodes} --nproc-per-node 8 pretrain_gpt.py "
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 1\n"
)
PROFILE = {
    "distributedInfo": {"rank": 0, "world_size": 16},
    "traceEvents": [
        {
            "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
            "ts": 10, "dur": 5, "args": {
                "device": 0, "stream": 20, "Collective name": "allreduce", "In msg nelems": 1000,
                "Out msg nelems": 1000, "Group size": 2, "dtype": "Float",
                "Process Group Name": "3", "Process Group Ranks": "[0, 1]",
            },
        }
    ],
}  # fmt: skip


def launch(folder: Path, text: str) -> str:
    path = folder / "train.sh"
    path.write_text(text)
    return str(path)


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(PROFILE))
    return str(path)


@pytest.mark.parametrize("nodes", ["2", "$NODES"])
def test_groups_of_a_profile_are_called_as_the_launch_file_s_framework_calls_them(
    serried: Call, profile: str, tmp_path: Path, nodes: str
) -> None:
    file = launch(tmp_path, MEGATRON.format(nodes=nodes))
    options = ["--layout", file, "--format", "json"]
    done = serried("trace", "stats", profile, *options)
    assert (done.code, done.err) == (0, "warning: the files are of 1 of the job's 16 ranks: 0\n")
    (row,) = json.loads(done.out)["traffic"]
    assert (row["group"], row["num_ranks"]) == ("tp", 2)
    merged = serried("trace", "merge", profile, "-o", str(tmp_path / "a.pftrace"), *options)
    assert json.loads(merged.out)["traffic"] == [row]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("command", ["stats", "merge"])
def test_a_profile_of_another_number_of_ranks_is_refused(
    serried: Call, tmp_path: Path, command: str, lang: str
) -> None:
    file = launch(tmp_path, MEGATRON.format(nodes=2))
    output = ["-o", str(tmp_path / "a.json")] if command == "merge" else []
    done = serried("trace", command, *SAMPLED, *output, "--layout", file, "--lang", lang)
    assert (done.code, done.out) == (2, "")
    assert not (tmp_path / "a.json").exists()
    if lang == "en":
        assert done.err == (
            f"serried: {file} lays out 16 ranks, and the trace is of 128; give the launch file of "
            "that job\n"
        )
    assert len(done.err.splitlines()) == 1 and has_chinese(done.err) == (lang == "zh")


def test_a_recording_of_another_number_of_ranks_is_refused(serried: Call, tmp_path: Path) -> None:
    run = str(write_carried(tmp_path / "run"))
    file = launch(tmp_path, MEGATRON.format(nodes=2))
    done = serried("trace", "stats", run, "--layout", file)
    assert (done.code, done.out) == (2, "")
    assert "lays out 16 ranks, and the trace is of 4" in done.err


def test_a_launch_file_that_is_none_is_refused_before_anything_is_read(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelReader, "take", lambda *_: pytest.fail("a profile was read"))
    done = serried("trace", "stats", *SAMPLED, "--layout", launch(tmp_path, "sleep 5\n"))
    assert done.code == 2 and len(done.err.splitlines()) == 1


def test_another_tool_s_trace_takes_its_sizes_from_the_launch_file(
    serried: Call, tmp_path: Path
) -> None:
    logs = str(FOLDER.parent / "paddle" / "single")
    text = MEGATRON.replace("--nproc-per-node 8", "--nproc-per-node 2").format(nodes=1)
    text = text.replace("-parallel-size 2", "-parallel-size 1").replace(
        "pipeline-model-parallel-size 1", "pipeline-model-parallel-size 2"
    )
    asked = ["--format", "json"]
    by_file = serried("trace", "stats", logs, "--layout", launch(tmp_path, text), *asked)
    by_sizes = serried("trace", "stats", logs, "--tp", "1", "--pp", "2", "--dp", "1", *asked)
    assert by_file.code == 0 and by_file.out == by_sizes.out
